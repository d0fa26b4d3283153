//! `fork-exit`, `fork-exec`, `fork-shell`: making a process and waiting for it.

use std::io;
use std::path::{Path, PathBuf};

use kduel_protocol::TrialProblem;

use super::{Iteration, Window, Workload, failed};
use crate::process::{ENVIRONMENT, SHELL};
use crate::sys::{Ended, Exec, Mapping, fork_child, wait};

/// A child that could not exec leaves with this status.
const NO_EXEC: i32 = 127;

/// Forks, lets the child exec something or leave at once, waits for it.
pub struct Fork {
    exec: Option<Exec>,
    /// What the process has mapped besides what it needs.
    _ballast: Option<Mapping>,
}

impl Fork {
    /// The child of a process with so many further mappings leaves at once.
    pub fn exit(mappings: u64) -> Result<Self, TrialProblem> {
        let ballast = (mappings > 0).then(|| ballast(mappings)).transpose();
        let ballast = ballast.map_err(|error| failed("mapping memory", error))?;
        Ok(Self { exec: None, _ballast: ballast })
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
        Ok(Self { exec: Some(exec), _ballast: None })
    }
}

/// So many mappings of one page each: neighbours differ in their protection, or the kernel would
/// make one of them. Every other one is writable and has been written to.
fn ballast(mappings: u64) -> io::Result<Mapping> {
    let page = rustix::param::page_size();
    let count = usize::try_from(mappings).map_err(io::Error::other)?;
    let mut memory = Mapping::anonymous(page * count)?;
    for odd in (1..count).step_by(2) {
        memory.protect(odd * page, page, false)?;
    }
    memory.touch(2 * page, count.div_ceil(2));
    Ok(memory)
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
