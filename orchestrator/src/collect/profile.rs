//! What exact profiles are made from: counts by block and the kernels' symbols, both compressed.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::fault::{Failure, FailureClass};
use crate::id::BootId;
use crate::provision::sha256_of;

use super::folder::file_name;
use super::write::{host_io, write_atomically};
use super::{RunFolder, StoredRun};

/// Of zstd: higher ones take longer and gain little here.
const LEVEL: i32 = 5;

impl RunFolder {
    /// Writes `profile/<boot>.counts.zst`: what the plugin counted, block by block.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn write_counts(&self, boot: &BootId, counts: &[u8]) -> Result<(), Failure> {
        let path = counts_path(self.path(), boot);
        let packed = zstd::encode_all(counts, LEVEL).map_err(|e| host_io("pack", &path, &e))?;
        fs::write(&path, packed).map_err(|error| host_io("write", &path, &error))
    }

    /// Writes `profile/<digest>.kallsyms.zst`, if it is not there yet.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn write_symbols(&self, digest: &str, text: &Path) -> Result<(), Failure> {
        let path = symbols_path(self.path(), digest);
        if path.is_file() {
            return Ok(());
        }
        let text = fs::read(text).map_err(|error| host_io("read", text, &error))?;
        let packed = zstd::encode_all(&text[..], LEVEL).map_err(|e| host_io("pack", &path, &e))?;
        write_atomically(&path, &packed)
    }
}

impl StoredRun {
    /// What the plugin counted in a boot, block by block; nothing if that was not kept.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn counts(&self, boot: &BootId) -> Result<Option<Vec<u8>>, Failure> {
        let packed = counts_path(&self.path, boot);
        // kduel 0.1 did not compress them.
        let plain = packed.with_extension("");
        match fs::read(&plain) {
            Err(error) if error.kind() == ErrorKind::NotFound => unpack(&packed),
            result => result.map(Some).map_err(|error| host_io("read", &plain, &error)),
        }
    }

    /// The symbols of this digest as `/proc/kallsyms` has them; nothing if they were not kept.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn symbols(&self, digest: &str) -> Result<Option<String>, Failure> {
        let path = symbols_path(&self.path, digest);
        let Some(bytes) = unpack(&path)? else { return Ok(None) };
        if sha256_of(&bytes) != digest {
            let title = format!("{} have changed since the run", path.display());
            return Err(Failure::new(FailureClass::HostIo, title).hint("run it again"));
        }
        String::from_utf8(bytes).map(Some).map_err(|_| {
            let title = format!("{} is not text", path.display());
            Failure::new(FailureClass::OutputMalformed, title)
        })
    }
}

fn counts_path(run: &Path, boot: &BootId) -> PathBuf {
    run.join("profile").join(format!("{}.counts.zst", file_name(&boot.0)))
}

fn symbols_path(run: &Path, digest: &str) -> PathBuf {
    run.join("profile").join(format!("{}.kallsyms.zst", file_name(digest)))
}

fn unpack(path: &Path) -> Result<Option<Vec<u8>>, Failure> {
    let packed = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        result => result.map_err(|error| host_io("read", path, &error))?,
    };
    zstd::decode_all(&packed[..]).map(Some).map_err(|error| host_io("unpack", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Accel;
    use crate::collect::testing::plan;
    use crate::collect::{RunInfo, RunRef};

    #[test]
    fn counts_and_symbols_are_read_back_and_absence_is_no_error() {
        let runs = tempfile::tempdir().unwrap();
        let text = runs.path().join("kallsyms");
        fs::write(&text, "ff T f\n").unwrap();
        let info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
        let folder = RunFolder::create(runs.path(), &plan(&["base", "b"], 1), info).unwrap();
        let boot = BootId("a/../b".into());
        folder.write_counts(&boot, b"counted").unwrap();
        let digest = sha256_of(b"ff T f\n");
        folder.write_symbols(&digest, &text).unwrap();
        let stored = StoredRun::open(runs.path(), &RunRef::default()).unwrap();
        assert_eq!(stored.counts(&boot).unwrap().as_deref(), Some(&b"counted"[..]));
        assert_eq!(stored.symbols(&digest).unwrap().as_deref(), Some("ff T f\n"));
        assert_eq!(stored.counts(&BootId("other".into())).unwrap(), None);
        assert_eq!(stored.symbols("other").unwrap(), None);
        fs::write(folder.path().join("profile/old.counts"), b"plain").unwrap();
        let old = stored.counts(&BootId("old".into())).unwrap();
        assert_eq!(old.as_deref(), Some(&b"plain"[..]));
        fs::write(folder.path().join("profile/bad.counts.zst"), b"rubbish").unwrap();
        assert!(stored.counts(&BootId("bad".into())).unwrap_err().title.contains("bad.counts.zst"));
    }
}
