use crate::error::StatsError;

/// Which of several hypotheses Benjamini and Hochberg's procedure (1995) rejects with a false
/// discovery rate of at most `q`: the R smallest p-values, for the largest R with p_(R) <= R q / m.
///
/// # Errors
///
/// `BadArgument` unless 0 < q < 1 and every p is between 0 and 1.
pub fn benjamini_hochberg(p: &[f64], q: f64) -> Result<Vec<bool>, StatsError> {
    let probability = |p: &f64| (0.0..=1.0).contains(p);
    if !(p.iter().all(probability) && q > 0.0 && q < 1.0) {
        return Err(StatsError::BadArgument);
    }
    let mut sorted = p.to_vec();
    sorted.sort_by(f64::total_cmp);
    let step = q / p.len().max(1) as f64;
    // A little slack: p-values are sums of fractions, and R q / m need not be exact either.
    let passes = |(place, p): &(usize, &f64)| **p <= (*place + 1) as f64 * step * (1.0 + 1e-12);
    let largest = sorted.iter().enumerate().rfind(passes).map(|(_, p)| *p);
    Ok(p.iter().map(|p| largest.is_some_and(|largest| *p <= largest)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_p_values_as_published() {
        // The example of Benjamini and Hochberg's paper: four are rejected, Bonferroni would three.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        let rejected = benjamini_hochberg(&p, 0.05).unwrap();
        assert_eq!(rejected.iter().filter(|rejected| **rejected).count(), 4);
        assert!(rejected[..4].iter().all(|rejected| *rejected));
    }

    #[test]
    fn a_step_up_procedure_takes_the_smaller_ones_along() {
        // .04 passes neither at .0167 nor at .033, but .05 at place three takes all along.
        assert_eq!(benjamini_hochberg(&[0.05, 0.04, 0.04], 0.05), Ok(vec![true; 3]));
        assert_eq!(benjamini_hochberg(&[0.051, 0.04, 0.04], 0.05), Ok(vec![false; 3]));
        assert_eq!(benjamini_hochberg(&[], 0.05), Ok(vec![]));
        assert_eq!(benjamini_hochberg(&[0.05], 0.05), Ok(vec![true]));
        assert_eq!(benjamini_hochberg(&[f64::NAN], 0.05), Err(StatsError::BadArgument));
        assert_eq!(benjamini_hochberg(&[0.1], 1.0), Err(StatsError::BadArgument));
    }
}
