//! The report as one page: no network, readable without scripts, light and dark.

mod bars;
mod cards;
mod charts;
mod forest;
mod functions;
mod graph;
mod head;
mod monitors;
mod rank;
mod sides;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::markup::safe;
use super::page::Span;
use super::{FlameGraph, Report, exact, text};
use crate::analyse::Points;
use crate::plan::Measure;

pub use rank::charted;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("sort.js");

/// Nothing is fetched, whatever a guest's text says.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; \
     form-action 'none'";

/// What is shown beside a report.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// Call chains, one graph for each side that is compared.
    pub graphs: Vec<FlameGraph>,
    /// Why there is none.
    pub graphless: Option<String>,
    /// Where the executed code of a function is: by the place of the series among the profiles and the
    /// name, a relative address that needs no escaping.
    pub code: BTreeMap<(usize, String), String>,
    /// What comparisons are made of, by their place in the analysis: those of [`charted`], or fewer.
    pub points: BTreeMap<usize, Points>,
}

/// The report as a whole HTML document.
pub fn html(report: &Report<'_>, beside: &Beside) -> String {
    let headline = match report.plan.measure {
        Measure::Time => text::headline(report),
        Measure::Instructions => exact::headline(report),
    };
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <title>kduel: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        safe(&plain(&headline))
    );
    html += &head::verdict(report, beside, headline);
    for line in super::geometric::lines(report) {
        html += &format!("<p>{}</p>\n", safe(&line));
    }
    html += &head::claims(report);
    html += &forest::section(report, beside);
    let charts = charts::section(report, beside);
    let (before, behind) = match report.plan.measure {
        Measure::Time => (charts, String::new()),
        // Which function it was says more than how the windows lie.
        Measure::Instructions => (String::new(), charts),
    };
    html += &before;
    html += &graph::section(beside);
    for place in 0..report.profiles.series.len() {
        html += &functions::section(report, beside, place);
    }
    html += &behind;
    html += &monitors::section(report);
    html += &sides::section(report);
    html += &head::foot(report);
    html += &format!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

fn plain(spans: &[Span]) -> String {
    let words = spans.iter().map(|span| match span {
        Span::Plain(text) | Span::Coloured(text, _) => text.as_str(),
        Span::Verdict(verdict) => verdict.words(),
    });
    words.collect::<Vec<_>>().join(" ")
}
