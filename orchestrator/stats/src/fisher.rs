use statrs::distribution::{DiscreteCDF, Hypergeometric};

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
    fn impossible_counts_are_refused() {
        assert_eq!(fisher_more_failures(5, 4, 0, 4), Err(StatsError::BadArgument));
        assert_eq!(fisher_more_failures(0, 0, 0, 4), Err(StatsError::BadArgument));
    }
}
