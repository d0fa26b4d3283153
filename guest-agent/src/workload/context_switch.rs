//! `context-switch`: a token handed round a ring of processes on one CPU.

use std::os::fd::OwnedFd;

use kduel_protocol::TrialProblem;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::partners::{Partners, pipe, read_all, write_all};
use super::{Iteration, Window, Workload, failed};

/// This process's place in the ring.
pub struct ContextSwitch {
    tasks: u64,
    to_next: OwnedFd,
    from_last: OwnedFd,
    /// The others.
    _ring: Partners,
}

impl ContextSwitch {
    /// Pins this process, then forks the `tasks - 1` others.
    pub fn new(tasks: u64) -> Result<Self, TrialProblem> {
        pin_to_first_cpu().map_err(|error| failed("pinning to one CPU", error))?;
        let (mut from_before, to_next) = pipe()?;
        let mut ring = Partners::default();
        for _ in 1..tasks {
            let (from_this, to_after) = pipe()?;
            ring.add(|| {
                let mut token = [0];
                loop {
                    read_all(&from_before, &mut token)?;
                    write_all(&to_after, &token)?;
                }
            })?;
            from_before = from_this;
        }
        Ok(Self { tasks, to_next, from_last: from_before, _ring: ring })
    }
}

/// To the lowest CPU that this process may run on.
fn pin_to_first_cpu() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    if let Some(cpu) = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)) {
        one.set(cpu);
    }
    sched_setaffinity(None, &one)
}

impl Workload for ContextSwitch {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let rounds = ops.div_ceil(self.tasks);
        let mut token = [1];
        let open = window.open();
        for _ in 0..rounds {
            write_all(&self.to_next, &token)
                .and_then(|()| read_all(&self.from_last, &mut token))
                .map_err(|error| failed("handing the token on", error))?;
        }
        Ok(Iteration::timed(rounds * self.tasks, open.close()))
    }
}
