//! The numbers of every comparison.

use super::super::markup::safe;
use super::super::number::{interval, margin, quantity, signed_percent};
use super::super::{Report, exact, text};
use crate::analyse::Comparison;

const HEADINGS: [&str; 7] = ["base", "value", "change", "interval", "margin", "pairs", "verdict"];

/// As a table, one line for each comparison.
pub(super) fn numbers(report: &Report<'_>) -> String {
    let comparisons = &report.analysis.comparisons;
    if comparisons.is_empty() {
        return String::new();
    }
    let several = report.plan.experiments.len() > 1;
    let headings = HEADINGS.map(|name| format!("<th scope=\"col\">{name}</th>"));
    let rows: String = comparisons
        .iter()
        .map(|comparison| {
            let name =
                safe(&format!("{}, {}", text::series_name(comparison, several), comparison.side));
            let cells = cells(report, comparison).map(|cell| format!("<td>{}</td>", safe(&cell)));
            format!("<tr><th scope=\"row\">{name}</th>{}</tr>\n", cells.concat())
        })
        .collect();
    format!(
        "<section>\n<div class=\"wide\"><table class=\"numbers\">\n<thead><tr><th scope=\"col\">series</th>{}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n",
        headings.concat()
    )
}

fn cells(report: &Report<'_>, comparison: &Comparison) -> [String; 7] {
    // Counts of an exact run are what they are, whoever executes the guests.
    let mark = if comparison.exact.is_some() { "" } else { text::mark(report) };
    let none = || "-".to_owned();
    let show = |value: Option<f64>| {
        value.map_or_else(none, |value| format!("{mark}{}", quantity(value, &comparison.unit)))
    };
    let ends = comparison.low.zip(comparison.high);
    let verdict = match comparison.exact {
        Some(_) => exact::word_of(comparison, report.profiles),
        None => comparison.verdict.words().to_owned(),
    };
    [
        show(comparison.base),
        show(comparison.value),
        comparison.change.map_or_else(none, |change| format!("{mark}{}", signed_percent(change))),
        ends.map_or_else(none, |(low, high)| interval(low, high)),
        margin((comparison.margin * 1e4).round() / 1e4),
        comparison.pairs.to_string(),
        if comparison.primary { verdict } else { format!("{verdict}, secondary") },
    ]
}
