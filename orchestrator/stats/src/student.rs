use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::Interval;
use crate::error::{StatsError, check, check_alpha};
use crate::summary::{mean, variance};

/// A mean or a difference of means with its standard error: what Student's and Welch's tests rest on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Student {
    centre: f64,
    error: f64,
    freedom: f64,
}

impl Student {
    /// The mean of pair differences.
    ///
    /// # Errors
    ///
    /// `NotFinite`, `TooFew` below two.
    pub fn paired(differences: &[f64]) -> Result<Self, StatsError> {
        check(differences, 2)?;
        let n = differences.len() as f64;
        Self::new(mean(differences)?, variance(differences)? / n, n - 1.0)
    }

    /// From the mean of `a` to the mean of `b`, without pairing and with a variance of its own each.
    ///
    /// # Errors
    ///
    /// `NotFinite`, `TooFew` if one of them has fewer than two.
    pub fn welch(a: &[f64], b: &[f64]) -> Result<Self, StatsError> {
        check(a, 2)?;
        check(b, 2)?;
        let (m, n) = (a.len() as f64, b.len() as f64);
        let (from_a, from_b) = (variance(a)? / m, variance(b)? / n);
        let squared = from_a + from_b;
        // Welch and Satterthwaite. Where nothing varies any number of degrees will do.
        let freedom = match squared > 0.0 {
            true => {
                let shares = (from_a / squared, from_b / squared);
                1.0 / (shares.0.powi(2) / (m - 1.0) + shares.1.powi(2) / (n - 1.0))
            }
            false => m + n - 2.0,
        };
        Self::new(mean(b)? - mean(a)?, squared, freedom)
    }

    fn new(centre: f64, squared_error: f64, freedom: f64) -> Result<Self, StatsError> {
        let all = [centre, squared_error, freedom];
        check(&all, 1)?;
        Ok(Self { centre, error: squared_error.sqrt(), freedom })
    }

    /// The mean.
    pub fn estimate(&self) -> f64 {
        self.centre
    }

    /// The interval at 1 - `alpha`; a point where nothing varies.
    ///
    /// # Errors
    ///
    /// `BadArgument` unless 0 < alpha < 1, `NotFinite` if it would be endless.
    pub fn interval(&self, alpha: f64) -> Result<Interval, StatsError> {
        check_alpha(alpha)?;
        let half = self.distribution()?.inverse_cdf(1.0 - alpha / 2.0) * self.error;
        if !half.is_finite() {
            return Err(StatsError::NotFinite);
        }
        let (low, high) = (self.centre - half, self.centre + half);
        Ok(Interval { low, high, confidence: 1.0 - alpha })
    }

    /// The one-sided p-value of "the mean is at most `bound`".
    ///
    /// # Errors
    ///
    /// `NotFinite`.
    pub fn p_above(&self, bound: f64) -> Result<f64, StatsError> {
        self.p_beyond(self.centre - bound)
    }

    /// The one-sided p-value of "the mean is at least `bound`".
    ///
    /// # Errors
    ///
    /// `NotFinite`.
    pub fn p_below(&self, bound: f64) -> Result<f64, StatsError> {
        self.p_beyond(bound - self.centre)
    }

    /// Where nothing varies any distance at all is beyond doubt.
    fn p_beyond(&self, distance: f64) -> Result<f64, StatsError> {
        if self.error == 0.0 {
            return Ok(if distance > 0.0 { 0.0 } else { 1.0 });
        }
        Ok(self.distribution()?.sf(distance / self.error))
    }

    fn distribution(&self) -> Result<StudentsT, StatsError> {
        StudentsT::new(0.0, 1.0, self.freedom).map_err(|_| StatsError::NotFinite)
    }
}

/// Student's interval at 1 - `alpha` for the mean of pair differences. Differences that are all equal
/// give a point.
///
/// # Errors
///
/// `NotFinite`, `TooFew` below two, `BadArgument` unless 0 < alpha < 1.
pub fn student_interval(differences: &[f64], alpha: f64) -> Result<Interval, StatsError> {
    Student::paired(differences)?.interval(alpha)
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
    fn sleep_of_ten_patients_as_published() {
        // Student's own data (1908): hours of sleep gained with either of two drugs.
        let a = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let b = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let differences: Vec<f64> = b.iter().zip(a).map(|(b, a)| b - a).collect();
        let paired = Student::paired(&differences).unwrap();
        assert!((2.0 * paired.p_above(0.0).unwrap() - 0.002_833).abs() < 1e-6);
        let welch = Student::welch(&a, &b).unwrap();
        assert!((welch.freedom - 17.776_47).abs() < 1e-4, "{welch:?}");
        assert!((2.0 * welch.p_above(0.0).unwrap() - 0.079_394).abs() < 1e-6);
        let interval = welch.interval(0.05).unwrap();
        assert!((interval.low + 0.205_483).abs() < 1e-5, "{interval:?}");
        assert!((interval.high - 3.365_483).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn degenerate_data() {
        let point = student_interval(&[0.25; 4], 0.05).unwrap();
        assert_eq!((point.low, point.high), (0.25, 0.25));
        let too_few = Err(StatsError::TooFew { needed: 2, found: 1 });
        assert_eq!(student_interval(&[1.0], 0.05), too_few);
        assert_eq!(student_interval(&[1.0, f64::NAN], 0.05), Err(StatsError::NotFinite));
        assert_eq!(student_interval(&[1.0, 2.0], 1.0), Err(StatsError::BadArgument));
        assert_eq!(student_interval(&[f64::MAX, -f64::MAX], 0.05), Err(StatsError::NotFinite));
        let still = Student::welch(&[1.0; 3], &[1.0; 3]).unwrap();
        assert_eq!(still.estimate(), 0.0);
        assert_eq!((still.p_above(0.0), still.p_below(0.0)), (Ok(1.0), Ok(1.0)));
        assert_eq!((still.p_above(-0.1), still.p_below(-0.1)), (Ok(0.0), Ok(1.0)));
    }
}
