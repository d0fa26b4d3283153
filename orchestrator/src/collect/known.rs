use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::fault::{Failure, FailureClass};

use super::write::{host_io, write_atomically};
use super::{BootOutcome, BootRecord, ExactBoot};

/// Another one is read as nothing, so that a kduel which counts differently boots again.
const FORMAT: &str = "kduel-known/1";

/// Results of exact boots by what decides them: what was booted once need not be booted again.
#[derive(Debug, Clone)]
pub struct KnownBoots {
    folder: PathBuf,
}

/// A boot that was done, and in which run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KnownBoot {
    /// [`FORMAT`]: how results were made from what the guest told.
    pub format: String,
    /// The run that did it.
    pub run: String,
    /// What it gave.
    pub record: BootRecord,
}

impl KnownBoots {
    /// Kept in `folder`, which need not exist.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// With chains there is more to it than without.
    fn path(&self, exact: &ExactBoot, ending: &str) -> PathBuf {
        let chains = if exact.chains { "-chains" } else { "" };
        self.folder.join(format!("{}{chains}.{ending}", exact.identity))
    }

    /// The boot of the identity of `wanted` with the plugin's counts, if it was done and can be read.
    pub fn find(&self, wanted: &ExactBoot) -> Option<(KnownBoot, Vec<u8>)> {
        let json = fs::read(self.path(wanted, "json")).ok()?;
        let known: KnownBoot = serde_json::from_slice(&json).ok()?;
        let exact = known.record.exact.as_ref()?;
        let counts = fs::read(self.path(wanted, "counts")).ok()?;
        let fits = exact.identity == wanted.identity && exact.chains == wanted.chains;
        let fits = fits && known.format == FORMAT;
        fits.then_some((known, counts))
    }

    /// Keeps a completed boot of the run `run`.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn keep(&self, run: &str, record: &BootRecord, counts: &[u8]) -> Result<(), Failure> {
        let (BootOutcome::Completed(_), Some(exact)) = (&record.outcome, &record.exact) else {
            return Ok(());
        };
        match fs::create_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(host_io("make", &self.folder, &error));
            }
            _ => {}
        }
        let known =
            KnownBoot { format: FORMAT.to_owned(), run: run.to_owned(), record: record.clone() };
        let json = serde_json::to_vec(&known).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to store a boot: {error}"))
        })?;
        write_atomically(&self.path(exact, "counts"), counts)?;
        write_atomically(&self.path(exact, "json"), &json)
    }
}

/// Boots in the store, or what was taken out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownSize {
    /// How many.
    pub boots: usize,
    /// Bytes in all of their files.
    pub bytes: u64,
}

impl KnownSize {
    fn add(&mut self, files: &[Stored]) {
        self.boots += 1;
        self.bytes += files.iter().map(|file| file.bytes).sum::<u64>();
    }
}

/// One file of the store.
#[derive(Debug)]
struct Stored {
    path: PathBuf,
    bytes: u64,
    written: SystemTime,
}

impl KnownBoots {
    /// How much there is.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn size(&self) -> Result<KnownSize, Failure> {
        let mut size = KnownSize::default();
        self.stored()?.iter().for_each(|files| size.add(files));
        Ok(size)
    }

    /// Takes the oldest boots out until at most `bytes` are left; gives what went. A boot that is not
    /// known any more is done again when it is needed.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn shrink(&self, bytes: u64) -> Result<KnownSize, Failure> {
        let mut left = self.size()?.bytes;
        let mut gone = KnownSize::default();
        for files in self.stored()? {
            if left <= bytes {
                break;
            }
            // The record first: counts alone are nothing known.
            for file in files.iter().rev() {
                match fs::remove_file(&file.path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(host_io("remove", &file.path, &error));
                    }
                    _ => left -= file.bytes,
                }
            }
            gone.add(&files);
        }
        Ok(gone)
    }

    /// The files of each boot by name, the oldest boot first.
    fn stored(&self) -> Result<Vec<Vec<Stored>>, Failure> {
        let failed = |error: &std::io::Error| host_io("read", &self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| failed(&error))?,
        };
        let mut boots: BTreeMap<String, Vec<Stored>> = BTreeMap::new();
        for entry in entries {
            let entry = entry.map_err(|error| failed(&error))?;
            // Another kduel may have taken it meanwhile.
            let Ok(found) = entry.metadata() else { continue };
            let name = entry.file_name().to_string_lossy().into_owned();
            let identity = name.split('.').next().unwrap_or_default().to_owned();
            let written = found.modified().map_err(|error| failed(&error))?;
            let file = Stored { path: entry.path(), bytes: found.len(), written };
            boots.entry(identity).or_default().push(file);
        }
        let mut boots: Vec<Vec<Stored>> = boots.into_values().collect();
        for files in &mut boots {
            files.sort_by(|a, b| a.path.cmp(&b.path));
        }
        boots.sort_by_key(|files| files.iter().map(|file| file.written).max());
        Ok(boots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::{completed, failed};

    fn boot(identity: &str) -> ExactBoot {
        ExactBoot { identity: identity.into(), ..ExactBoot::default() }
    }

    #[test]
    fn what_was_booted_once_is_found_by_what_decides_it() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownBoots::new(folder.path().join("known"));
        assert!(known.find(&boot("ab")).is_none());
        let mut record = completed("fork", "base", 0, &[("instructions", 0.1 + 0.2)]);
        let exact = boot("ab");
        record.exact = Some(Box::new(exact.clone()));
        known.keep("run-1", &record, b"counts").unwrap();
        let (found, counts) = known.find(&boot("ab")).unwrap();
        assert_eq!(
            (found.run.as_str(), found.record, counts),
            ("run-1", record, b"counts".to_vec())
        );
        assert!(known.find(&boot("cd")).is_none());
        let mut bad = failed("fork", "base", 0, FailureClass::Panic, "x");
        bad.exact = Some(Box::new(ExactBoot { identity: "ef".into(), ..exact }));
        known.keep("run-1", &bad, b"").unwrap();
        assert!(known.find(&boot("ef")).is_none());
        let with_chains = ExactBoot { chains: true, ..boot("ab") };
        assert!(known.find(&with_chains).is_none(), "they were not followed");
    }

    #[test]
    fn the_oldest_are_forgotten_until_the_rest_fits() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownBoots::new(folder.path().join("known"));
        assert_eq!(known.size().unwrap(), KnownSize::default());
        assert_eq!(known.shrink(0).unwrap(), KnownSize::default());
        for (identity, age) in [("aa", 1), ("bb", 3), ("cc", 2)] {
            let mut record = completed("fork", "base", 0, &[("instructions", 1.0)]);
            record.exact = Some(Box::new(boot(identity)));
            known.keep("run-1", &record, &[0; 1000]).unwrap();
            for ending in ["json", "counts"] {
                let path = known.path(&boot(identity), ending);
                let file = fs::File::options().write(true).open(path);
                let hours = std::time::Duration::from_secs(3600 * age);
                let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
                file.unwrap().set_modified(now - hours).unwrap();
            }
        }
        let all = known.size().unwrap();
        assert_eq!(all.boots, 3);
        assert_eq!(known.shrink(all.bytes).unwrap(), KnownSize::default());
        let gone = known.shrink(all.bytes - 1).unwrap();
        assert_eq!(gone, KnownSize { boots: 1, bytes: all.bytes / 3 });
        let found = ["aa", "bb", "cc"].map(|identity| known.find(&boot(identity)).is_some());
        assert_eq!(found, [true, false, true]);
        assert_eq!(known.shrink(0).unwrap().boots, 2);
        assert_eq!(known.size().unwrap(), KnownSize::default());
    }
}
