//! Which sides are still worth booting. Pure.

use crate::collect::{BootOutcome, BootRecord};
use crate::fault::{Failure, Fault};
use crate::plan::PlannedExperiment;

/// A side that failed this often and never gave a result is not booted again: with as many good
/// boots of the base, Fisher's exact test has said all it can (`1/70`).
const FAILURES_BEFORE_OUT: usize = 4;

/// A workload that failed this often on a side and never gave a result is not started again.
const WORKLOAD_FAILURES_BEFORE_OUT: usize = 2;

/// What a side's boots have come to.
#[derive(Debug, Clone, Default)]
pub(super) struct SideState {
    completed: usize,
    kernel_failures: usize,
    workload_failures: usize,
    last_failure: Option<Failure>,
}

impl SideState {
    /// The state of every side of `experiment`, in its order.
    pub(super) fn of(experiment: &PlannedExperiment, records: &[BootRecord]) -> Vec<Self> {
        let state_of = |side: &str| {
            let mut state = Self::default();
            for record in records {
                if record.experiment == experiment.name && record.side == side {
                    state.add(&record.outcome);
                }
            }
            state
        };
        experiment.sides.iter().map(|side| state_of(&side.name)).collect()
    }

    fn add(&mut self, outcome: &BootOutcome) {
        match outcome {
            BootOutcome::Completed(result) if result.samples.is_empty() => {
                self.workload_failures += 1;
                self.last_failure = result.failed_trials.first().map(|trial| trial.failure.clone());
            }
            BootOutcome::Completed(_) => self.completed += 1,
            BootOutcome::Failed(failure) => {
                match failure.fault() {
                    Fault::KernelUnderTest => self.kernel_failures += 1,
                    Fault::Workload => self.workload_failures += 1,
                    _ => return,
                }
                self.last_failure = Some((**failure).clone());
            }
        }
    }

    /// Whether booting it again would tell nothing new.
    pub(super) fn is_out(&self) -> bool {
        self.completed == 0
            && (self.kernel_failures >= FAILURES_BEFORE_OUT
                || self.workload_failures >= WORKLOAD_FAILURES_BEFORE_OUT)
    }

    /// Why no further block of `experiment` can give a pair, if so.
    pub(super) fn hopeless(experiment: &PlannedExperiment, states: &[Self]) -> Option<String> {
        let (base, candidates) = states.split_first()?;
        let which = if base.is_out() {
            format!("the base, {},", experiment.sides[0].name)
        } else if candidates.iter().all(Self::is_out) {
            "every side beside the base".to_owned()
        } else {
            return None;
        };
        Some(format!("{}: {which} failed each time, no further boots", experiment.name))
    }
}
