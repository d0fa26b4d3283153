/// A closed interval and the confidence it really has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end, included.
    pub low: f64,
    /// Upper end, included.
    pub high: f64,
    /// 0 to 1; at least what was asked for.
    pub confidence: f64,
}

impl Interval {
    /// Half of its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether it does not cover 0.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// Whether it lies strictly between `-bound` and `bound`.
    pub fn within(&self, bound: f64) -> bool {
        -bound < self.low && self.high < bound
    }
}
