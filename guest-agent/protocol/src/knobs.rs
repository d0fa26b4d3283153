use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Anything that makes a side differ but is no kernel. Empty by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Knobs {
    /// Words appended to the kernel command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmdline: Vec<String>,
    /// `kernel.sched_autogroup_enabled: "0"`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctl: BTreeMap<String, String>,
    /// An absolute path below `/sys`, `/proc` or debugfs, and what is written to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub write: BTreeMap<String, String>,
    /// A file system type and the options it is mounted with at its usual place.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mount: BTreeMap<String, String>,
    /// `module.parameter: value`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub modparam: BTreeMap<String, String>,
    /// QEMU CPU flags with their sign: `-erms`, `+pcid`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_flags: Vec<String>,
    /// Shell commands that run before settling, outside every window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
}

impl Knobs {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Which of the knob keys a reading belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the keys of a side, explained at `Knobs`")]
pub enum KnobKind {
    Cmdline,
    Sysctl,
    Write,
    Mount,
    Modparam,
    CpuFlags,
    Setup,
}

impl KnobKind {
    /// The key as it stands in the document.
    pub fn key(self) -> &'static str {
        match self {
            Self::Cmdline => "cmdline",
            Self::Sysctl => "sysctl",
            Self::Write => "write",
            Self::Mount => "mount",
            Self::Modparam => "modparam",
            Self::CpuFlags => "cpu-flags",
            Self::Setup => "setup",
        }
    }
}

/// A knob as it was wanted and as it was found after it had been set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KnobReading {
    /// Which key.
    pub kind: KnobKind,
    /// What is set: the sysctl's name, the path, the file system, the command.
    pub name: String,
    /// The value asked for.
    pub wanted: String,
    /// The value read back; for `setup`, the exit status and the last line of its output.
    pub found: String,
    /// Whether what was found is what was wanted.
    pub took: bool,
}
