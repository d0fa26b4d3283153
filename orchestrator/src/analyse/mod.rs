//! From the samples of the sides to one comparison per series. Pure.

mod align;
pub mod annotate;
mod chains;
mod claims;
mod comparison;
mod decide;
mod distribution;
mod exact;
mod failures;
mod mapping;
mod margin;
mod pairing;
pub mod profile;
mod reason;
mod reported;
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
pub use chains::ChainSums;
pub use claims::{Answer, ClaimAnswer, answer_claims};
pub use comparison::{Comparison, SeriesName, Verdict};
pub use distribution::DistributionSummary;
pub use exact::{CountPair, ExactFinding, ExactWord};
pub use failures::FailureGroup;
pub use mapping::{Cpus, Mapped, map, prognosis, stand_ins};
pub use margin::default_margin;
pub use reported::{Agreement, Reported, changes};
pub use run::{Analysis, PairCount, analyse, count_pairs, is_decided, looks_at};
pub use self_test::{record_difference, self_test};
pub use sides::{ExactGuest, SideSummary, cmdline_words, sides_same};
pub use spread::relative_deviation;
pub use trace::{TracedCall, operation, side_by_side};
