use std::collections::BTreeMap;

use kduel_protocol::{Facts, KnobReading, Sample};
use serde::{Deserialize, Serialize};

use crate::boot::Accel;
use crate::fault::Failure;
use crate::id::BootId;

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
    /// What executed it.
    pub accel: Accel,
    /// What came of it.
    pub outcome: BootOutcome,
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
    /// Per-operation values.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub distributions: Vec<Distribution>,
    /// What monitors saw, per trial.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub monitored: Vec<Monitored>,
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

/// What a monitor saw during one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "as in the event of the same name")]
pub struct Monitored {
    pub trial: u32,
    pub deltas: BTreeMap<String, f64>,
    pub elapsed_ns: u64,
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
