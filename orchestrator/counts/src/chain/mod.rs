//! Call chains: which function called which, by a shadow stack for every stack of the kernel.
//!
//! Calls and returns are not counted against each other: retpolines return into functions that nobody
//! called, return-stack stuffing calls what never returns, interrupts come between a call and the
//! function called, and tasks give way in the middle of both. A call is known by where its return
//! address lies, and is over when the stack pointer has risen above that.

mod follow;
mod functions;
mod position;
mod recording;
mod tree;

pub(crate) use follow::{Arrival, Follower};
pub(crate) use functions::Functions;
pub(crate) use position::{Call, Ended, Entry};
pub(crate) use tree::NodeTally;

/// Where a block's first byte is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Place of the function among the functions.
    pub function: u32,
    /// It is the function's first byte.
    pub start: bool,
}
