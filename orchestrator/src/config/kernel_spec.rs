use serde::{Deserialize, Serialize};

use super::SourceSpec;

/// Where a kernel comes from: a `kernels:` entry of the document or a SPEC of the command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum KernelSpec {
    /// A binary package of a Debian suite.
    Debian(DebianSpec),
    /// A `linux-image-*` (or `linux-binary-*`) package in a file; absolute path.
    Deb {
        /// The package.
        file: String,
        /// Packages with its modules and config, for the split layout of 7.x.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        also: Vec<String>,
    },
    /// A bzImage, with or without a modules folder; absolute paths.
    Image {
        /// The bzImage.
        image: String,
        /// A folder with `kernel/**/*.ko*` somewhere below it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        modules: Option<String>,
        /// The kernel's `.config`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        config: Option<String>,
    },
    /// A built kernel tree as it lies there; absolute path.
    Tree {
        /// The tree's top folder.
        path: String,
    },
    /// The running kernel's image and modules.
    Host,
    /// Built here.
    Source(Box<SourceSpec>),
}

/// A binary package of exactly one Debian suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DebianSpec {
    /// `bookworm`, `bookworm-security`, `bookworm-backports`, `trixie`, `sid`, …: one suite.
    pub suite: String,
    /// `cloud-amd64`, `amd64`, `rt-amd64`.
    pub flavour: String,
    /// The package version, or the start of one; the suite's newest if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
}
