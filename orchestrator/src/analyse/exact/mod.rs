//! Exact runs: what follows from counts that have no noise. Pure.

mod compare;
mod counts;
mod decide;
mod series;
#[cfg(test)]
mod tests;

pub use counts::CountPair;
pub use decide::ExactWord;

pub(super) use compare::compare_exact;
pub(super) use series::not_exact;

use serde::{Deserialize, Serialize};

/// What only a comparison of an exact run has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExactFinding {
    /// What follows, in words of work; absent where nothing does.
    pub word: Option<ExactWord>,
    /// QEMU's name of the processor that it holds for.
    pub cpu: String,
    /// Largest and smallest window apart, relative to their mean: of the base, of the candidate. The
    /// mean of the seeds' spreads where there are several.
    pub spread: [f64; 2],
    /// Per operation, by class of instruction: the work of own tasks.
    pub classes: Vec<CountPair>,
    /// Instructions per operation, by context: all that was executed, the last is the total.
    pub contexts: Vec<CountPair>,
    /// Per operation: page faults, context switches, wake-ups, ….
    pub events: Vec<CountPair>,
    /// Costly classes that a side with less work has more of: then less is not simply better.
    pub mixed: Vec<String>,
}
