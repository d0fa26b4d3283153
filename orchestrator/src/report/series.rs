use kduel_protocol::Better;

use crate::analyse::{Comparison, DistributionSummary, SeriesName, Verdict};

use super::number::{interval, margin, percent, quantity, signed_percent};
use super::page::Page;

/// One row of the numbers: cells of the columns.
struct Row {
    name: String,
    cells: [String; 5],
}

/// A series with its rows.
struct Table<'a> {
    heading: String,
    rows: Vec<Row>,
    /// Why its verdicts are what they are.
    reasons: Vec<String>,
    operations: Vec<&'a DistributionSummary>,
}

const HEADINGS: [&str; 5] = ["value", "change", "interval, %", "pairs", "steal"];

/// The numbers of one experiment: a table per series, columns aligned over all of them.
pub(super) fn numbers(
    page: &mut Page,
    base: &str,
    comparisons: &[&Comparison],
    distributions: &[&DistributionSummary],
    mark: &str,
) {
    let mut tables: Vec<Table<'_>> = Vec::new();
    let mut previous: Option<&SeriesName> = None;
    for comparison in comparisons {
        if previous != Some(&comparison.series) {
            tables.push(begin(base, comparison, distributions, mark));
            previous = Some(&comparison.series);
        }
        if let Some(table) = tables.last_mut() {
            table.rows.push(candidate(comparison, mark));
            let told = matches!(comparison.verdict, Verdict::Fails | Verdict::Invalid);
            if !told && !comparison.reason.is_empty() {
                table.reasons.push(format!("{}: {}", comparison.side, comparison.reason));
            }
            table.reasons.extend(pairing(comparison));
        }
    }
    let widths = widths(&tables);
    let is_told = tables.iter().flat_map(|table| &table.rows).any(|row| !row.cells[4].is_empty());
    let mut headings = HEADINGS.map(String::from);
    if !is_told {
        headings[4].clear();
    }
    page.line(&format!("    {}", aligned("", &headings, &widths)));
    for table in &tables {
        page.paragraph("  ", [table.heading.as_str().into()]);
        for row in &table.rows {
            page.line(&format!("    {}", aligned(&row.name, &row.cells, &widths)));
        }
        for reason in &table.reasons {
            page.paragraph("      ", [reason.as_str().into()]);
        }
        for operations in &table.operations {
            page.paragraph("      ", [single_operations(operations, mark).into()]);
        }
    }
}

fn begin<'a>(
    base: &str,
    comparison: &Comparison,
    distributions: &[&'a DistributionSummary],
    mark: &str,
) -> Table<'a> {
    let SeriesName { workload, metric, .. } = &comparison.series;
    let better = match comparison.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    let rank = if comparison.primary { "" } else { ", secondary" };
    let margin = margin(comparison.margin);
    let own = |summary: &&&DistributionSummary| summary.series == comparison.series;
    Table {
        heading: format!("{workload} {metric} ({better}, margin {margin}{rank})"),
        rows: vec![Row {
            name: base.to_owned(),
            cells: [
                value(comparison.base, &comparison.unit, mark),
                String::new(),
                String::new(),
                String::new(),
                steal(comparison.timed.as_ref().and_then(|timed| timed.steal_base)),
            ],
        }],
        reasons: Vec::new(),
        operations: distributions.iter().filter(own).copied().collect(),
    }
}

fn candidate(comparison: &Comparison, mark: &str) -> Row {
    let of = comparison.pairs + comparison.dropped;
    let pairs = match comparison.dropped {
        0 => of.to_string(),
        _ => format!("{} of {of}", comparison.pairs),
    };
    let change = comparison.change.map(|change| format!("{mark}{}", signed_percent(change)));
    let ends = comparison.low.zip(comparison.high);
    Row {
        name: comparison.side.clone(),
        cells: [
            value(comparison.value, &comparison.unit, mark),
            change.unwrap_or_else(|| "-".into()),
            ends.map_or_else(|| "-".into(), |(low, high)| interval(low, high)),
            pairs,
            steal(comparison.timed.as_ref().and_then(|timed| timed.steal)),
        ],
    }
}

/// What the host took of the vCPUs' time.
fn steal(part: Option<f64>) -> String {
    part.map_or_else(String::new, percent)
}

/// What it brings that boots are compared in pairs.
pub(super) fn pairing(comparison: &Comparison) -> Option<String> {
    let timed = comparison.timed.as_ref()?;
    let (paired, shuffled) = (percent(timed.pair_sd?), percent(timed.shuffled_sd?));
    Some(format!("{}: pairs spread {paired} (sd), shuffled ones {shuffled}", comparison.side))
}

fn value(value: Option<f64>, unit: &str, mark: &str) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{mark}{}", quantity(value, unit)))
}

fn single_operations(summary: &DistributionSummary, mark: &str) -> String {
    let show = |value| format!("{mark}{}", quantity(value, &summary.unit));
    format!(
        "{}: {} operations, p50 {}, p99 {}, max {}",
        summary.side,
        summary.operations,
        show(summary.p50),
        show(summary.p99),
        show(summary.max)
    )
}

/// The width of the name column and of the others.
fn widths(tables: &[Table<'_>]) -> [usize; 6] {
    let length = |text: &str| text.chars().count();
    let mut widths = [0, 9, 8, 0, 0, 0];
    for (width, heading) in widths[1..].iter_mut().zip(HEADINGS) {
        *width = length(heading).max(*width);
    }
    for row in tables.iter().flat_map(|table| &table.rows) {
        widths[0] = widths[0].max(length(&row.name));
        for (width, cell) in widths[1..].iter_mut().zip(&row.cells) {
            *width = length(cell).max(*width);
        }
    }
    widths
}

fn aligned(name: &str, cells: &[String; 5], widths: &[usize; 6]) -> String {
    let mut line = format!("{name:<width$}", width = widths[0]);
    for (cell, width) in cells.iter().zip(&widths[1..]) {
        line.push_str(&format!("   {cell:>width$}"));
    }
    line.truncate(line.trim_end().len());
    line
}
