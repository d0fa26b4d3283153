//! From the samples of the sides to one comparison per series. Pure.

mod comparison;

pub use comparison::{Comparison, SeriesName, Verdict};
