use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A workload's parameters by name, in units of [`ParamKind`].
pub type WorkloadParams = BTreeMap<String, serde_json::Value>;

/// Which direction of a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Better {
    Lower,
    Higher,
}

/// What there is to say about a workload before it runs. The agent has the code behind it.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadInfo {
    /// As written in the document.
    pub name: &'static str,
    /// One line: what one operation is.
    pub measures: &'static str,
    /// What one operation is, as a noun: `fork+exit`.
    pub operation: &'static str,
    /// First is primary.
    pub metrics: &'static [MetricInfo],
    /// In the order they are explained.
    pub params: &'static [ParamInfo],
    /// What decides in exact runs.
    pub exact: ExactMetric,
    /// Whether it uses more than one CPU at a time.
    pub parallel: Parallelism,
    /// Whether two guests may run it at the same time. Not what caches, memory bandwidth, a disk or the
    /// processor's power limit: each would slow the other.
    pub duet: Duet,
    /// Where the definition comes from.
    pub source: &'static str,
    /// What else the definition fixes.
    pub notes: &'static str,
    /// The suites it belongs to.
    pub suites: &'static [&'static str],
    /// Parameters that a suite gives other values than the default: name, values.
    pub suite_params: &'static [(&'static str, &'static str)],
    /// Iterations kept by default.
    pub iterations: u32,
    /// Iterations dropped by default.
    pub warmup: u32,
    /// Shortest iteration by default, in milliseconds.
    pub min_interval_ms: u32,
}

impl WorkloadInfo {
    /// The values of a parameter when a suite runs the workload, written as a default is.
    pub fn suite_default(&self, param: &ParamInfo) -> &'static str {
        let own = self.suite_params.iter().find(|(name, _)| *name == param.name);
        own.map_or(param.default, |(_, values)| values)
    }
}

/// A metric that a workload gives.
#[derive(Debug, Clone, Copy)]
pub struct MetricInfo {
    /// `time`, `throughput`, ….
    pub name: &'static str,
    /// `ns`, `1/s`, ….
    pub unit: &'static str,
    /// Which direction is better.
    pub better: Better,
    /// Primary metrics decide a run; the others are shown beside them.
    pub primary: bool,
}

/// What an exact run compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExactMetric {
    /// The work of the workload's own tasks: it never waits for a timer.
    Instructions,
    /// The guest's own clock: it waits for timers or grace periods, and the wait is the point.
    GuestTime,
}

/// Iterations that exact trials drop where the document says nothing.
pub const EXACT_WARMUP: u32 = 1;

/// Windows that exact trials keep where the document says nothing.
pub const EXACT_WINDOWS: u32 = 5;

/// Shortest window of an exact trial, in milliseconds of guest time: 50 ticks of 250 a second. A
/// workload that fixes its operations keeps to those.
pub const EXACT_WINDOW_MS: u32 = 200;

impl ExactMetric {
    /// As samples name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::GuestTime => "guest-time",
        }
    }
}

/// How many CPUs a workload wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parallelism {
    /// One task runs at a time.
    Serial,
    /// Several tasks run at a time if there are CPUs.
    Parallel,
}

/// Whether two guests may run a workload at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duet {
    /// They hardly touch what they share.
    Yes,
    /// They would slow each other.
    No,
    /// Its user knows: a parameter `duet` says so.
    Asked,
}

/// A parameter of a workload.
#[derive(Debug, Clone, Copy)]
pub struct ParamInfo {
    /// As written in the document.
    pub name: &'static str,
    /// What values it takes.
    pub kind: ParamKind,
    /// One value, or several separated by commas: a sweep.
    pub default: &'static str,
    /// One line.
    pub help: &'static str,
}

/// What values a parameter takes, and as what it travels in [`WorkloadParams`].
#[derive(Debug, Clone, Copy)]
pub enum ParamKind {
    /// An integer within these bounds, both included; travels as a number.
    Integer {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A size such as `4K`, binary; travels as a number of bytes.
    Bytes {
        /// Smallest, in bytes.
        min: u64,
        /// Largest, in bytes.
        max: u64,
    },
    /// A duration such as `60ms`; travels as a number of nanoseconds.
    Duration {
        /// Largest, in nanoseconds.
        max_ns: u64,
    },
    /// One of these words; travels as a string.
    Choice(&'static [&'static str]),
}
