use kduel_protocol::Better;
use serde::{Deserialize, Serialize};

use super::ExactFinding;

/// One metric of one workload of one experiment at one set of dimensions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SeriesName {
    /// The experiment.
    pub experiment: String,
    /// The workload with the parameters that differ from their defaults or are swept:
    /// `pipe-roundtrip bytes=4096`.
    pub workload: String,
    /// The metric.
    pub metric: String,
}

/// A candidate against the base, for one series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Comparison {
    /// Which series.
    pub series: SeriesName,
    /// The candidate's side.
    pub side: String,
    /// The unit of `base` and `value`.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Whether the verdict decides the run.
    pub primary: bool,
    /// The base's location: exp of the median over boots of the boot summaries.
    pub base: Option<f64>,
    /// The candidate's location.
    pub value: Option<f64>,
    /// exp(Hodges-Lehmann over pairs of log(value) - log(base)) - 1; in quick runs the mean over pairs.
    pub change: Option<f64>,
    /// Lower end of the interval of `change`; absent if there are too few pairs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval, 0 to 1: what it really is, not what was asked for.
    pub confidence: Option<f64>,
    /// The change that matters, relative.
    pub margin: f64,
    /// Valid pairs.
    pub pairs: usize,
    /// Pairs dropped.
    pub dropped: usize,
    /// What comes out with the pairs that the host spoilt, where there are any.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub all_pairs: Option<AllPairs>,
    /// What follows.
    pub verdict: Verdict,
    /// Why, in one sentence.
    pub reason: String,
    /// What only timed runs have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timed: Option<Box<TimedFinding>>,
    /// What only exact runs have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exact: Option<Box<ExactFinding>>,
}

/// What is known of timed boots beside their numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TimedFinding {
    /// The part of their time that the host took from the base's vCPUs during the trial: the median
    /// over boots. Absent where the host does not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steal_base: Option<f64>,
    /// From the candidate's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub steal: Option<f64>,
    /// Standard deviation of the differences within valid pairs, on the log scale; absent below four.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pair_sd: Option<f64>,
    /// Of the same halves if they were paired at random: what it brings to pair them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shuffled_sd: Option<f64>,
}

/// The answer if no pair were dropped for what the host did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AllPairs {
    /// Pairs, contaminated ones among them.
    pub pairs: usize,
    /// As in the comparison.
    pub change: Option<f64>,
    /// Likewise.
    pub low: Option<f64>,
    /// Likewise.
    pub high: Option<f64>,
    /// Likewise.
    pub verdict: Verdict,
}

/// What follows from a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The candidate does not boot, panics or hangs, and the base does not.
    Fails,
    /// Worse by at least the margin.
    Regression,
    /// No valid pair, or nothing comparable.
    Invalid,
    /// Not enough was seen to say.
    Inconclusive,
    /// Better by at least the margin.
    Improvement,
    /// Shown equivalent within the margin.
    NoChange,
}

impl Verdict {
    /// As it is said in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Fails => "fails",
            Self::Regression => "regression",
            Self::Invalid => "invalid",
            Self::Inconclusive => "inconclusive",
            Self::Improvement => "improvement",
            Self::NoChange => "no change",
        }
    }
}
