/// The change that matters, fixed before the data: whichever of the two is larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin {
    /// Relative: 0.1 is 10 %.
    pub relative: f64,
    /// In the metric's unit; 0 where only the relative one counts.
    pub absolute: f64,
}

impl Margin {
    /// A relative one alone.
    pub fn relative(relative: f64) -> Self {
        Self { relative, absolute: 0.0 }
    }

    /// As a part of `base`, the base's location in the metric's unit.
    pub fn of(&self, base: f64) -> f64 {
        if base > 0.0 { self.relative.max(self.absolute / base) } else { self.relative }
    }

    /// On the log scale, where a change and its reverse are equally large.
    pub fn delta(&self, base: f64) -> f64 {
        self.of(base).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_counts() {
        let exact = Margin { relative: 0.005, absolute: 3.0 };
        assert_eq!(exact.of(1000.0), 0.005);
        assert_eq!(exact.of(100.0), 0.03);
        assert_eq!(exact.of(0.0), 0.005);
        assert!((Margin::relative(0.1).delta(5.0) - 1.1_f64.ln()).abs() < 1e-15);
    }
}
