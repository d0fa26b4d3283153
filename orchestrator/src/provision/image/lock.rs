//! `images.lock`: what the images of a document were built to. TOML, beside the document.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::store::Record;
use crate::fault::{Failure, FailureClass};
use crate::provision::cache::write_atomically;

const VERSION: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LockFile {
    version: u32,
    #[serde(default, rename = "image")]
    images: BTreeMap<String, Record>,
}

/// The images of one document.
#[derive(Debug)]
pub struct ImagesLock {
    path: PathBuf,
    images: BTreeMap<String, Record>,
    changed: bool,
}

impl ImagesLock {
    /// Reads the lock at `path`; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is not what kduel writes.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let broken = |why: String| {
            let title = format!("failed to read the lock file {}: {why}", path.display());
            Failure::new(FailureClass::ImageUnusable, title).hint("delete it to pin images anew")
        };
        let images = match fs::read_to_string(path) {
            Ok(text) => {
                let file: LockFile =
                    toml::from_str(&text).map_err(|error| broken(error.to_string()))?;
                if file.version != VERSION {
                    return Err(broken(format!("its version is {}, not {VERSION}", file.version)));
                }
                file.images
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Failure::host_io("read", path, &error)),
        };
        Ok(Self { path: path.to_owned(), images, changed: false })
    }

    /// What `name` is pinned to, if that was for the same recipe.
    pub fn get(&self, name: &str, recipe_sha256: &str) -> Option<&Record> {
        self.images.get(name).filter(|record| record.recipe == recipe_sha256)
    }

    /// Pins `name`.
    pub fn set(&mut self, name: &str, record: Record) {
        if self.images.get(name) != Some(&record) {
            self.images.insert(name.to_owned(), record);
            self.changed = true;
        }
    }

    /// Writes the file if anything was changed.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&mut self) -> Result<(), Failure> {
        if !self.changed {
            return Ok(());
        }
        let file = LockFile { version: VERSION, images: self.images.clone() };
        let text = toml::to_string(&file)
            .map_err(|error| Failure::new(FailureClass::Internal, format!("lock file: {error}")))?;
        let head = "# Written by kduel. Renew an entry with: kduel images build --update NAME\n";
        write_atomically(&self.path, format!("{head}{text}").as_bytes(), 0o644)?;
        self.changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_for_one_recipe() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images.lock");
        let record = Record {
            name: "debian".into(),
            recipe: "ab".into(),
            suite: "bookworm".into(),
            sha256: "cd".into(),
            bytes: 2 << 20,
            packages: vec!["gcc 4:12.2.0-3".into()],
        };
        let mut lock = ImagesLock::load(&path).unwrap();
        lock.set("debian", record.clone());
        lock.save().unwrap();
        let again = ImagesLock::load(&path).unwrap();
        assert_eq!(again.get("debian", "ab"), Some(&record));
        assert_eq!(again.get("debian", "other"), None);
        fs::write(&path, "version = 7\n").unwrap();
        assert!(ImagesLock::load(&path).unwrap_err().title.contains("version is 7"));
    }
}
