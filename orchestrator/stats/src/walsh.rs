use crate::error::{StatsError, check};
use crate::{Interval, SignedRank};

/// The sorted Walsh averages (d_i + d_j)/2, i <= j, of pair differences, and what follows from them:
/// the Hodges-Lehmann estimate, the exact interval and the exact p-value.
///
/// Estimate, interval and p-value fit together: p <= alpha exactly when the interval at 1 - alpha
/// does not cover 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Walsh {
    averages: Vec<f64>,
    null: SignedRank,
}

impl Walsh {
    /// Of `differences`, one per pair.
    ///
    /// # Errors
    ///
    /// `NotFinite`, or `TooFew` if there is none.
    pub fn new(differences: &[f64]) -> Result<Self, StatsError> {
        check(differences, 1)?;
        let mut averages: Vec<f64> = differences
            .iter()
            .enumerate()
            // Halved before they are added, so that nothing overflows.
            .flat_map(|(i, a)| differences[i..].iter().map(move |b| a / 2.0 + b / 2.0))
            .collect();
        averages.sort_by(f64::total_cmp);
        Ok(Self { averages, null: SignedRank::new(differences.len()) })
    }

    /// The number of pairs.
    pub fn pairs(&self) -> usize {
        self.null.pairs()
    }

    /// The Hodges-Lehmann estimate of the pseudo-median: the median of the Walsh averages.
    pub fn estimate(&self) -> f64 {
        let last = self.averages.len() - 1;
        self.averages[last / 2] / 2.0 + self.averages[last.div_ceil(2)] / 2.0
    }

    /// The narrowest interval of the exact signed-rank test with a confidence of at least
    /// 1 - `alpha`; `None` where this many pairs cannot reach it. Under ties it is conservative.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn interval(&self, alpha: f64) -> Result<Option<Interval>, StatsError> {
        let place = self.null.place(alpha)?;
        // For an alpha near 1 the ends would cross; the middle is then the whole interval.
        let place = place.map(|k| k.min(self.averages.len().div_ceil(2)));
        Ok(place.map(|k| Interval {
            low: self.averages[k - 1],
            high: self.averages[self.averages.len() - k],
            confidence: self.null.confidence(k),
        }))
    }

    /// The two-sided p-value of "the differences are symmetric about 0".
    ///
    /// A Walsh average of exactly 0, which only zeros and ties produce, counts against the
    /// alternative on either side. That makes p exact without ties, conservative with them, and
    /// the dual of [`Self::interval`] always; dropping zeros would break both.
    pub fn p_value(&self) -> f64 {
        (2.0 * self.p_above(0.0).min(self.p_below(0.0))).min(1.0)
    }

    /// The one-sided p-value of "the centre is at most `bound`". Ties as in [`Self::p_value`].
    pub fn p_above(&self, bound: f64) -> f64 {
        self.null.cdf(self.averages.partition_point(|w| *w <= bound))
    }

    /// The one-sided p-value of "the centre is at least `bound`".
    pub fn p_below(&self, bound: f64) -> f64 {
        self.null.cdf(self.averages.len() - self.averages.partition_point(|w| *w < bound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_pairs_by_hand() {
        // Walsh averages of 1, 2, 6: 1, 1.5, 2, 3.5, 4, 6.
        let walsh = Walsh::new(&[6.0, 1.0, 2.0]).unwrap();
        assert_eq!(walsh.estimate(), 2.75);
        assert_eq!(walsh.interval(0.05).unwrap(), None);
        let widest = walsh.interval(0.25).unwrap().unwrap();
        assert_eq!((widest.low, widest.high, widest.confidence), (1.0, 6.0, 0.75));
        assert_eq!(walsh.p_value(), 0.25);
    }

    #[test]
    #[expect(clippy::approx_constant, reason = "a score of 3.14 is no π")]
    fn nine_pairs_as_published() {
        // Depression scores of Hollander and Wolfe, example 3.1: V = 5 of 45, p = 0.0390625;
        // estimate and interval as R's wilcox.test gives them.
        let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
        let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
        let differences: Vec<f64> = after.iter().zip(before).map(|(a, b)| a - b).collect();
        let walsh = Walsh::new(&differences).unwrap();
        assert_eq!(walsh.p_value(), 0.039_062_5);
        assert!((walsh.estimate() + 0.46).abs() < 1e-9, "{}", walsh.estimate());
        let interval = walsh.interval(0.05).unwrap().unwrap();
        assert!((interval.low + 0.786).abs() < 1e-9, "{interval:?}");
        assert!((interval.high + 0.01).abs() < 1e-9, "{interval:?}");
        assert!((interval.confidence - (1.0 - 0.039_062_5)).abs() < 1e-12, "{interval:?}");
    }

    #[test]
    fn equal_differences_give_a_point() {
        let walsh = Walsh::new(&[0.1; 8]).unwrap();
        let interval = walsh.interval(0.05).unwrap().unwrap();
        assert_eq!((interval.low, walsh.estimate(), interval.high), (0.1, 0.1, 0.1));
        assert_eq!(Walsh::new(&[0.0; 8]).unwrap().p_value(), 1.0);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(Walsh::new(&[]), Err(StatsError::TooFew { needed: 1, found: 0 }));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Walsh::new(&[1.0, bad]), Err(StatsError::NotFinite));
        }
        let huge = Walsh::new(&[f64::MAX; 6]).unwrap();
        assert!(huge.estimate().is_finite());
    }
}
