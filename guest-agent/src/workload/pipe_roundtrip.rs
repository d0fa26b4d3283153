//! `pipe-roundtrip`: a message to another process and back over two pipes.

use std::os::fd::OwnedFd;

use kduel_protocol::TrialProblem;

use super::partners::{Partners, buffer, pipe, read_all, write_all};
use super::{Iteration, Window, Workload, failed};

/// This end of the conversation.
pub struct PipeRoundtrip {
    message: Vec<u8>,
    to_echo: OwnedFd,
    from_echo: OwnedFd,
    /// The process that echoes.
    _echo: Partners,
}

impl PipeRoundtrip {
    /// Starts the echo for messages of `bytes`.
    pub fn new(bytes: u64) -> Result<Self, TrialProblem> {
        let message = buffer(bytes)?;
        let (echo_in, to_echo) = pipe()?;
        let (from_echo, echo_out) = pipe()?;
        let mut echo = Partners::default();
        echo.add(|| {
            let mut message = message.clone();
            loop {
                read_all(&echo_in, &mut message)?;
                write_all(&echo_out, &message)?;
            }
        })?;
        Ok(Self { message, to_echo, from_echo, _echo: echo })
    }
}

impl Workload for PipeRoundtrip {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let open = window.open();
        for _ in 0..ops {
            write_all(&self.to_echo, &self.message)
                .and_then(|()| read_all(&self.from_echo, &mut self.message))
                .map_err(|error| failed("a round trip", error))?;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
