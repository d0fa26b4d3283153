//! The statistics of kduel: pure, deterministic, no input or output.
//!
//! The unit of replication is the boot and the unit of analysis the pair of boots: everything here
//! takes one number per boot (a logarithm), never one per iteration.

mod calibration;
mod contamination;
mod downgrade;
mod effort;
mod error;
mod exact;
mod family;
mod fisher;
mod geometric;
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
mod unpaired;
mod verdict;
mod walsh;

pub use calibration::{Calibration, FEWEST_PAIRS, MOST_FALSE_ALARMS, calibrate, can_stand_out};
pub use contamination::{Host, retries_allowed, steal_ratio};
pub use downgrade::{Boots, Conditions, Downgrade, doubts};
pub use effort::{
    Cost, Effort, Levels, best_effort, best_repetitions, smallest_detectable, variance_components,
};
pub use error::StatsError;
pub use exact::{Exact, ExactReason, FEWEST_SEEDS, Work, compare_exact};
pub use family::benjamini_hochberg;
pub use fisher::{fisher_difference, fisher_more_failures};
pub use geometric::{GeometricMean, geometric_mean};
pub use interval::Interval;
pub use judge::{Rule, Series, judge, judge_each};
pub use looks::{ALPHA, Look, Looks, QUICK_PAIRS};
pub use margin::Margin;
pub use mixture::Mixture;
pub use pair::{MEDIAN_NEEDS, Pair, PairSpread, Summary, boot_summary, pair_spread};
pub use random::Random;
pub use shift::Shift;
pub use signed_rank::SignedRank;
pub use statistic::Statistic;
pub use student::{Student, student_interval};
pub use summary::{log_mean, mean, median, quantile, variance};
pub use unpaired::{Samples, fewest_a_side, judge_samples};
pub use verdict::{Better, Finding, Reason, Verdict};
pub use walsh::Walsh;
