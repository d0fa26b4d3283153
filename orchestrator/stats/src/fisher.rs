use statrs::distribution::{Discrete, DiscreteCDF, Hypergeometric};

use crate::StatsError;

/// Fisher's exact test, one-sided: the probability that at least `failed` of `of` boots of one side
/// fail when `base_failed` of `base_of` of the other do and the side makes no difference.
///
/// # Errors
///
/// `BadArgument` if more failed than there were, or a side has no boot.
pub fn fisher_more_failures(
    failed: u64,
    of: u64,
    base_failed: u64,
    base_of: u64,
) -> Result<f64, StatsError> {
    if failed > of || base_failed > base_of || of == 0 || base_of == 0 {
        return Err(StatsError::BadArgument);
    }
    if failed == 0 {
        return Ok(1.0);
    }
    let all_failed = failed + base_failed;
    let distribution =
        Hypergeometric::new(of + base_of, all_failed, of).map_err(|_| StatsError::BadArgument)?;
    Ok(distribution.sf(failed - 1))
}

/// Fisher's exact test, two-sided: the probability of a table that is at most as likely as the one
/// found, if `a` of `a_of` and `b` of `b_of` come from one rate.
///
/// # Errors
///
/// `BadArgument` if more happened than there were, or a side has none.
pub fn fisher_difference(a: u64, a_of: u64, b: u64, b_of: u64) -> Result<f64, StatsError> {
    if a > a_of || b > b_of || a_of == 0 || b_of == 0 {
        return Err(StatsError::BadArgument);
    }
    let table =
        Hypergeometric::new(a_of + b_of, a + b, a_of).map_err(|_| StatsError::BadArgument)?;
    // By logarithms: the binomials of a thousand boots are beyond any number.
    let probability = |x| table.ln_pmf(x).exp();
    // Tables that are equally likely may differ in their last digits.
    let limit = probability(a) * (1.0 + 1e-7);
    let possible = (a + b).saturating_sub(b_of)..=(a + b).min(a_of);
    Ok(possible.map(probability).filter(|p| *p <= limit).sum::<f64>().min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_of_eight_against_none_is_the_fewest_that_convinces() {
        let p = |failed| fisher_more_failures(failed, 8, 0, 8).unwrap();
        assert!((p(4) - 70.0 / 1820.0).abs() < 1e-9, "{}", p(4));
        assert!((p(3) - 0.1).abs() < 1e-9, "{}", p(3));
        assert!((fisher_more_failures(3, 3, 0, 3).unwrap() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn tea_tasting() {
        let p = fisher_more_failures(3, 4, 1, 4).unwrap();
        assert!((p - 17.0 / 70.0).abs() < 1e-9, "{p}");
        assert_eq!(fisher_more_failures(0, 4, 4, 4), Ok(1.0));
    }

    #[test]
    fn two_sided_by_hand() {
        let p = |a, b| fisher_difference(a, 4, b, 4).unwrap();
        // Tables of tea tasting: 1, 16, 36, 16, 1 of 70.
        assert!((p(3, 1) - 34.0 / 70.0).abs() < 1e-9, "{}", p(3, 1));
        assert!((p(4, 0) - 2.0 / 70.0).abs() < 1e-9, "{}", p(4, 0));
        assert_eq!(p(0, 0), 1.0);
        assert!((p(2, 2) - 1.0).abs() < 1e-9);
        // C(6, x) C(9, 6 - x) for x from 0 to 6.
        let ways = [84, 756, 1890, 1680, 540, 54, 1].map(f64::from);
        let all: f64 = ways.iter().sum();
        let rare: f64 = ways.iter().filter(|ways| **ways <= 54.0).sum();
        let unequal = fisher_difference(5, 6, 1, 9).unwrap();
        assert!((unequal - rare / all).abs() < 1e-9, "{unequal}");
        assert_eq!(fisher_difference(5, 4, 0, 4), Err(StatsError::BadArgument));
    }

    #[test]
    fn a_thousand_boots_are_not_too_many() {
        let p = |a, b| fisher_difference(a, 1000, b, 1000).unwrap();
        assert!((p(0, 0) - 1.0).abs() < 1e-9, "{}", p(0, 0));
        assert!((p(50, 50) - 1.0).abs() < 1e-9, "{}", p(50, 50));
        assert!(p(0, 10) < 0.01 && p(0, 10) > 0.0005, "{}", p(0, 10));
    }

    #[test]
    fn impossible_counts_are_refused() {
        assert_eq!(fisher_more_failures(5, 4, 0, 4), Err(StatsError::BadArgument));
        assert_eq!(fisher_more_failures(0, 0, 0, 4), Err(StatsError::BadArgument));
    }
}
