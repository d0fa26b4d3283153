//! `fork-exit`, `fork-exec`, `fork-shell`: making a process and waiting for it.

use std::path::{Path, PathBuf};

use kduel_protocol::TrialProblem;

use super::{Iteration, Window, Workload, failed};
use crate::process::{ENVIRONMENT, SHELL};
use crate::sys::{Ended, Exec, fork_child, wait};

/// A child that could not exec leaves with this status.
const NO_EXEC: i32 = 127;

/// Forks, lets the child exec something or leave at once, waits for it.
pub struct Fork {
    exec: Option<Exec>,
}

impl Fork {
    /// The child leaves at once.
    pub fn exit() -> Self {
        Self { exec: None }
    }

    /// The child execs the agent itself, which leaves before anything is set up.
    pub fn exec() -> Result<Self, TrialProblem> {
        Self::of(&own_path()?, &["kduel-agent", "noop"])
    }

    /// The child execs a shell that runs the same program.
    pub fn shell() -> Result<Self, TrialProblem> {
        let line = format!("{} noop", own_path()?.display());
        Self::of(Path::new(SHELL), &["sh", "-c", &line])
    }

    fn of(path: &Path, arguments: &[&str]) -> Result<Self, TrialProblem> {
        let exec = Exec::new(path, arguments.iter().copied(), ENVIRONMENT)
            .map_err(|error| failed("preparing the program", error))?;
        Ok(Self { exec: Some(exec) })
    }
}

/// Where this program lies; the link itself would be one more step in every execve.
fn own_path() -> Result<PathBuf, TrialProblem> {
    std::fs::read_link("/proc/self/exe").map_err(|error| failed("reading /proc/self/exe", error))
}

impl Workload for Fork {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let open = window.open();
        for _ in 0..ops {
            let child = match &self.exec {
                None => fork_child(|| 0),
                Some(exec) => fork_child(|| {
                    exec.replace();
                    NO_EXEC
                }),
            };
            let child = child.map_err(|error| failed("fork", error))?;
            let ended = wait(child).map_err(|error| failed("wait", error))?;
            if ended != Ended::Exited(0) {
                return Err(failed("the forked child", ended));
            }
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
