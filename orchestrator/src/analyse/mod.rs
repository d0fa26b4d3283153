//! From the samples of the sides to one comparison per series. Pure.

mod align;
pub mod annotate;
mod calibration;
mod chains;
mod comparison;
mod contamination;
mod decide;
mod distribution;
mod ecdf;
mod effort;
mod exact;
mod failures;
mod margin;
mod pairing;
mod points;
pub mod profile;
mod reason;
mod run;
mod self_test;
mod series;
mod sides;
mod spread;
#[cfg(test)]
mod tests;
mod trace;
mod warnings;

pub use align::{Call, SharedChain, shared_chains};
pub use calibration::{SeriesCalibration, calibrations};
pub use chains::ChainSums;
pub use comparison::{AllPairs, Comparison, SeriesName, Verdict};
pub use contamination::{SideNoise, worth_repeating};
pub use distribution::DistributionSummary;
pub use ecdf::Ecdf;
pub use effort::{Sight, best_within, sights};
pub use exact::{CountPair, ExactFinding, ExactWord};
pub use failures::FailureGroup;
pub use margin::{calibrated, default_margin, timed_margin};
pub use points::{Fate, Half, PairPoint, Points, points};
pub use run::{Analysis, PairCount, analyse, count_pairs, is_decided, looks_at};
pub use self_test::{record_difference, self_test};
pub use sides::{ExactGuest, SideSummary, cmdline_words, sides_same};
pub use spread::relative_deviation;
pub use trace::{TracedCall, operation, side_by_side};
