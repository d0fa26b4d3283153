use crate::error::StatsError;
use crate::mixture::Mixture;
use crate::student::Student;
use crate::{Interval, Pair, SignedRank, Walsh};

/// What estimate, interval and p-value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistic {
    /// Hodges-Lehmann over pairs, exact Wilcoxon signed-rank: the default.
    SignedRank,
    /// Mean over pairs, Student's t.
    PairedT,
    /// Difference of the means over boots, without pairing, Welch's t.
    Welch,
    /// Mean over pairs, t-mixture confidence sequence.
    Anytime,
}

/// What the pairs of one look say.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum View {
    Rank(Walsh),
    Student(Student),
    Mixture(Mixture),
}

impl Statistic {
    pub(crate) fn view(self, pairs: &[Pair]) -> Result<View, StatsError> {
        let differences = || pairs.iter().map(Pair::difference).collect::<Vec<f64>>();
        Ok(match self {
            Self::SignedRank => View::Rank(Walsh::new(&differences())?),
            Self::PairedT => View::Student(Student::paired(&differences())?),
            Self::Welch => {
                let base: Vec<f64> = pairs.iter().map(|pair| pair.base).collect();
                let side: Vec<f64> = pairs.iter().map(|pair| pair.side).collect();
                View::Student(Student::welch(&base, &side)?)
            }
            Self::Anytime => View::Mixture(Mixture::new(&differences())?),
        })
    }

    /// Fewest pairs that can have an interval at 1 - `alpha`.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn fewest(self, alpha: f64) -> Result<usize, StatsError> {
        match self {
            Self::SignedRank => SignedRank::fewest(alpha),
            Self::PairedT | Self::Welch => Ok(2),
            Self::Anytime => Ok(Mixture::fewest(alpha)),
        }
    }
}

impl View {
    pub fn estimate(&self) -> f64 {
        match self {
            Self::Rank(walsh) => walsh.estimate(),
            Self::Student(student) => student.estimate(),
            Self::Mixture(mixture) => mixture.estimate(),
        }
    }

    /// At 1 - `alpha`; `None` where so few pairs cannot have one.
    pub fn interval(&self, alpha: f64) -> Result<Option<Interval>, StatsError> {
        match self {
            Self::Rank(walsh) => walsh.interval(alpha),
            Self::Student(student) => student.interval(alpha).map(Some),
            Self::Mixture(mixture) => mixture.interval(alpha),
        }
    }

    /// The two-sided p-value of "no difference": at most alpha exactly when the interval at
    /// 1 - alpha excludes 0.
    pub fn p_difference(&self) -> Result<f64, StatsError> {
        Ok(match self {
            Self::Rank(walsh) => walsh.p_value(),
            Self::Student(student) => {
                (2.0 * student.p_above(0.0)?.min(student.p_below(0.0)?)).min(1.0)
            }
            Self::Mixture(mixture) => mixture.p_at(0.0),
        })
    }

    /// The p-value of "the difference is `delta` or more, in either direction", by two one-sided
    /// tests: at most alpha when the interval at 1 - 2 alpha (of a sequence: at 1 - alpha) lies
    /// within the margin.
    pub fn p_equivalence(&self, delta: f64) -> Result<f64, StatsError> {
        Ok(match self {
            Self::Rank(walsh) => walsh.p_above(-delta).max(walsh.p_below(delta)),
            Self::Student(student) => student.p_above(-delta)?.max(student.p_below(delta)?),
            Self::Mixture(mixture) => mixture.p_above(-delta).max(mixture.p_below(delta)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(differences: &[f64]) -> Vec<Pair> {
        let pair = |(index, d): (usize, &f64)| Pair {
            base: 1.0 + index as f64 / 64.0,
            side: 1.0 + index as f64 / 64.0 + d,
            base_first: index % 2 == 0,
        };
        differences.iter().enumerate().map(pair).collect()
    }

    const ALL: [Statistic; 4] =
        [Statistic::SignedRank, Statistic::PairedT, Statistic::Welch, Statistic::Anytime];

    #[test]
    fn p_values_are_the_duals_of_the_intervals() {
        let d: Vec<f64> = (0..16).map(|i| f64::from(i * 7 % 16 - 6) / 128.0).collect();
        for statistic in ALL {
            for shift in [-0.1, -0.03, 0.0, 0.02, 0.05] {
                let moved: Vec<f64> = d.iter().map(|d| d + shift).collect();
                let view = statistic.view(&pairs(&moved)).unwrap();
                for alpha in [0.2, 0.05, 0.008] {
                    let interval = view.interval(alpha).unwrap().unwrap();
                    let p = view.p_difference().unwrap();
                    assert_eq!(p <= alpha, interval.excludes_zero(), "{statistic:?} {shift}");
                    let inner = if statistic == Statistic::Anytime { alpha } else { 2.0 * alpha };
                    let inner = view.interval(inner).unwrap().unwrap();
                    let p = view.p_equivalence(0.06).unwrap();
                    assert_eq!(p <= alpha, inner.within(0.06), "{statistic:?} {shift} {alpha}");
                }
            }
        }
    }

    #[test]
    fn fewest_pairs_have_an_interval_and_one_less_has_none() {
        for statistic in ALL {
            for alpha in [0.05, 0.008] {
                let fewest = statistic.fewest(alpha).unwrap();
                let d: Vec<f64> = (0..fewest).map(|i| i as f64 / 64.0).collect();
                let interval = |d: &[f64]| {
                    statistic.view(&pairs(d)).ok().and_then(|view| view.interval(alpha).unwrap())
                };
                assert!(interval(&d).is_some(), "{statistic:?} {fewest}");
                assert!(interval(&d[1..]).is_none(), "{statistic:?} {fewest}");
            }
        }
    }
}
