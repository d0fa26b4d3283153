use crate::Interval;
use crate::error::{StatsError, check, check_alpha};
use crate::summary::{mean, variance};

/// The variance of the normal prior over effects, in units of the pairs' variance: an effect of one
/// standard deviation is what the sequence is tightest for.
const PRIOR: f64 = 1.0;

/// The t-mixture confidence sequence for the mean of pair differences (Lai 1976; Wang and Ramdas
/// 2023): its intervals at 1 - alpha cover the mean after *every* pair at once, so that a run may be
/// looked at whenever one likes and stopped for whatever reason.
///
/// With an effect drawn from N(0, PRIOR) standard deviations and a right-Haar prior on the standard
/// deviation, the likelihood ratio against a mean m after n pairs with t = √n (mean - m)/s is
/// g^(-1/2) · ((1 + t²/(n-1)) / (1 + t²/(g(n-1))))^(n/2), g = 1 + n PRIOR. Under m it is a test
/// martingale, and by Ville's inequality seldom above 1/alpha.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixture {
    pairs: f64,
    mean: f64,
    variance: f64,
}

impl Mixture {
    /// Of all pair differences so far.
    ///
    /// # Errors
    ///
    /// `NotFinite`, `TooFew` below two.
    pub fn new(differences: &[f64]) -> Result<Self, StatsError> {
        check(differences, 2)?;
        let (mean, variance) = (mean(differences)?, variance(differences)?);
        check(&[mean, variance], 1)?;
        Ok(Self { pairs: differences.len() as f64, mean, variance })
    }

    /// The mean.
    pub fn estimate(&self) -> f64 {
        self.mean
    }

    /// The sequence's interval after these pairs; `None` where they cannot bound the mean yet.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn interval(&self, alpha: f64) -> Result<Option<Interval>, StatsError> {
        check_alpha(alpha)?;
        let spread = self.spread();
        // The likelihood ratio reaches 1/alpha where (1 + u)/(1 + u/g) = k, with u = t²/(n - 1).
        let k = ((spread.ln() - 2.0 * alpha.ln()) / self.pairs).exp();
        if k >= spread {
            return Ok(None);
        }
        let u = (k - 1.0) / (1.0 - k / spread);
        let half = (u * (self.pairs - 1.0) * self.variance / self.pairs).sqrt();
        let (low, high) = (self.mean - half, self.mean + half);
        Ok(Some(Interval { low, high, confidence: 1.0 - alpha }))
    }

    /// The p-value of "the mean is at most `bound`" that holds at any time; twice what a one-sided
    /// sequence would give.
    pub fn p_above(&self, bound: f64) -> f64 {
        if self.mean <= bound { 1.0 } else { self.p_at(bound) }
    }

    /// As [`Self::p_above`], of "the mean is at least `bound`".
    pub fn p_below(&self, bound: f64) -> f64 {
        if self.mean >= bound { 1.0 } else { self.p_at(bound) }
    }

    /// Fewest pairs with an interval at 1 - `alpha`.
    pub fn fewest(alpha: f64) -> usize {
        let bounded = |n: &usize| (1.0 + *n as f64 * PRIOR).powf((1.0 - *n as f64) / 2.0) < alpha;
        (2..).find(bounded).unwrap_or(2)
    }

    /// The p-value of "the mean is `bound`" that holds at any time.
    pub fn p_at(&self, bound: f64) -> f64 {
        let distance = self.mean - bound;
        if self.variance == 0.0 {
            return if distance == 0.0 { 1.0 } else { self.least() };
        }
        let u = self.pairs * distance * distance / self.variance / (self.pairs - 1.0);
        let spread = self.spread();
        let grown = ((1.0 + u) / (1.0 + u / spread)).ln();
        (spread.ln() / 2.0 - self.pairs / 2.0 * grown).exp().min(1.0)
    }

    /// What the p-value tends to as the distance grows.
    fn least(&self) -> f64 {
        self.spread().powf((1.0 - self.pairs) / 2.0)
    }

    fn spread(&self) -> f64 {
        1.0 + self.pairs * PRIOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_and_p_value_are_duals() {
        let differences = [0.03, 0.01, 0.02, 0.05, -0.01, 0.02, 0.04, 0.015, 0.03, 0.02];
        let mixture = Mixture::new(&differences).unwrap();
        for alpha in [0.2, 0.05, 0.008] {
            let interval = mixture.interval(alpha).unwrap().unwrap();
            for end in [interval.low, interval.high] {
                assert!((mixture.p_at(end) - alpha).abs() < 1e-9, "{alpha}: {}", mixture.p_at(end));
            }
            assert!(mixture.p_above(interval.low) >= alpha - 1e-9);
            assert_eq!(mixture.p_above(interval.high), 1.0);
        }
    }

    #[test]
    fn the_likelihood_ratio_is_the_integral_that_it_stands_for() {
        // Noncentral t over the prior, by hand: with the precision of the effect integrated out the
        // ratio at t = 2, n = 5 is 6^(-1/2) ((1 + 1)/(1 + 1/6))^(5/2).
        let differences: Vec<f64> =
            [-2.0, -1.0, 0.0, 1.0, 2.0].iter().map(|d| d + 2.0_f64.sqrt()).collect();
        let mixture = Mixture::new(&differences).unwrap();
        let ratio = (12.0_f64 / 7.0).powf(2.5) / 6.0_f64.sqrt();
        assert!((mixture.p_at(0.0) - (1.0 / ratio).min(1.0)).abs() < 1e-12);
    }

    #[test]
    fn two_pairs_bound_nothing_and_many_do() {
        assert_eq!(Mixture::new(&[0.1, 0.2]).unwrap().interval(0.05), Ok(None));
        assert_eq!(Mixture::new(&[0.1]), Err(StatsError::TooFew { needed: 2, found: 1 }));
        let still = Mixture::new(&[0.1; 30]).unwrap();
        let interval = still.interval(0.05).unwrap().unwrap();
        assert_eq!((interval.low, interval.high), (0.1, 0.1));
        assert!(still.p_at(0.0) < 1e-9 && still.p_at(0.1) == 1.0);
    }
}
