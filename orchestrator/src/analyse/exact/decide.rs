use kduel_stats::{ExactReason, Interval, Margin, StatsError, Work, compare_exact};
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

/// The change that matters unless the user says otherwise: half a percent, and not less than three
/// instructions or nanoseconds.
pub(super) const MARGIN: Margin = Margin { relative: 0.005, absolute: 3.0 };

/// What the values say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub change: f64,
    pub interval: Option<Interval>,
    /// None: inconclusive.
    pub word: Option<ExactWord>,
    pub reason: String,
}

/// Compares the windows of two sides, a list for each seed. `limit` is the margin, relative, for
/// showing.
pub(super) fn decide(
    base: &[Vec<f64>],
    value: &[Vec<f64>],
    margin: Margin,
    limit: f64,
) -> Result<Answer, StatsError> {
    let found = compare_exact(base, value, margin)?;
    let word = match found.work {
        Work::Identical => Some(ExactWord::Identical),
        Work::Equivalent => Some(ExactWord::Equivalent),
        Work::More => Some(ExactWord::MoreInstructions),
        Work::Fewer => Some(ExactWord::FewerInstructions),
        Work::Open => None,
    };
    let limit = number::margin((limit * 1e4).round() / 1e4);
    let within = found.work == Work::Equivalent;
    let reason = match found.reason {
        ExactReason::Equal => "every window is the same, to the last bit".to_owned(),
        ExactReason::Fixed if within => format!("below the margin of {limit}"),
        ExactReason::Fixed => format!("not below the margin of {limit}"),
        ExactReason::Overlap => "windows of one side differ by more than the sides do".to_owned(),
        ExactReason::Sampled if within => format!("shown equal within the margin of {limit}"),
        ExactReason::Sampled => {
            format!("the interval excludes 0 and the change is not below the margin of {limit}")
        }
        ExactReason::Spread { .. } => {
            format!("layouts differ by more than a margin of {limit} can show")
        }
        ExactReason::FewSeeds { needed } => {
            let seeds = count(base.len().min(value.len()), "seed");
            format!("{seeds} cannot give a 95 % interval; at least {needed} are needed")
        }
    };
    Ok(Answer { change: found.change, interval: found.interval, word, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Vec<Vec<f64>> {
        values.iter().map(|value| vec![*value; 2]).collect()
    }

    fn of(base: &[f64], value: &[f64]) -> Answer {
        decide(&seeds(base), &seeds(value), MARGIN, MARGIN.of(base[0])).unwrap()
    }

    #[test]
    fn one_layout_is_told_in_words_of_work() {
        let said = |base, value| {
            let Answer { word, reason, .. } = of(&[base], &[value]);
            (word, reason)
        };
        let (word, reason) = said(1000.0, 1005.1);
        assert_eq!(word, Some(ExactWord::MoreInstructions));
        assert_eq!(reason, "not below the margin of 0.5 %");
        let (word, reason) = said(100.0, 102.0);
        assert_eq!(word, Some(ExactWord::Equivalent));
        assert_eq!(reason, "below the margin of 3 %");
        assert_eq!(said(1000.0, 994.0).0, Some(ExactWord::FewerInstructions));
        let (word, reason) = said(100.0, 100.0);
        assert_eq!(word, Some(ExactWord::Identical));
        assert_eq!(reason, "every window is the same, to the last bit");
        let drifting = decide(&[vec![100.0, 140.0]], &[vec![130.0, 170.0]], MARGIN, 0.03).unwrap();
        assert_eq!(drifting.word, None);
        assert_eq!(drifting.reason, "windows of one side differ by more than the sides do");
    }

    #[test]
    fn few_seeds_say_how_many_are_needed() {
        let base = [100.0, 101.0, 99.5, 100.2, 100.8].map(|value| value * 1000.0);
        let few = of(&base, &base.map(|value| value * 1.2));
        assert_eq!((few.word, few.interval), (None, None));
        assert_eq!(few.reason, "5 seeds cannot give a 95 % interval; at least 6 are needed");
    }
}
