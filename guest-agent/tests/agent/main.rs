//! The whole agent, run on this very machine, as root or not.
#![expect(clippy::disallowed_methods, reason = "runs the program under test")]

#[cfg(test)]
mod common;
#[cfg(test)]
mod fork_is_fork;
#[cfg(test)]
mod limits;
mod together;
#[cfg(test)]
mod workloads;
