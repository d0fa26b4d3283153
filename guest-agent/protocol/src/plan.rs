use serde::{Deserialize, Serialize};

use crate::{Better, Knobs, Monitor, MonitorTerms, WorkloadParams};

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
    /// How events leave the guest.
    #[serde(default)]
    pub transport: Transport,
    /// When the guest counts as idle before the first trial.
    pub settle: Settle,
    /// A sealed guest gives the whole plan up after this time of its own, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub deadline_s: Option<u32>,
    /// Another guest runs the same trials at the same time: kept iterations wait for [`crate::Go`], and
    /// their windows end by the clock.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub together: bool,
    /// A file system with programs that the guest does not have itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub image: Option<GuestImage>,
    /// In this order.
    pub trials: Vec<TrialSpec>,
    /// What is watched beside each trial.
    pub monitors: Vec<Monitor>,
    /// How often.
    #[serde(default, skip_serializing_if = "MonitorTerms::is_default")]
    pub monitor_terms: MonitorTerms,
}

/// An erofs image that is mounted at [`crate::IMAGE_ROOT`] before the trials, below an overlay in memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GuestImage {
    /// Its SHA-256, lower-case hex.
    pub sha256: String,
    /// Its block device: `/dev/vda`.
    pub device: String,
}

/// How events leave the guest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// Somebody logs in over SSH and runs the agent.
    #[default]
    Ssh,
    /// The agent starts by itself, writes to [`crate::SEALED_PORT`], and powers the guest off:
    /// nothing from outside reaches the guest.
    Sealed,
}

/// When a guest counts as idle: its CPUs together over 99 % idle, in windows of one second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Settle {
    /// So many idle seconds in a row.
    pub quiet_s: u32,
    /// Waits at least so long, in seconds.
    pub at_least_s: u32,
    /// Gives up after so long, in seconds; 0: no wait at all.
    pub at_most_s: u32,
}

impl Settle {
    /// What sealed guests do: waiting costs them nothing.
    pub const SEALED: Self = Self { quiet_s: 3, at_least_s: 5, at_most_s: 60 };

    /// The first idle second will do, within `at_most_s`.
    pub const fn first_quiet_second(at_most_s: u32) -> Self {
        Self { quiet_s: 1, at_least_s: 0, at_most_s }
    }
}

/// The number by which the counting plugin knows a kept iteration of a trial.
pub fn window_number(trial: u32, iteration: u32) -> u64 {
    u64::from(trial) * 65_536 + u64::from(iteration)
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
