use std::collections::BTreeMap;

use kduel_protocol::{After, Facts, KnobReading, LogKind, Monitor, Sample};
use serde::{Deserialize, Serialize};

use crate::boot::Accel;
use crate::fault::Failure;
use crate::host::noise::HostNoise;
use crate::id::BootId;
use crate::plan::Placement;

/// One boot of one side, whole. One line of `journal.jsonl`, written and synced when the boot ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BootRecord {
    /// Which.
    pub boot: BootId,
    /// The experiment's name.
    pub experiment: String,
    /// The side's name.
    pub side: String,
    /// Block, from 0.
    pub block: usize,
    /// From 0; a repeated boot replaces the earlier ones.
    pub attempt: u32,
    /// Place in the block's order, from 0.
    pub slot: usize,
    /// Wall clock at the start: a label.
    pub started: jiff::Timestamp,
    /// From start to ready, in milliseconds; absent if it never was.
    pub ready_ms: Option<u64>,
    /// From start to the first sample, in milliseconds; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_sample_ms: Option<u64>,
    /// From start to proof of the end, in milliseconds.
    pub took_ms: u64,
    /// A boot to be compared with its side's own one in the same block, and with nothing else.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub sentinel: bool,
    /// What executed it.
    pub accel: Accel,
    /// What only a boot of an exact run has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exact: Option<Box<ExactBoot>>,
    /// Where its threads and memory were bound to, read back before its first instruction; anywhere if
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub placement: Option<Placement>,
    /// What came of it.
    pub outcome: BootOutcome,
}

/// What decides the bits of an exact boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExactBoot {
    /// SHA-256 over `inputs`, lower-case hex: two boots with the same one have the same samples.
    pub identity: String,
    /// By name: digests of everything that goes in, and the arguments with what is only the host's
    /// replaced.
    pub inputs: BTreeMap<String, String>,
    /// QEMU's name of the processor.
    pub cpu: String,
    /// An instruction takes 2^shift nanoseconds of guest time.
    pub shift: u8,
    /// Of the memory layout.
    pub seed: u64,
    /// Not booted for this run: the same was booted before, in this run or another.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cached: Option<String>,
    /// Call chains were followed, too.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub chains: bool,
    /// A boot that only repeats the first trial of another one, to be compared with it.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub again: bool,
    /// Features of the CPU model that QEMU's translator lacks, as QEMU names them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub dropped: Vec<String>,
    /// What could not be counted, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub lost: Vec<String>,
}

/// What was executed in one window: a kept iteration of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WindowCounts {
    /// Which trial.
    pub trial: u32,
    /// The kept iteration, from 0.
    pub iteration: u32,
    /// Operations in it.
    pub ops: u64,
    /// Work of the workload's own tasks, by class of instruction; all of it is `instructions`.
    pub own: BTreeMap<String, u64>,
    /// Instructions by context: own tasks' ones begin with `own`. Together they are all.
    pub contexts: BTreeMap<String, u64>,
    /// Everything that was executed, in instructions.
    pub total: u64,
    /// How often something happened, whoever did it: page faults, context switches, ….
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub events: BTreeMap<String, u64>,
}

impl BootRecord {
    /// Whether it only repeats the first trial of another boot.
    pub fn is_again(&self) -> bool {
        self.exact.as_ref().is_some_and(|exact| exact.again)
    }
}

/// What came of a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootOutcome {
    /// The end marker arrived and the guest went down in order.
    Completed(Box<BootResult>),
    /// It gave nothing that counts.
    Failed(Box<Failure>),
}

/// What a completed boot gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct BootResult {
    /// What the agent saw of the guest.
    pub facts: Facts,
    /// Knobs, read back; all of them took.
    pub knobs: Vec<KnobReading>,
    /// How long the guest took to become idle, in milliseconds.
    pub settled_ms: u64,
    /// Whether it became idle.
    pub idle: bool,
    /// What still ran when the wait for it was given up.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub busy: Vec<String>,
    /// In the order they came.
    pub samples: Vec<Sample>,
    /// What was counted in exact runs, in the order the windows ended.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub windows: Vec<WindowCounts>,
    /// Per-operation values.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub distributions: Vec<Distribution>,
    /// What monitors saw, per trial.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub monitored: Vec<Monitored>,
    /// Rows of monitors that look at an interval.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub rows: Vec<MonitorRows>,
    /// Sampled call chains.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stacks: Vec<Stacks>,
    /// What the kernel's log said that is grave.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub kernel_log: Vec<KernelLog>,
    /// What the host did during each trial.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub noise: Vec<TrialNoise>,
    /// What the agent saw after the last trial.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<After>,
    /// Trials that gave no or not all samples; their samples are not in `samples`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub failed_trials: Vec<TrialFailure>,
}

/// Per-operation values of one kept iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event of the same name")]
pub struct Distribution {
    pub trial: u32,
    pub iteration: u32,
    pub metric: String,
    pub unit: String,
    pub values: Vec<f64>,
}

/// What the host did during one trial, warm-up included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrialNoise {
    /// Which trial.
    pub trial: u32,
    /// What.
    #[serde(flatten)]
    pub host: HostNoise,
}

/// What a monitor saw during one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event of the same name")]
pub struct Monitored {
    pub trial: u32,
    pub deltas: BTreeMap<String, f64>,
    pub elapsed_ns: u64,
    /// Absent in runs of kduel 0.1, which had only vmstat.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub monitor: Option<Monitor>,
    #[serde(default)]
    pub ops: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub absent: BTreeMap<String, String>,
}

/// Rows of a monitor during one trial, as many as came in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event `Rows`")]
pub struct MonitorRows {
    pub trial: u32,
    pub monitor: Monitor,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<f64>>,
}

/// Sampled call chains of one trial, as many as came in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event of the same name")]
pub struct Stacks {
    pub trial: u32,
    pub period_ns: f64,
    pub clock: String,
    pub stacks: BTreeMap<String, u64>,
    pub lost: u64,
}

/// A grave complaint in the kernel's log during one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event of the same name")]
pub struct KernelLog {
    pub trial: u32,
    pub kind: LogKind,
    pub title: String,
    pub lines: Vec<String>,
}

/// A trial that failed in a boot that otherwise completed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrialFailure {
    /// Which trial.
    pub trial: u32,
    /// Why.
    pub failure: Failure,
}
