//! Names and numbers by which things are found again.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `20261130-164501-3fa9`: UTC time of the start and four random hex digits. Also a folder's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunId(pub String);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One boot of one side within a run: `fork-b03-patched`, with `-r1` for its first repetition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootId(pub String);

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BootId {
    /// Of `side`'s boot in `block` (from 0) of `experiment`, at its `attempt` (from 0).
    pub fn new(experiment: &str, block: usize, side: &str, attempt: u32) -> Self {
        let repeat = if attempt == 0 { String::new() } else { format!("-r{attempt}") };
        Self(format!("{experiment}-b{block:02}-{side}{repeat}"))
    }

    /// Of the boot that runs together with the sentinel, of the same side.
    pub fn twin(self) -> Self {
        Self(format!("{}+twin", self.0))
    }

    /// Of the boot that is only compared with this one. No side's name has a `+`.
    pub fn sentinel(self) -> Self {
        Self(format!("{}+sentinel", self.0))
    }
}
