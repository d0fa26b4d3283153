//! Comparisons as text and as JSON. Pure.

mod chains;
mod exact;
mod json;
pub mod number;
mod page;
mod series;
mod sides;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod words;

pub use chains::{WorkloadChains, flame_graph, folded};
pub use json::{REPORT_FORMAT, json};
pub use page::Look;
pub use text::text;
pub use trace::{TraceShape, trace};

use crate::analyse::Analysis;
use crate::collect::RunInfo;
use crate::plan::Plan;

/// Everything a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// Which run.
    pub info: &'a RunInfo,
    /// What was planned.
    pub plan: &'a Plan,
    /// What came out.
    pub analysis: &'a Analysis,
}
