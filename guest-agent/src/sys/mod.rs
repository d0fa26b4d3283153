//! Everything that needs libc or `unsafe`; the rest of the agent goes through here or rustix.
#![expect(
    unsafe_code,
    reason = "fork, execve, wait4, getrusage, mmap, ioctl, perf events, signal sets and marks have no \
              safe form"
)]

mod early;
mod entropy;
mod mark;
mod memory;
mod network;
mod perf;
mod process;
mod signals;
mod usage;

pub use entropy::seed_pool;
pub use mark::{mark_begin, mark_end};
pub use memory::{Mapping, heap_end, heap_up_and_down};
pub use network::{default_route, link_up, set_address};
pub use perf::{Counter, Every, PerfEvent, Sampler};
pub use process::{Ended, Exec, Usage, fork_child, wait, wait_usage};
pub use signals::{Caught, Signals, default_sigpipe, handle_user_signal};
pub use usage::own_usage;

use std::io;

/// The result of a C call that answers -1 for an error.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
