use crate::error::{StatsError, check_alpha};

/// The exact null distribution of Wilcoxon's signed-rank statistic W+ for `n` pairs without ties.
///
/// W+ is the sum of the ranks 1..=n that were drawn with a fair coin each, so it takes the values
/// 0..=n(n+1)/2. Probabilities are dyadic fractions: exact up to 53 pairs, correct to about
/// n roundings of the last place beyond.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedRank {
    n: usize,
    cumulative: Vec<f64>,
}

impl SignedRank {
    /// For `n` pairs. Takes time and memory of the order n³ and n².
    pub fn new(n: usize) -> Self {
        let mut mass = vec![0.0; n * (n + 1) / 2 + 1];
        mass[0] = 1.0;
        let mut top = 0;
        for rank in 1..=n {
            top += rank;
            for sum in (0..=top).rev() {
                let with = if sum >= rank { mass[sum - rank] } else { 0.0 };
                mass[sum] = (mass[sum] + with) / 2.0;
            }
        }
        let mut so_far = 0.0;
        for entry in &mut mass {
            so_far += *entry;
            *entry = so_far;
        }
        Self { n, cumulative: mass }
    }

    /// The number of pairs.
    pub fn pairs(&self) -> usize {
        self.n
    }

    /// P(W+ <= c).
    pub fn cdf(&self, c: usize) -> f64 {
        self.cumulative.get(c).copied().unwrap_or(1.0)
    }

    /// The place k, from 1, of the interval's lower end among the sorted Walsh averages:
    /// k = 1 + max{c : P(W+ <= c) <= alpha/2}. `None` if even the widest interval has a confidence
    /// below 1 - alpha.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn place(&self, alpha: f64) -> Result<Option<usize>, StatsError> {
        check_alpha(alpha)?;
        let fitting = self.cumulative.partition_point(|p| *p <= alpha / 2.0);
        Ok((fitting > 0).then_some(fitting))
    }

    /// The fewest pairs whose widest interval has a confidence of at least 1 - `alpha`: the smallest
    /// two-sided p is 2/2^n.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1.
    pub fn fewest(alpha: f64) -> Result<usize, StatsError> {
        check_alpha(alpha)?;
        // No more halvings than a number above 0 can take.
        let halved = std::iter::successors(Some(1.0_f64), |p| Some(p / 2.0));
        Ok(halved.take_while(|p| *p > alpha).count() + 1)
    }

    /// The confidence of the interval from the k-th smallest to the k-th largest Walsh average.
    pub fn confidence(&self, k: usize) -> f64 {
        if k == 0 { 1.0 } else { (1.0 - 2.0 * self.cdf(k - 1)).max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_of_four_pairs_is_the_one_in_the_tables() {
        // Subsets of {1, 2, 3, 4} by their sum, counted by hand.
        let counts = [1, 1, 1, 2, 2, 2, 2, 2, 1, 1, 1];
        let null = SignedRank::new(4);
        let mut so_far = 0;
        for (sum, count) in counts.iter().enumerate() {
            so_far += count;
            assert_eq!(null.cdf(sum), f64::from(so_far) / 16.0, "W+ <= {sum}");
        }
    }

    #[test]
    fn counts_agree_with_enumeration_of_all_signs() {
        for n in 1..=12_usize {
            let null = SignedRank::new(n);
            let sums: Vec<usize> = (0..1_usize << n)
                .map(|signs| (0..n).filter(|bit| signs >> bit & 1 == 1).map(|bit| bit + 1).sum())
                .collect();
            for c in 0..=n * (n + 1) / 2 {
                let below = sums.iter().filter(|sum| **sum <= c).count();
                assert_eq!(null.cdf(c), below as f64 / sums.len() as f64, "n = {n}, c = {c}");
            }
        }
    }

    #[test]
    fn places_are_those_of_the_method() {
        let intervals = [(0.008, 8, 1), (0.012, 12, 8), (0.015, 20, 41), (0.015, 30, 116)];
        let equivalence = [(0.016, 8, 2), (0.024, 12, 11), (0.03, 20, 48), (0.03, 30, 128)];
        for (alpha, n, k) in intervals.into_iter().chain(equivalence) {
            assert_eq!(SignedRank::new(n).place(alpha), Ok(Some(k)), "alpha {alpha}, {n} pairs");
        }
    }

    #[test]
    fn six_pairs_are_the_fewest_for_95_percent() {
        assert_eq!(SignedRank::new(5).place(0.05), Ok(None));
        assert_eq!(SignedRank::new(6).place(0.05), Ok(Some(1)));
        assert_eq!(SignedRank::new(6).confidence(1), 1.0 - 2.0 / 64.0);
        for (alpha, n) in [(0.05, 6), (0.008, 8), (0.0078, 9), (0.5, 2), (0.7, 2)] {
            assert_eq!(SignedRank::fewest(alpha), Ok(n));
            assert!(SignedRank::new(n).place(alpha).unwrap().is_some());
            assert_eq!(SignedRank::new(n - 1).place(alpha), Ok(None));
        }
    }

    #[test]
    fn large_distributions_are_symmetric_and_sum_to_one() {
        for n in [40, 53, 60, 150] {
            let null = SignedRank::new(n);
            let top = n * (n + 1) / 2;
            assert!((null.cdf(top) - 1.0).abs() < 1e-12);
            for c in [top / 5, top / 3, top / 2 - 1] {
                let other_tail = 1.0 - null.cdf(top - c - 1);
                assert!((null.cdf(c) - other_tail).abs() < 1e-12, "n = {n}, c = {c}");
            }
        }
    }

    #[test]
    fn levels_outside_their_range_are_refused() {
        for alpha in [0.0, 1.0, -0.1, f64::NAN] {
            assert_eq!(SignedRank::new(8).place(alpha), Err(StatsError::BadArgument));
        }
    }
}
