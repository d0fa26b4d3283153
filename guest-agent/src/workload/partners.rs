//! Forked helpers of a workload, and whole messages through descriptors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kduel_protocol::TrialProblem;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions};

use super::failed;
use crate::sys::{fork_child, wait};

/// Helper processes; killed and reaped when dropped.
#[derive(Debug, Default)]
pub struct Partners(Vec<Pid>);

impl Partners {
    /// Forks one more that runs `body` and leaves with status 0 if it went well, else 1.
    pub fn add(&mut self, body: impl FnOnce() -> io::Result<()>) -> Result<(), TrialProblem> {
        let pid =
            fork_child(|| i32::from(body().is_err())).map_err(|error| failed("fork", error))?;
        self.0.push(pid);
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Waits until all have left of their own accord. The process must have no other children.
    pub fn join(&mut self) -> Result<(), TrialProblem> {
        while !self.0.is_empty() {
            // Whichever comes first: after a failure the others may wait for ever.
            let ended = rustix::process::wait(WaitOptions::empty());
            let Some((pid, status)) = ended.map_err(|error| failed("wait", error))? else {
                continue;
            };
            self.0.retain(|other| *other != pid);
            if status.exit_status() != Some(0) {
                return Err(failed("a forked task", "ended with an error"));
            }
        }
        Ok(())
    }
}

impl Drop for Partners {
    fn drop(&mut self) {
        for pid in &self.0 {
            let _ = rustix::process::kill_process(*pid, Signal::KILL);
        }
        for pid in &self.0 {
            let _ = wait(*pid);
        }
    }
}

/// A pipe: where to read, where to write.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), TrialProblem> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed("making a pipe", error))
}

/// Writes all of `message`.
#[inline]
pub fn write_all(to: impl AsFd, message: &[u8]) -> io::Result<()> {
    let mut rest = message;
    while !rest.is_empty() {
        match rustix::io::write(&to, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Fills `message`.
#[inline]
pub fn read_all(from: impl AsFd, message: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < message.len() {
        match rustix::io::read(&from, &mut message[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A buffer for messages of `bytes`.
pub fn buffer(bytes: u64) -> Result<Vec<u8>, TrialProblem> {
    let bytes = usize::try_from(bytes).map_err(|error| failed("the message size", error))?;
    Ok(vec![b'k'; bytes])
}
