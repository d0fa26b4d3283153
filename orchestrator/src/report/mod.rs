//! Comparisons as text, as JSON and as a page. Pure.

mod annotate;
mod case;
mod chains;
mod changelog;
mod claims;
mod csv;
mod diffprofile;
mod exact;
mod geometric;
mod headline;
mod html;
mod json;
mod junit;
mod ktap;
mod mail;
mod markup;
mod monitors;
mod monitors_json;
pub mod number;
mod options;
mod outcome;
mod page;
mod perf_stat;
mod plain;
mod processor;
mod profile;
mod reported;
mod sampled;
mod series;
mod sides;
mod skeleton;
mod svg;
#[cfg(test)]
mod tests;
mod text;
mod trace;
mod words;

pub use annotate::{annotation_html, annotation_text};
pub use case::{expectation_json, expectations};
pub use chains::{FlameGraph, WorkloadChains, flame_graph, folded};
pub use changelog::changelog;
pub use csv::csv;
pub use diffprofile::diffprofile;
pub use exact::worst_word;
pub use html::{Beside, charted, html};
pub use json::{REPORT_FORMAT, REPORT_SCHEMA, json};
pub use junit::junit;
pub use ktap::ktap;
pub use mail::{mail, regzbot};
pub use options::spoilt;
pub use page::Look;
pub use profile::matter;
pub use reported::{IMPORT_FORMAT, reported_json, reported_text};
pub use sampled::sampled_profile;
pub use skeleton::skeleton;
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
