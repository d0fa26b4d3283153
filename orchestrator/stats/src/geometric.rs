/// The changes of several series in one number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeometricMean {
    /// exp of the mean of the changes' logarithms, less 1.
    pub change: f64,
    /// Series that went in.
    pub series: usize,
    /// Series without a change, or with one that has no logarithm.
    pub left_out: usize,
}

/// Of relative changes; `None` for a series that has none. Changes of metrics whose better direction
/// differs must not be mixed. `None` if nothing is left.
pub fn geometric_mean(changes: &[Option<f64>]) -> Option<GeometricMean> {
    let logs: Vec<f64> = changes
        .iter()
        .flatten()
        .map(|change| change.ln_1p())
        .filter(|log| log.is_finite())
        .collect();
    let mean = crate::mean(&logs).ok()?;
    let (series, left_out) = (logs.len(), changes.len() - logs.len());
    Some(GeometricMean { change: mean.exp_m1(), series, left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubling_and_a_halving_cancel() {
        let found = geometric_mean(&[Some(1.0), None, Some(-0.5), Some(-1.0)]).unwrap();
        assert!(found.change.abs() < 1e-12);
        assert_eq!((found.series, found.left_out), (2, 2));
        assert_eq!(geometric_mean(&[None, Some(f64::NAN)]), None);
    }
}
