//! Kernels from source: trees, patches, configs, builds.

mod build;
#[cfg(test)]
mod build_tests;
mod changes;
mod config;
mod diff;
mod failure;
mod fetch;
mod folder;
mod git;
mod layers;
mod mail;
mod options;
mod patch;
mod pin;
mod pristine;
mod progress;
mod record;
mod room;
mod sections;
mod store;
mod symbols;
mod tarball;
#[cfg(test)]
mod tests;
mod toolchain;

pub use git::settled;
pub use record::Record;

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Provisioner, Source};
use crate::config::SourceSpec;
use crate::fault::Failure;

pub use sections::sections;
pub use store::{About, Built, OBJECTS_KEPT};

/// A source tree that is ready to be built: a folder that nobody writes to, and what lies over it.
/// Both are in the cache. Time stamps say nothing: those of `changed` may be older than objects that
/// were made of `pristine`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceTree {
    /// The tree without changes.
    pub pristine: PathBuf,
    /// SHA-256 that stands for the content of `pristine`.
    pub pristine_sha256: String,
    /// A folder with the files that are changed or new, at their places in the tree; absent if none
    /// are.
    pub changed: Option<PathBuf>,
    /// Files of `pristine` that are gone, relative. Where `changed` has a folder or file in the place of
    /// such a file or of its folder, that alone says so.
    pub removed: Vec<PathBuf>,
    /// SHA-256 over `pristine_sha256`, the paths, modes and contents of `changed`, and `removed`:
    /// trees of the same content by other ways may have another.
    pub sha256: String,
    /// Where it comes from, for people: `linux-source-6.1 6.1.176-1`, `~/src/linux at 0123456789ab
    /// and changes`.
    pub origin: String,
}

impl Provisioner {
    /// The source that `spec` describes, patched and ready to be built.
    ///
    /// # Errors
    /// If it cannot be had, is no kernel, or a patch does not apply.
    pub fn source_tree(&self, spec: &SourceSpec) -> Result<SourceTree, Failure> {
        let spec = settled(spec)?;
        let _held = self.cache.lock("trees", || {
            self.tell("waiting for another kduel that unpacks a source tree".to_owned());
        })?;
        let pristine = self.pristine(&spec)?;
        self.changed(&spec, pristine)
    }

    /// The kernel that `spec` builds.
    pub(super) fn built(&self, spec: &SourceSpec) -> Result<Source, Failure> {
        self.build(spec)?.source()
    }
}

/// A failure to write `path` into the cache, or to read it there.
fn broken(doing: &str, path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::host_io(doing, path, error);
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            failure.hint("make room: a kernel tree takes 1.5 GB, and its objects as much again")
        }
        _ => failure,
    }
}
