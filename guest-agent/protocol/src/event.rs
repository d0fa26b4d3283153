use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Better, End, Facts, KnobReading, LogKind, Monitor};

/// A unit's name as it is printed: `ns`, `1/s`, `count`, or what the user wrote.
pub type Unit = String;

/// One line from the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum Event {
    /// First line.
    Hello {
        /// [`crate::PROTOCOL`] of the agent.
        protocol: u32,
        /// The agent's own version.
        agent: String,
    },
    /// What the guest is.
    Facts(Box<Facts>),
    /// A phase of the boot begins.
    Phase {
        /// Which.
        phase: Phase,
    },
    /// A knob was set and read back.
    Knob(KnobReading),
    /// The guest became idle, or did not.
    Settled {
        /// How long that took, in milliseconds of guest time.
        waited_ms: u64,
        /// Whether it became idle; otherwise the wait was given up.
        idle: bool,
        /// What still ran when the wait was given up, at most ten tasks.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        busy: Vec<String>,
    },
    /// A trial begins.
    TrialBegin {
        /// [`crate::TrialSpec::id`].
        trial: u32,
    },
    /// The trial is set up and warm, and its kept iterations wait for [`crate::Go`]. Only in guests
    /// that run together with another.
    Waiting {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// The shortest window that suits this guest, in nanoseconds.
        window_ns: u64,
    },
    /// Sent at least every few seconds while a trial runs: the sign of progress.
    Progress {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// Iterations finished, warm-up included.
        done: u32,
        /// Iterations in all, warm-up included.
        of: u32,
    },
    /// One number.
    Sample(Sample),
    /// Per-operation values of one iteration; long ones come in several lines.
    Distribution {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// The kept iteration, from 0.
        iteration: u32,
        /// The metric whose single operations these are.
        metric: String,
        /// The unit of the values.
        unit: Unit,
        /// At most 1000.
        values: Vec<f64>,
    },
    /// What a monitor saw between begin and end of a trial's kept iterations.
    Monitored {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// Deltas by name (`ctxt`, `pgfault`, `cpu-user-ms`, …).
        deltas: BTreeMap<String, f64>,
        /// Over this time, in nanoseconds.
        elapsed_ns: u64,
        /// Which.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        monitor: Option<Monitor>,
        /// Over so many operations; 0: not known.
        #[serde(default)]
        ops: u64,
        /// Why it, or a counter of it, is not there in this kernel: name and reason.
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        absent: BTreeMap<String, String>,
    },
    /// The kept iterations of a trial begin, or have ended: for who samples beside them. Stays in the
    /// guest.
    Kept {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// Whether they begin.
        begin: bool,
    },
    /// Rows of a monitor that looks at an interval; long ones come in several lines.
    Rows {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// Which.
        monitor: Monitor,
        /// Names of the values.
        columns: Vec<String>,
        /// At most 100, each the time since the kept iterations began in milliseconds, then one value for
        /// each column.
        rows: Vec<Vec<f64>>,
    },
    /// Sampled call chains; long ones come in several lines.
    Stacks {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// A sample stands for so much time of a CPU, in nanoseconds.
        period_ns: f64,
        /// What was sampled: `cycles` or `cpu-clock`.
        clock: String,
        /// Samples by chain: names with semicolons between, whose work it is first, then the outermost
        /// function.
        stacks: BTreeMap<String, u64>,
        /// Samples that were lost.
        lost: u64,
    },
    /// The kernel's log says something grave.
    KernelLog {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// What.
        kind: LogKind,
        /// Its first line that says what happened.
        title: String,
        /// What follows, at most 40 lines.
        lines: Vec<String>,
    },
    /// A trial ended; absent `problem`: all its samples were sent.
    TrialEnd {
        /// [`crate::TrialSpec::id`].
        trial: u32,
        /// Why it gave no or not all samples.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        problem: Option<TrialProblem>,
    },
    /// After the last trial of a timed run: what may have changed meanwhile.
    After(After),
    /// The agent cannot go on; no end marker follows.
    Failed {
        /// What happened, to what.
        message: String,
    },
    /// Last line: the proof that nothing is missing.
    End(End),
}

/// What of a guest may have changed while its trials ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct After {
    /// The clock source in use.
    pub clocksource: String,
    /// What the guest knows to have been taken from its CPUs during the trials, in milliseconds over
    /// all of them; absent where its kernel does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ms: Option<f64>,
}

/// Where the agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Phase {
    Knobs,
    Settling,
    Trials,
}

/// One number with its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Sample {
    /// [`crate::TrialSpec::id`].
    pub trial: u32,
    /// The kept iteration, from 0.
    pub iteration: u32,
    /// `time`, `throughput`, …
    pub metric: String,
    /// The unit of `value`.
    pub unit: Unit,
    /// Which direction is better.
    pub better: Better,
    /// Finite; the agent refuses to send anything else.
    pub value: f64,
    /// How many operations `value` is the mean of.
    pub ops: u64,
}

/// Why a trial gave no or not all samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub enum TrialProblem {
    /// The workload ended with an error of its own.
    Failed {
        /// What happened, with the command's exit status and last lines where there is one.
        message: String,
    },
    /// The kernel lacks what the workload needs.
    Unsupported {
        /// What is missing.
        message: String,
    },
    /// The trial's deadline passed.
    TimedOut {
        /// After how long, in seconds.
        after_s: u32,
    },
}
