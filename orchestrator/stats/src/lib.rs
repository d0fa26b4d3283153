//! The statistics of kduel: pure, deterministic, no input or output.
//!
//! The unit of replication is the boot and the unit of analysis the pair of boots: everything here
//! takes one number per boot (a logarithm), never one per iteration.

mod downgrade;
mod error;
mod family;
mod fisher;
mod interval;
mod judge;
mod looks;
mod margin;
mod mixture;
mod pair;
mod random;
mod shift;
mod signed_rank;
pub mod simulate;
mod statistic;
mod student;
mod summary;
mod verdict;
mod walsh;

pub use downgrade::{Boots, Conditions, Downgrade, doubts};
pub use error::StatsError;
pub use family::benjamini_hochberg;
pub use fisher::{fisher_difference, fisher_more_failures};
pub use interval::Interval;
pub use judge::{Rule, Series, judge};
pub use looks::{ALPHA, Look, Looks, QUICK_PAIRS};
pub use margin::Margin;
pub use mixture::Mixture;
pub use pair::{MEDIAN_NEEDS, Pair, Summary, boot_summary};
pub use random::Random;
pub use shift::Shift;
pub use signed_rank::SignedRank;
pub use statistic::Statistic;
pub use student::{Student, student_interval};
pub use summary::{log_mean, mean, median, quantile, variance};
pub use verdict::{Better, Finding, Reason, Verdict};
pub use walsh::Walsh;
