//! A run as one file: a tar archive, compressed with zstd, that begins with a list of what is in it.
//! Made again of the same run it is the same, byte for byte.

mod pack;
#[cfg(test)]
mod tests;
mod unpack;

pub use pack::{Exported, pack};
pub use unpack::unpack;

use serde::{Deserialize, Serialize};

/// The format of the list.
const FORMAT: &str = "kduel-export/1";

/// The list, the archive's first file.
const LIST: &str = "export.json";

/// How the name of such a file ends.
pub const ENDING: &str = ".tar.zst";

/// What is in the archive.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct List {
    format: String,
    /// The run's id.
    run: String,
    /// kduel's version.
    kduel: String,
    /// Sorted by path, in the order of the archive.
    files: Vec<Listed>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Listed {
    path: String,
    bytes: u64,
    sha256: String,
}
