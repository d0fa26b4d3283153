use crate::Interval;
use crate::error::{StatsError, check, check_alpha};

/// The sorted differences b_j - a_i of two independent samples, and what follows from them: the
/// two-sample Hodges-Lehmann estimate of the shift from a to b, and the exact interval that the
/// rank-sum test gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Shift {
    differences: Vec<f64>,
    null: RankSum,
}

impl Shift {
    /// From the sample `a` to the sample `b`.
    ///
    /// # Errors
    ///
    /// `NotFinite`, or `TooFew` if one of them is empty.
    pub fn new(a: &[f64], b: &[f64]) -> Result<Self, StatsError> {
        check(a, 1)?;
        check(b, 1)?;
        let mut differences: Vec<f64> =
            b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
        check(&differences, 1)?;
        differences.sort_by(f64::total_cmp);
        Ok(Self { differences, null: RankSum::new(a.len(), b.len()) })
    }

    /// The median of the differences.
    pub fn estimate(&self) -> f64 {
        let last = self.differences.len() - 1;
        self.differences[last / 2] / 2.0 + self.differences[last.div_ceil(2)] / 2.0
    }

    /// The narrowest interval of the exact rank-sum test with a confidence of at least 1 - `alpha`;
    /// `None` where so few values cannot reach it. Under ties it is conservative.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn interval(&self, alpha: f64) -> Result<Option<Interval>, StatsError> {
        check_alpha(alpha)?;
        let tail = |place: &usize| self.null.cdf(place - 1) <= alpha / 2.0;
        let middle = self.differences.len().div_ceil(2);
        // The lower end is the k-th difference: the shift is below it only if U <= k - 1.
        let place = (1..=middle).take_while(tail).last();
        Ok(place.map(|k| Interval {
            low: self.differences[k - 1],
            high: self.differences[self.differences.len() - k],
            confidence: 1.0 - 2.0 * self.null.cdf(k - 1),
        }))
    }

    /// The one-sided p-value of "the shift is `at` or less": at most alpha / 2 exactly when the
    /// interval at 1 - alpha lies above `at`.
    pub fn p_above(&self, at: f64) -> f64 {
        self.null.cdf(self.differences.partition_point(|difference| *difference <= at))
    }

    /// The one-sided p-value of "the shift is `at` or more".
    pub fn p_below(&self, at: f64) -> f64 {
        let below = self.differences.partition_point(|difference| *difference < at);
        self.null.cdf(self.differences.len() - below)
    }
}

/// The exact null distribution of the rank-sum statistic U for two samples without ties: how many of
/// the m n pairs have their second value above the first.
#[derive(Debug, Clone, PartialEq)]
enum RankSum {
    /// P(U <= c) by c.
    Exact(Vec<f64>),
    /// Of so many values that the normal distribution differs in the fourth digit: mean and standard
    /// deviation of U.
    Normal(f64, f64),
}

/// Most products m n for which every order is counted.
const COUNTED: usize = 4096;

impl RankSum {
    /// For `m` and `n` values. Counting takes time of the order m² n² and memory of m n².
    fn new(m: usize, n: usize) -> Self {
        if m * n > COUNTED {
            let (m, n) = (m as f64, n as f64);
            return Self::Normal(m * n / 2.0, (m * n * (m + n + 1.0) / 12.0).sqrt());
        }
        // The largest of all values is one of the m with probability m/(m + n); it is then above all
        // n others, and what is left is the same with one value less.
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]; n + 1];
        for i in 1..=m {
            let mut next: Vec<Vec<f64>> = vec![vec![1.0]];
            for j in 1..=n {
                let (with, without) = (&row[j], &next[j - 1]);
                let (first, second) = (i as f64 / (i + j) as f64, j as f64 / (i + j) as f64);
                let mass = (0..=i * j).map(|u| {
                    let above = u.checked_sub(j).and_then(|u| with.get(u));
                    first * above.unwrap_or(&0.0) + second * without.get(u).unwrap_or(&0.0)
                });
                next.push(mass.collect());
            }
            row = next;
        }
        let mut so_far = 0.0;
        let cumulative = row[n].iter().map(|mass| {
            so_far += mass;
            so_far
        });
        Self::Exact(cumulative.collect())
    }

    /// P(U <= c).
    fn cdf(&self, c: usize) -> f64 {
        match self {
            Self::Exact(cumulative) => cumulative.get(c).copied().unwrap_or(1.0),
            Self::Normal(mean, deviation) => {
                let z = (c as f64 + 0.5 - mean) / deviation;
                0.5 * statrs::function::erf::erfc(-z / std::f64::consts::SQRT_2)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// P(U <= c) by looking at every way to choose which of the m + n ranks are the first sample's.
    fn enumerated(m: usize, n: usize, c: usize) -> f64 {
        let (mut all, mut within) = (0_u32, 0_u32);
        for chosen in 0_u32..1 << (m + n) {
            if chosen.count_ones() as usize != m {
                continue;
            }
            let is_first = |rank: usize| chosen >> rank & 1 == 1;
            let above = |rank: usize| (0..rank).filter(|lower| !is_first(*lower)).count();
            let u: usize = (0..m + n).filter(|rank| is_first(*rank)).map(above).sum();
            all += 1;
            within += u32::from(u <= c);
        }
        f64::from(within) / f64::from(all)
    }

    #[test]
    fn the_distribution_is_that_of_counting_every_order() {
        for (m, n) in [(1, 1), (1, 5), (2, 3), (4, 4), (6, 6), (5, 7)] {
            let null = RankSum::new(m, n);
            for c in 0..=m * n {
                let (found, wanted) = (null.cdf(c), enumerated(m, n, c));
                assert!((found - wanted).abs() < 1e-12, "{m} {n} {c}: {found} {wanted}");
            }
        }
    }

    #[test]
    fn many_values_are_no_worse_for_not_being_counted() {
        let (counted, normal) = (RankSum::new(64, 64), RankSum::new(64, 65));
        assert!(matches!(normal, RankSum::Normal(..)));
        for c in [1500, 1600, 1700, 2048] {
            let scaled = c + c / 64;
            assert!((counted.cdf(c) - normal.cdf(scaled)).abs() < 3e-3, "{c}");
        }
        assert!((RankSum::Normal(2048.0, 209.66).cdf(1700) - counted.cdf(1700)).abs() < 1e-3);
    }

    #[test]
    fn six_and_six_by_the_tables() {
        // The tables give 5 as the critical value of U at 5 %, two-sided, for 6 and 6.
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let b = a.map(|value| value * 1.01 + 10.0);
        let shift = Shift::new(&a, &b).unwrap();
        let interval = shift.interval(0.05).unwrap().unwrap();
        let mut differences: Vec<f64> =
            b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
        differences.sort_by(f64::total_cmp);
        assert_eq!((interval.low, interval.high), (differences[5], differences[30]));
        assert!(interval.confidence >= 0.95 && interval.confidence < 0.97);
        assert_eq!(Shift::new(&a[..3], &b[..3]).unwrap().interval(0.05).unwrap(), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(Shift::new(&[], &[1.0]), Err(StatsError::TooFew { needed: 1, found: 0 }));
        assert_eq!(Shift::new(&[1.0], &[f64::NAN]), Err(StatsError::NotFinite));
        assert_eq!(Shift::new(&[-f64::MAX], &[f64::MAX]), Err(StatsError::NotFinite));
        assert_eq!(Shift::new(&[1.0], &[1.0]).unwrap().interval(1.0), Err(StatsError::BadArgument));
    }

    proptest! {
        #[test]
        fn swapping_mirrors_and_shifting_shifts(
            a in prop::collection::vec(-1e3..1e3_f64, 6..9),
            b in prop::collection::vec(-1e3..1e3_f64, 6..9),
        ) {
            let (there, back) = (Shift::new(&a, &b).unwrap(), Shift::new(&b, &a).unwrap());
            prop_assert!((there.estimate() + back.estimate()).abs() < 1e-9);
            let interval = there.interval(0.05).unwrap().unwrap();
            let mirrored = back.interval(0.05).unwrap().unwrap();
            prop_assert_eq!((interval.low, interval.high), (-mirrored.high, -mirrored.low));
            prop_assert!(interval.low <= there.estimate() && there.estimate() <= interval.high);
            prop_assert_eq!(interval.low > 0.0, there.p_above(0.0) <= 0.025);
            prop_assert_eq!(interval.high < 0.0, there.p_below(0.0) <= 0.025);
        }
    }
}
