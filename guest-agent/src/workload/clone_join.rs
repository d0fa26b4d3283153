//! `clone-join`: starting a thread and waiting for its end.

use std::thread;

use kduel_protocol::TrialProblem;

use super::{Iteration, Window, Workload, failed};

/// Threads do nothing and need little to do it.
const STACK_BYTES: usize = 64 * 1024;

/// Starts one thread after another.
pub struct CloneJoin;

impl Workload for CloneJoin {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let open = window.open();
        for _ in 0..ops {
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(|| ());
            let thread = thread.map_err(|error| failed("starting a thread", error))?;
            thread.join().map_err(|_| failed("a thread", "panicked"))?;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
