//! Trees without changes, one folder each in the cache, whole or not there.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::Provisioner;
use super::super::cache::{sha256_of, sha256_of_file, sweep};
use super::super::deb;
use super::git::Commits;
use super::{broken, folder, tarball};
use crate::config::{Origin, SourceSpec};
use crate::fault::{Failure, FailureClass};

/// A tree without changes.
pub struct Pristine {
    /// Its folder.
    pub path: PathBuf,
    /// Stands for its content.
    pub sha256: String,
    /// Where it comes from, for people.
    pub origin: String,
    /// The commits that are not in it yet.
    pub commits: Option<Commits>,
}

impl Provisioner {
    /// The tree that the changes of `spec` lie over. For whoever holds the lock of the trees.
    pub(super) fn pristine(&self, spec: &SourceSpec) -> Result<Pristine, Failure> {
        let plain = |(path, sha256), origin| Pristine { path, sha256, origin, commits: None };
        match &spec.origin {
            Origin::Debian { package, suite, version } => {
                let (file, found) = self.source_package(package, suite, version.as_deref())?;
                let origin = format!("{package} {} ({suite})", found.version);
                let tree = self.tree_of(&format!("package {}", found.sha256), &origin, |to| {
                    deb::with_source(&file, |name, tar| tarball::unpack(name, tar, to))
                })?;
                Ok(plain(tree, origin))
            }
            Origin::Tarball { path } => {
                let file = Path::new(path);
                let sha256 =
                    sha256_of_file(file).map_err(|error| Failure::host_io("read", file, &error))?;
                let tree = self.tree_of(&format!("tarball {sha256}"), path, |to| {
                    tarball::unpack_file(file, to)
                })?;
                Ok(plain(tree, path.clone()))
            }
            Origin::Folder { path } => {
                let from = Path::new(path);
                is_kernel(from, path)?;
                let listed = folder::List::of_source(from)?;
                let tree = self.tree_of(&format!("folder {}", listed.sha256()), path, |to| {
                    listed.copy(from, to)
                })?;
                Ok(plain(tree, path.clone()))
            }
            Origin::Git { .. } => self.pristine_of_git(spec),
        }
    }

    /// The folder of the tree that `key` stands for, filled by `fill` if it is not there.
    pub(super) fn tree_of(
        &self,
        key: &str,
        origin: &str,
        fill: impl FnOnce(&Path) -> Result<(), Failure>,
    ) -> Result<(PathBuf, String), Failure> {
        let sha256 = sha256_of(key.as_bytes());
        let trees = self.cache.folder("trees")?;
        let path = trees.join(&sha256);
        if path.is_dir() {
            return Ok((path, sha256));
        }
        sweep(&trees);
        self.tell(format!("unpacking the source of {origin}"));
        let temporary =
            tempfile::tempdir_in(&trees).map_err(|error| broken("write", &trees, &error))?;
        // Room for what an error leaves is made by the temporary folder's end.
        let filling = temporary.path().join("tree");
        fs::create_dir(&filling).map_err(|error| broken("write", &filling, &error))?;
        fill(&filling)?;
        is_kernel(&filling, origin)?;
        fs::rename(&filling, &path).map_err(|error| broken("write", &path, &error))?;
        Ok((path, sha256))
    }
}

/// Complains about what is no source tree of Linux.
fn is_kernel(folder: &Path, origin: &str) -> Result<(), Failure> {
    let lacks =
        ["Makefile", "Kconfig", "arch"].into_iter().find(|name| !folder.join(name).exists());
    let Some(lacks) = lacks else { return Ok(()) };
    let title = format!("{origin} is no source tree of a kernel: there is no {lacks} in it");
    Err(Failure::new(FailureClass::KernelUnusable, title))
}
