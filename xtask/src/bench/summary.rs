use std::fmt;

use anyhow::{Context, Result};

/// Some measured values in short.
#[derive(Debug, PartialEq)]
pub struct Summary {
    count: usize,
    min: f64,
    /// Of an even number, the mean of the two in the middle.
    pub median: f64,
    max: f64,
}

impl Summary {
    /// Fails if there are none.
    pub fn of(values: &[f64]) -> Result<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let (min, max) = sorted.first().zip(sorted.last()).context("nothing was measured")?;
        let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        Ok(Self { count, min: *min, median, max: *max })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:8} {:7.2} {:7.2} {:7.2}", self.count, self.min, self.median, self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_found_whatever_the_order() {
        let of = |values| Summary::of(values).unwrap();
        assert_eq!(of(&[3.0, 1.0, 2.0]), Summary { count: 3, min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(of(&[4.0, 1.0]), Summary { count: 2, min: 1.0, median: 2.5, max: 4.0 });
        assert!(Summary::of(&[]).is_err());
    }
}
