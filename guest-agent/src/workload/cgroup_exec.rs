//! `cgroup-exec`: fork, move to a cgroup, exec a shell that leaves, wait.

use std::ffi::{CStr, CString};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use kduel_protocol::TrialProblem;
use rustix::fs::{Mode, OFlags};

use super::{Iteration, Value, Window, Workload, failed};
use crate::clock;
use crate::process::{ENVIRONMENT, SHELL};
use crate::sys::{Ended, Exec, fork_child, wait};

/// Where cgroup2 is mounted.
pub const ROOT: &str = "/sys/fs/cgroup";
const GROUP: &str = "/sys/fs/cgroup/kduel-test";
const PROCS: &CStr = c"/sys/fs/cgroup/kduel-test/cgroup.procs";

/// What the file system at [`ROOT`] says of itself if it is cgroup2.
const CGROUP2_MAGIC: i64 = 0x6367_7270;

const NO_EXEC: i32 = 127;
const NO_MOVE: i32 = 126;

/// Moves one child after another, each after a quiet interval.
pub struct CgroupExec {
    interval_ns: u64,
    moves: u64,
    exec: Exec,
}

impl CgroupExec {
    /// Makes the group.
    pub fn new(interval_ns: u64, moves: u64) -> Result<Self, TrialProblem> {
        require_cgroup2()?;
        if !Path::new(GROUP).is_dir() {
            fs::create_dir(GROUP).map_err(|error| cannot_make(GROUP, &error))?;
        }
        let exec = Exec::new(Path::new(SHELL), ["sh", "-c", "exit"], ENVIRONMENT)
            .map_err(|error| failed("preparing the shell", error))?;
        Ok(Self { interval_ns, moves, exec })
    }

    /// One operation, in nanoseconds.
    fn move_one(&self, window: Window) -> Result<u64, TrialProblem> {
        clock::sleep_ns(self.interval_ns);
        let open = window.open();
        let child = fork_child(|| {
            if move_self(PROCS).is_err() {
                return NO_MOVE;
            }
            self.exec.replace();
            NO_EXEC
        });
        let child = child.map_err(|error| failed("fork", error))?;
        let ended = wait(child).map_err(|error| failed("wait", error))?;
        let elapsed = open.close();
        match ended {
            Ended::Exited(0) => Ok(elapsed),
            Ended::Exited(NO_MOVE) => Err(failed("moving a process", format!("to {GROUP} failed"))),
            other => Err(failed("the moved shell", other)),
        }
    }
}

/// A group that cannot be made: a lack of rights is a lack of the machine, not of the workload.
fn cannot_make(path: &str, error: &io::Error) -> TrialProblem {
    let message = format!("making {path}: {error}");
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            TrialProblem::Unsupported { message }
        }
        _ => TrialProblem::Failed { message },
    }
}

/// Whether cgroup2 is there.
pub fn require_cgroup2() -> Result<(), TrialProblem> {
    match rustix::fs::statfs(ROOT) {
        Ok(stat) if stat.f_type == CGROUP2_MAGIC => Ok(()),
        _ => Err(TrialProblem::Unsupported { message: format!("{ROOT} is no cgroup2") }),
    }
}

/// Writes the calling process's own id to a `cgroup.procs`, without allocating.
pub fn move_self(procs: &CStr) -> rustix::io::Result<()> {
    let mut buffer = [0u8; 16];
    let mut rest = buffer.as_mut_slice();
    // Sixteen bytes hold any process id.
    let _ = write!(rest, "{}", rustix::process::getpid().as_raw_nonzero());
    let unused = rest.len();
    let digits = &buffer[..buffer.len() - unused];
    let file = rustix::fs::open(procs, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, digits)?;
    Ok(())
}

/// The `cgroup.procs` of a group below the root, which is made if it is not there.
pub fn procs_of(group: &str) -> Result<CString, TrialProblem> {
    require_cgroup2()?;
    let path = format!("{ROOT}/{}", group.trim_matches('/'));
    fs::create_dir_all(&path).map_err(|error| cannot_make(&path, &error))?;
    CString::new(format!("{path}/cgroup.procs")).map_err(|error| failed(&path, error))
}

impl Workload for CgroupExec {
    fn fixed_ops(&self) -> Option<u64> {
        Some(self.moves)
    }

    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let mut singles = Vec::new();
        let mut elapsed_ns = 0;
        for _ in 0..ops {
            let single = self.move_one(window)?;
            elapsed_ns += single;
            singles.push(single as f64);
        }
        let mean = elapsed_ns as f64 / ops as f64;
        Ok(Iteration { elapsed_ns, values: vec![Value::time("time", mean, ops)], singles })
    }

    fn finish(&mut self) -> Result<(), TrialProblem> {
        fs::remove_dir(GROUP).map_err(|error| failed(&format!("removing {GROUP}"), error))
    }
}
