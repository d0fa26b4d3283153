use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Interval;
use crate::error::{StatsError, check, check_alpha};
use crate::summary::mean;

/// Student's interval at 1 - `alpha` for the mean of pair differences. Differences that are all equal
/// give a point.
///
/// # Errors
///
/// `NotFinite`, `TooFew` below two, `BadArgument` unless 0 < alpha < 1.
pub fn student_interval(differences: &[f64], alpha: f64) -> Result<Interval, StatsError> {
    check(differences, 2)?;
    check_alpha(alpha)?;
    let n = differences.len() as f64;
    let centre = mean(differences)?;
    let squares: f64 = differences.iter().map(|d| (d - centre).powi(2)).sum();
    let standard_error = (squares / (n - 1.0) / n).sqrt();
    let students = StudentsT::new(0.0, 1.0, n - 1.0).map_err(|_| StatsError::BadArgument)?;
    let half = students.inverse_cdf(1.0 - alpha / 2.0) * standard_error;
    if !half.is_finite() {
        return Err(StatsError::NotFinite);
    }
    Ok(Interval { low: centre - half, high: centre + half, confidence: 1.0 - alpha })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Two values ±1 have mean 0 and standard error 1; the half width is the quantile itself.
        let half =
            |differences: &[f64], alpha| student_interval(differences, alpha).unwrap().half_width();
        assert!((half(&[1.0, -1.0], 0.05) - 12.706_205).abs() < 1e-5);
        // Six values with standard deviation √6: standard error 1, five degrees of freedom.
        let six = [3.0, -1.0, -3.0, 1.0, 1.0, -1.0].map(|d: f64| d * (30.0_f64 / 22.0).sqrt());
        assert!((half(&six, 0.05) - 2.570_582).abs() < 1e-5);
        assert!((half(&six, 0.10) - 2.015_048).abs() < 1e-5);
    }

    #[test]
    fn degenerate_data() {
        let point = student_interval(&[0.25; 4], 0.05).unwrap();
        assert_eq!((point.low, point.high), (0.25, 0.25));
        let too_few = Err(StatsError::TooFew { needed: 2, found: 1 });
        assert_eq!(student_interval(&[1.0], 0.05), too_few);
        assert_eq!(student_interval(&[1.0, f64::NAN], 0.05), Err(StatsError::NotFinite));
        assert_eq!(student_interval(&[1.0, 2.0], 1.0), Err(StatsError::BadArgument));
    }
}
