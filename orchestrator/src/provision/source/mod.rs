//! Kernels from source: trees, patches, configs, builds.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Provisioner, Source};
use crate::config::SourceSpec;
use crate::fault::{Failure, FailureClass};

/// A source tree that is ready to be built: a folder that nobody writes to, and what lies over it.
/// Both are in the cache.
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
    /// Files of `pristine` that are gone, relative.
    pub removed: Vec<PathBuf>,
    /// SHA-256 over `pristine_sha256`, the paths, modes and contents of `changed`, and `removed`:
    /// trees of the same content by other ways may have another.
    pub sha256: String,
    /// Where it comes from, for people: `linux-source-6.1 6.1.176-1`, `~/src/linux at 0123456789ab
    /// and changes`.
    pub origin: String,
}

impl Provisioner {
    /// The kernel that `spec` builds.
    pub(super) fn built(&self, _spec: &SourceSpec) -> Result<Source, Failure> {
        let title = "kernels from source are not supported yet by this version";
        Err(Failure::new(FailureClass::KernelUnusable, title))
    }
}
