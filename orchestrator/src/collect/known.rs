use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

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
}
