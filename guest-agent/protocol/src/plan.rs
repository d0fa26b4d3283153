use serde::{Deserialize, Serialize};

use crate::{Better, Knobs, WorkloadParams};

/// Everything one boot of one side has to do. Carried in the initramfs at [`crate::PLAN_PATH`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GuestPlan {
    /// [`crate::PROTOCOL`] of the orchestrator that wrote this.
    pub protocol: u32,
    /// Repeated in the ready line and in the end marker.
    pub nonce: String,
    /// What to set before the trials, and to read back.
    pub knobs: Knobs,
    /// Longest wait for the guest to become idle before the first trial, in seconds; 0: no wait.
    pub settle_s: u32,
    /// In this order.
    pub trials: Vec<TrialSpec>,
    /// What is read before and after each trial.
    pub monitors: Vec<Monitor>,
}

/// One workload run in one boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrialSpec {
    /// Unique within the plan; events refer to it.
    pub id: u32,
    /// A name of [`crate::WORKLOADS`].
    pub workload: String,
    /// Complete: every parameter of the workload, defaults filled in.
    pub params: WorkloadParams,
    /// The user's own benchmark, for the workload `command` only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub command: Option<CommandSpec>,
    /// Iterations dropped at the start, a fixed count.
    pub warmup: u32,
    /// Iterations kept, each giving one sample per metric.
    pub iterations: u32,
    /// An iteration repeats the operation until it takes at least this long, in nanoseconds.
    pub min_interval_ns: u64,
    /// The agent gives the trial up after this time, in seconds.
    pub deadline_s: u32,
}

/// What a monitor reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// Deltas of `/proc/stat` and `/proc/vmstat` over the trial's kept iterations.
    Vmstat,
}

/// A benchmark of the user's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CommandSpec {
    /// Program and arguments; a program among the user's files is named by its path there.
    pub argv: Vec<String>,
    /// `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub env: Vec<String>,
    /// Shell commands before the first repetition, outside every window.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub setup: Vec<String>,
    /// Shell commands after the last repetition.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub teardown: Vec<String>,
    /// The guest CPUs it may run on, as `0-3,7`; all of them if absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpus: Option<String>,
    /// A cgroup below the root of cgroup2 that it is started in; made if it is not there.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cgroup: Option<String>,
    /// Niceness, -20 to 19.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nice: Option<i32>,
    /// What to read from its standard output; if empty, `time`, `user-time`, `system-time` and
    /// `context-switches` are taken from the operating system.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub metrics: Vec<MetricSpec>,
}

/// One number read from a command's standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MetricSpec {
    /// The metric's name.
    pub name: String,
    /// Its unit, free text such as `MB/s`.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Where the number stands.
    pub source: MetricSource,
}

/// How a number is found in a command's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricSource {
    /// A regular expression; its first group is the number. The last match counts.
    Regex(String),
    /// An RFC 6901 pointer into the output read as one JSON document.
    JsonPointer(String),
}
