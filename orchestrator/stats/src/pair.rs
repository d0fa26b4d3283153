use crate::Shift;
use crate::error::{StatsError, check};
use crate::summary::{log_mean, median};

/// One boot of the base and one of the side, at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// Summary of the base's boot: a logarithm.
    pub base: f64,
    /// Summary of the other side's boot: a logarithm.
    pub side: f64,
    /// Whether the base went first, or ran on the first set of CPUs.
    pub base_first: bool,
}

impl Pair {
    /// The logarithm of the ratio of side to base.
    pub fn difference(&self) -> f64 {
        self.side - self.base
    }
}

/// From the differences of the pairs whose side went first to those of the others: twice what the
/// second place adds. `None` without both orders.
pub(crate) fn order_shift(pairs: &[Pair]) -> Result<Option<Shift>, StatsError> {
    let of = |base_first| -> Vec<f64> {
        let own = pairs.iter().filter(|pair| pair.base_first == base_first);
        own.map(Pair::difference).collect()
    };
    let (side_first, base_first) = (of(false), of(true));
    if side_first.is_empty() || base_first.is_empty() {
        return Ok(None);
    }
    Shift::new(&side_first, &base_first).map(Some)
}

/// What it brings that boots are compared in pairs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairSpread {
    /// Standard deviation of the differences within pairs, on the log scale.
    pub paired: f64,
    /// Of the same halves if they were paired at random: the root of the sum of both sides' variances,
    /// the mean over all permutations. The check of Bulej et al., Duet benchmarking, ICPE 2020.
    pub shuffled: f64,
}

/// The fewest pairs whose spread says something.
const SPREAD_NEEDS: usize = 4;

/// The spread of pairs and of their shuffled halves; none of fewer than four.
pub fn pair_spread(pairs: &[Pair]) -> Option<PairSpread> {
    if pairs.len() < SPREAD_NEEDS {
        return None;
    }
    let variance = |of: fn(&Pair) -> f64| -> f64 {
        let mean = pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        let squares: f64 = pairs.iter().map(|pair| (of(pair) - mean).powi(2)).sum();
        squares / (pairs.len() - 1) as f64
    };
    let (base, side) = (variance(|pair| pair.base), variance(|pair| pair.side));
    let paired = variance(Pair::difference).sqrt();
    Some(PairSpread { paired, shuffled: (base + side).sqrt() })
}

/// How the iterations of a boot become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summary {
    /// The mean of their logarithms.
    LogMean,
    /// The median of their logarithms where there are [`MEDIAN_NEEDS`] or more, else the mean.
    LogMedian,
}

/// Fewest iterations of which a median is taken.
pub const MEDIAN_NEEDS: usize = 9;

/// The summary of one boot, a logarithm: of its `values`, warm-up left out, where `planned` were to
/// come.
///
/// # Errors
///
/// `TooFew` below 80 % of `planned`, `NotFinite`, `NotPositive`.
pub fn boot_summary(values: &[f64], planned: usize, how: Summary) -> Result<f64, StatsError> {
    // In whole numbers: 4 of 5 are enough.
    let needed = (planned * 4).div_ceil(5).max(1);
    check(values, needed)?;
    match how {
        Summary::LogMedian if values.len() >= MEDIAN_NEEDS => {
            log_mean(values)?;
            let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
            median(&logs)
        }
        Summary::LogMean | Summary::LogMedian => log_mean(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_summarised_or_invalid() {
        let of = |values: &[f64], planned| boot_summary(values, planned, Summary::LogMean);
        assert!((of(&[1.0, 100.0], 2).unwrap() - 10.0_f64.ln()).abs() < 1e-12);
        assert!(of(&[2.0; 4], 5).is_ok());
        assert_eq!(of(&[2.0; 3], 5), Err(StatsError::TooFew { needed: 4, found: 3 }));
        assert_eq!(of(&[], 0), Err(StatsError::TooFew { needed: 1, found: 0 }));
        assert_eq!(of(&[1.0, 0.0], 2), Err(StatsError::NotPositive(0.0)));
        assert_eq!(of(&[1.0, f64::NAN], 2), Err(StatsError::NotFinite));
    }

    #[test]
    fn pairs_that_drift_together_spread_less_than_shuffled_ones() {
        let pair = |base: f64, side: f64| Pair { base, side, base_first: true };
        let together: Vec<Pair> = (0..8).map(|j| pair(f64::from(j), f64::from(j) + 0.5)).collect();
        let spread = pair_spread(&together).unwrap();
        assert!(spread.paired < 1e-12 && (spread.shuffled - 12.0_f64.sqrt()).abs() < 1e-12);
        let apart = [pair(0.0, 1.0), pair(1.0, 0.0), pair(0.0, 0.0), pair(1.0, 1.0)];
        let spread = pair_spread(&apart).unwrap();
        assert!((spread.paired - spread.shuffled).abs() < 1e-12, "pairing brings nothing");
        assert_eq!(pair_spread(&apart[..3]), None);
    }

    #[test]
    fn medians_need_nine() {
        let mut values = vec![1.0; 8];
        values[0] = 100.0;
        let of = |values: &[f64]| boot_summary(values, 8, Summary::LogMedian).unwrap();
        assert!(of(&values) > 0.5);
        values.push(1.0);
        assert_eq!(of(&values), 0.0);
        values[0] = -1.0;
        let bad = boot_summary(&values, 8, Summary::LogMedian);
        assert_eq!(bad, Err(StatsError::NotPositive(-1.0)));
    }
}
