use crate::error::{StatsError, check};

/// The arithmetic mean.
///
/// # Errors
///
/// `NotFinite`, `TooFew` if there is none.
pub fn mean(values: &[f64]) -> Result<f64, StatsError> {
    check(values, 1)?;
    let first = values[0];
    let rest: f64 = values.iter().map(|value| value - first).sum();
    Ok(first + rest / values.len() as f64)
}

/// The mean of the natural logarithms; its exponential is the geometric mean.
///
/// # Errors
///
/// `NotFinite`, `NotPositive`, `TooFew` if there is none.
pub fn log_mean(values: &[f64]) -> Result<f64, StatsError> {
    check(values, 1)?;
    if let Some(bad) = values.iter().find(|value| **value <= 0.0) {
        return Err(StatsError::NotPositive(*bad));
    }
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs)
}

/// The variance about the mean, with n - 1 in the denominator.
///
/// # Errors
///
/// `NotFinite`, `TooFew` below two.
pub fn variance(values: &[f64]) -> Result<f64, StatsError> {
    check(values, 2)?;
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    Ok(squares / (values.len() - 1) as f64)
}

/// The median; the mean of the two middle values where their number is even.
///
/// # Errors
///
/// `NotFinite`, `TooFew` if there is none.
pub fn median(values: &[f64]) -> Result<f64, StatsError> {
    quantile(values, 0.5)
}

/// The `p`-quantile, 0 <= p <= 1, linear between the order statistics (type 7 of Hyndman and Fan).
///
/// # Errors
///
/// `NotFinite`, `TooFew` if there is none, `BadArgument` for another p.
pub fn quantile(values: &[f64], p: f64) -> Result<f64, StatsError> {
    check(values, 1)?;
    if !(0.0..=1.0).contains(&p) {
        return Err(StatsError::BadArgument);
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * (sorted.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the number of values"
    )]
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let part = place - place.floor();
    Ok(sorted[below] * (1.0 - part) + sorted[above] * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quantiles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Ok(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Ok(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.99), Ok(5.0 * 0.96 + 4.0 * 0.04));
        assert_eq!(quantile(&[1.0, 2.0], 1.0), Ok(2.0));
        assert_eq!(quantile(&[1.0], 1.5), Err(StatsError::BadArgument));
        assert_eq!(median(&[]), Err(StatsError::TooFew { needed: 1, found: 0 }));
    }

    #[test]
    fn variances() {
        assert_eq!(variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Ok(32.0 / 7.0));
        assert_eq!(variance(&[1e9, 1e9 + 1.0]), Ok(0.5));
        assert_eq!(variance(&[1.0]), Err(StatsError::TooFew { needed: 2, found: 1 }));
    }

    #[test]
    fn logarithms_refuse_what_has_none() {
        assert!((log_mean(&[1.0, 100.0]).unwrap() - 10.0_f64.ln()).abs() < 1e-12);
        assert_eq!(log_mean(&[1.0, 0.0]), Err(StatsError::NotPositive(0.0)));
        assert_eq!(log_mean(&[1.0, -2.0]), Err(StatsError::NotPositive(-2.0)));
        assert_eq!(log_mean(&[1.0, f64::NAN]), Err(StatsError::NotFinite));
        assert_eq!(log_mean(&[f64::INFINITY]), Err(StatsError::NotFinite));
    }
}
