//! `kernels.lock`: which packages the kernels of a document were resolved to. TOML, beside the
//! document; used when it is there, so that a mirror that moves on changes nothing by itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::write_atomically;
use crate::config::KernelSpec;
use crate::fault::{Failure, FailureClass};

const VERSION: u32 = 1;

/// A kernel as it was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedKernel {
    /// `uname -r`.
    pub release: String,
    /// What the document said; an entry for something else is resolved anew.
    pub spec: KernelSpec,
    /// Path below the kernel's folder in the cache, and SHA-256: `vmlinuz`, `config`.
    pub files: BTreeMap<PathBuf, String>,
    /// The packages, the one with the kernel's name first.
    #[serde(rename = "package")]
    pub packages: Vec<LockedPackage>,
}

/// A package by name, version and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedPackage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the `.deb`, lower-case hex.
    pub sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct LockFile {
    version: u32,
    #[serde(default, rename = "kernel")]
    kernels: BTreeMap<String, LockedKernel>,
}

/// The lock file of one document.
#[derive(Debug)]
pub struct KernelsLock {
    path: PathBuf,
    kernels: BTreeMap<String, LockedKernel>,
    changed: bool,
}

impl KernelsLock {
    /// Reads the lock at `path`; empty if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is not what kduel writes.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path: path.to_owned(),
                    kernels: BTreeMap::new(),
                    changed: false,
                });
            }
            Err(error) => return Err(Failure::host_io("read", path, &error)),
        };
        let broken = |why: String| {
            Failure::new(
                FailureClass::KernelUnusable,
                format!("failed to read the lock file {}: {why}", path.display()),
            )
            .hint("delete it to resolve the kernels anew")
        };
        let file: LockFile = toml::from_str(&text).map_err(|error| broken(error.to_string()))?;
        if file.version != VERSION {
            return Err(broken(format!("its version is {}, not {VERSION}", file.version)));
        }
        Ok(Self { path: path.to_owned(), kernels: file.kernels, changed: false })
    }

    /// What `name` was resolved to, if that was for the same spec.
    pub fn get(&self, name: &str, spec: &KernelSpec) -> Option<&LockedKernel> {
        self.kernels.get(name).filter(|locked| locked.spec == *spec)
    }

    /// Pins `name`.
    pub fn set(&mut self, name: &str, kernel: LockedKernel) {
        if self.kernels.get(name) != Some(&kernel) {
            self.kernels.insert(name.to_owned(), kernel);
            self.changed = true;
        }
    }

    /// Forgets what `name` was resolved to: whether it was there.
    pub fn forget(&mut self, name: &str) -> bool {
        let was_there = self.kernels.remove(name).is_some();
        self.changed |= was_there;
        was_there
    }

    /// Names and what they are pinned to.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &LockedKernel)> {
        self.kernels.iter().map(|(name, kernel)| (name.as_str(), kernel))
    }

    /// Writes the file if anything was changed; a reader sees the old one or the new one.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&mut self) -> Result<(), Failure> {
        if !self.changed {
            return Ok(());
        }
        let file = LockFile { version: VERSION, kernels: self.kernels.clone() };
        let text = toml::to_string(&file)
            .map_err(|error| Failure::new(FailureClass::Internal, format!("lock file: {error}")))?;
        let head = "# Written by kduel. Renew an entry with: kduel kernels lock --update NAME\n";
        write_atomically(&self.path, format!("{head}{text}").as_bytes(), 0o644)?;
        self.changed = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DebianSpec;

    fn spec(suite: &str) -> KernelSpec {
        let (suite, flavour) = (suite.to_owned(), "cloud-amd64".to_owned());
        KernelSpec::Debian(DebianSpec { suite, flavour, version: None })
    }

    fn kernel() -> LockedKernel {
        LockedKernel {
            release: "6.1.0-50-cloud-amd64".to_owned(),
            spec: spec("bookworm"),
            files: BTreeMap::from([("vmlinuz".into(), "ab".to_owned())]),
            packages: vec![LockedPackage {
                name: "linux-image-6.1.0-50-cloud-amd64".to_owned(),
                version: "6.1.176-1".to_owned(),
                sha256: "cd".to_owned(),
            }],
        }
    }

    #[test]
    fn what_is_saved_is_loaded_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernels.lock");
        let mut lock = KernelsLock::load(&path).unwrap();
        lock.save().unwrap();
        assert!(!path.exists(), "nothing to write");
        lock.set("debian-6.1", kernel());
        lock.save().unwrap();
        let mut again = KernelsLock::load(&path).unwrap();
        assert_eq!(again.get("debian-6.1", &spec("bookworm")), Some(&kernel()));
        assert_eq!(again.get("debian-6.1", &spec("trixie")), None, "the document was changed");
        assert!(again.forget("debian-6.1") && !again.forget("debian-6.1"));
    }

    #[test]
    fn a_broken_lock_says_where() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernels.lock");
        fs::write(&path, "version = 1\n[kernel.a]\nrelease = 3\n").unwrap();
        assert!(KernelsLock::load(&path).unwrap_err().title.contains("line 3"));
        fs::write(&path, "version = 2\n").unwrap();
        assert!(KernelsLock::load(&path).unwrap_err().title.contains("version is 2"));
    }
}
