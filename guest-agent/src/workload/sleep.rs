//! `sleep`: waiting for a timer.

use kduel_protocol::TrialProblem;

use super::{Iteration, Window, Workload};
use crate::clock;

/// Sleeps so many nanoseconds.
pub struct Sleep(pub u64);

impl Workload for Sleep {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let open = window.open();
        for _ in 0..ops {
            clock::sleep_ns(self.0);
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
