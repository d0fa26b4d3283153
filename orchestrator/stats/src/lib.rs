//! The statistics of kduel: pure, deterministic, no input or output.
//!
//! The unit of replication is the boot and the unit of analysis the pair of boots: everything here
//! takes one number per pair (a difference of logarithms), never one per iteration.

mod error;
mod fisher;
mod interval;
mod shift;
mod signed_rank;
mod student;
mod summary;
mod walsh;

pub use error::StatsError;
pub use fisher::fisher_more_failures;
pub use interval::Interval;
pub use shift::Shift;
pub use signed_rank::SignedRank;
pub use student::student_interval;
pub use summary::{log_mean, mean, median, quantile};
pub use walsh::Walsh;
