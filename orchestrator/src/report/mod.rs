//! Comparisons as text, as JSON and as a page. Pure.

mod annotate;
mod chains;
mod diffprofile;
mod exact;
mod html;
mod json;
mod markup;
pub mod number;
mod page;
mod processor;
mod profile;
mod series;
mod sides;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod words;

pub use annotate::{annotation_html, annotation_text};
pub use chains::{FlameGraph, WorkloadChains, flame_graph, folded};
pub use diffprofile::diffprofile;
pub use html::{Beside, html};
pub use json::{REPORT_FORMAT, json};
pub use page::Look;
pub use profile::matter;
pub use text::text;
pub use trace::{TraceShape, trace};

use crate::analyse::Analysis;
use crate::analyse::profile::RunProfiles;
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
    /// Functions; of exact runs only.
    pub profiles: &'a RunProfiles,
}
