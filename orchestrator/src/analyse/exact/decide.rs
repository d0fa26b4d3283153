use kduel_stats::{Interval, Shift, StatsError};
use serde::{Deserialize, Serialize};

use crate::analyse::Verdict;
use crate::report::number;
use crate::text::count;

/// What an exact comparison comes to, in words of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExactWord {
    /// Every window of one side is the same window of the other, to the last bit.
    Identical,
    /// Within the margin.
    Equivalent,
    /// More, by the margin or beyond it.
    MoreInstructions,
    /// Less, likewise.
    FewerInstructions,
    /// More on one CPU model, less on another.
    DependsOnCpu,
    /// What was done twice came out differently.
    NotExact,
}

impl ExactWord {
    /// As it is said in a sentence. `metric` is the one that was compared.
    pub fn words(self, metric: &str) -> &'static str {
        let time = metric == kduel_protocol::ExactMetric::GuestTime.name();
        match self {
            Self::Identical => "identical",
            Self::Equivalent => "equivalent",
            Self::MoreInstructions if time => "more guest time",
            Self::FewerInstructions if time => "less guest time",
            Self::MoreInstructions => "more instructions",
            Self::FewerInstructions => "fewer instructions",
            Self::DependsOnCpu => "depends on CPU",
            Self::NotExact => "not exact",
        }
    }

    /// What it means for the run. Work that grew is what a patch's author wants to be told.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Identical | Self::Equivalent => Verdict::NoChange,
            Self::MoreInstructions => Verdict::Regression,
            Self::FewerInstructions => Verdict::Improvement,
            Self::DependsOnCpu => Verdict::Inconclusive,
            Self::NotExact => Verdict::Invalid,
        }
    }
}

/// The change that matters, relative, beside which [`LEAST`] counts as well.
const MARGIN: f64 = 0.005;

/// The least difference that matters, in the metric's unit: three instructions, three nanoseconds.
const LEAST: f64 = 3.0;

/// Fewest seeds with an interval.
pub(super) const FEWEST_SEEDS: usize = 6;

/// The margin for a base of this value, relative.
pub(super) fn margin(base: f64) -> f64 {
    if base > 0.0 { MARGIN.max(LEAST / base) } else { MARGIN }
}

/// What the values say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub change: f64,
    pub interval: Option<Interval>,
    /// None: inconclusive.
    pub word: Option<ExactWord>,
    pub reason: String,
}

/// How the windows of two sides lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Windows {
    /// Each is the same, to the last bit.
    Identical,
    /// Some of either side lie among the other's.
    Overlap,
    /// All of one side lie below the other's.
    Apart,
}

/// One layout: there is nothing to estimate, only to say how far two numbers are apart. Windows that
/// drift, each costing more than the one before, can hide a difference or feign one.
pub(super) fn decide_fixed(base: f64, value: f64, windows: Windows) -> Answer {
    let margin = margin(base);
    let change = if base == value { 0.0 } else { value / base - 1.0 };
    let limit = number::margin(round(margin));
    let (word, reason) = if windows == Windows::Identical {
        (Some(ExactWord::Identical), "every window is the same, to the last bit".to_owned())
    } else if change.abs() < margin {
        (Some(ExactWord::Equivalent), format!("below the margin of {limit}"))
    } else if windows == Windows::Overlap {
        (None, "windows of one side differ by more than the sides do".to_owned())
    } else {
        (Some(direction(change)), format!("not below the margin of {limit}"))
    };
    Answer { change, interval: None, word, reason }
}

/// Several layouts, drawn anew for each seed: the seed is what is replicated, and two kernels draw
/// different layouts from one seed, so the samples are independent.
pub(super) fn decide_sampled(base: &[f64], value: &[f64]) -> Result<Answer, StatsError> {
    let logs = |values: &[f64]| -> Result<Vec<f64>, StatsError> {
        values.iter().map(|value| kduel_stats::log_mean(&[*value])).collect()
    };
    let (a, b) = (logs(base)?, logs(value)?);
    let shift = Shift::new(&a, &b)?;
    let margin = margin(kduel_stats::median(base)?);
    let delta = margin.ln_1p();
    let enough = a.len().min(b.len()) >= FEWEST_SEEDS;
    let interval = |alpha| if enough { shift.interval(alpha) } else { Ok(None) };
    let (estimate, limit) = (shift.estimate(), number::margin(round(margin)));
    let (word, reason) = match (interval(0.05)?, interval(0.10)?) {
        (Some(interval), _) if interval.excludes_zero() && estimate.abs() >= delta => (
            Some(direction(estimate)),
            format!("the interval excludes 0 and the change is not below the margin of {limit}"),
        ),
        (Some(_), Some(inner)) if inner.within(delta) => {
            (Some(ExactWord::Equivalent), format!("shown equal within the margin of {limit}"))
        }
        (Some(_), _) => (None, format!("layouts differ by more than a margin of {limit} can show")),
        (None, _) => (
            None,
            format!(
                "{} cannot give a 95 % interval; at least {FEWEST_SEEDS} are needed",
                count(a.len().min(b.len()), "seed")
            ),
        ),
    };
    Ok(Answer { change: estimate.exp_m1(), interval: interval(0.05)?, word, reason })
}

fn direction(change: f64) -> ExactWord {
    if change > 0.0 { ExactWord::MoreInstructions } else { ExactWord::FewerInstructions }
}

/// To two digits, for showing.
fn round(margin: f64) -> f64 {
    (margin * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_layout_has_no_interval_and_a_margin() {
        let word = |base, value| decide_fixed(base, value, Windows::Apart).word;
        assert_eq!(word(1000.0, 1004.9), Some(ExactWord::Equivalent));
        assert_eq!(word(1000.0, 1005.1), Some(ExactWord::MoreInstructions));
        assert_eq!(word(1000.0, 994.0), Some(ExactWord::FewerInstructions));
        // Two instructions in a hundred are nothing to talk about, four are.
        assert_eq!(word(100.0, 102.0), Some(ExactWord::Equivalent));
        assert_eq!(word(100.0, 104.0), Some(ExactWord::MoreInstructions));
        assert_eq!(decide_fixed(100.0, 150.0, Windows::Overlap).word, None);
        let same = decide_fixed(100.0, 100.0, Windows::Identical);
        assert_eq!((same.word, same.change), (Some(ExactWord::Identical), 0.0));
        assert_eq!(word(100.0, 100.0), Some(ExactWord::Equivalent));
    }

    #[test]
    fn seeds_give_an_interval_from_six_on() {
        let base = [100.0, 101.0, 99.5, 100.2, 100.8, 99.9].map(|value| value * 1000.0);
        let more = base.map(|value| value * 1.2);
        let found = decide_sampled(&base, &more).unwrap();
        assert_eq!(found.word, Some(ExactWord::MoreInstructions));
        assert!((found.change - 0.2).abs() < 0.01 && found.interval.unwrap().confidence >= 0.95);
        let few = decide_sampled(&base[..5], &more[..5]).unwrap();
        assert_eq!((few.word, few.interval), (None, None));
        assert!(few.reason.starts_with("5 seeds cannot"), "{}", few.reason);
        let tight = base.map(|value| 100_000.0 + (value - 100_000.0) / 100.0);
        assert_eq!(decide_sampled(&tight, &tight).unwrap().word, Some(ExactWord::Equivalent));
        assert_eq!(decide_sampled(&base, &base).unwrap().word, None);
    }
}
