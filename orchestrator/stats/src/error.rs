use std::fmt;

/// Why a number cannot be had from these data. Never a panic, never a NaN.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum StatsError {
    /// Fewer values than the procedure needs.
    TooFew {
        /// At least this many.
        needed: usize,
        /// These were there.
        found: usize,
    },
    /// A NaN or an infinity.
    NotFinite,
    /// A value that has no logarithm.
    NotPositive(f64),
    /// A probability that is not strictly between 0 and 1, or counts that contradict each other.
    BadArgument,
}

impl fmt::Display for StatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { needed, found } => {
                write!(f, "{needed} values are needed, {found} found")
            }
            Self::NotFinite => f.write_str("a value is not a finite number"),
            Self::NotPositive(value) => write!(f, "a value of {value} has no ratio to another"),
            Self::BadArgument => f.write_str("an argument is out of its range"),
        }
    }
}

impl std::error::Error for StatsError {}

/// Whether there are `needed` values, all of them finite.
pub(crate) fn check(values: &[f64], needed: usize) -> Result<(), StatsError> {
    if values.iter().any(|value| !value.is_finite()) {
        return Err(StatsError::NotFinite);
    }
    if values.len() < needed {
        return Err(StatsError::TooFew { needed, found: values.len() });
    }
    Ok(())
}

/// Whether `alpha` is a probability strictly between 0 and 1.
pub(crate) fn check_alpha(alpha: f64) -> Result<(), StatsError> {
    if alpha > 0.0 && alpha < 1.0 { Ok(()) } else { Err(StatsError::BadArgument) }
}
