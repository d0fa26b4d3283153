//! What was watched beside workloads, as lines of text: a row for each counter, a column for each side.

use kduel_protocol::Monitor;

use crate::analyse::{Analysis, MonitorKind, MonitorMean, MonitorRow, MonitorTable};
use crate::text::count;

use super::number::{quantity, signed_percent};
use super::plain::clipped;

/// Rows of one table in text; the page has all.
const ROWS: usize = 24;

/// What the numbers of a table are.
pub(super) fn words(table: &MonitorTable) -> String {
    let per = match table.kind {
        MonitorKind::Steady => "means of the steady part (rows after the first third)",
        MonitorKind::PerSecond => "per second over the kept iterations",
        MonitorKind::PerOperation => "per operation over the kept iterations",
    };
    format!("{} beside {}, {per}", table.monitor.name(), table.workload)
}

/// Everything of one experiment, line by line, without colours.
pub(super) fn lines(analysis: &Analysis, experiment: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for finding in analysis.kernel_log.iter().filter(|one| one.experiment == experiment) {
        let (side, words) = (&finding.side, finding.kind.words());
        let boots = count(finding.boots, "boot");
        lines.push(String::new());
        lines.push(format!("{words} on {side} during {}, in {boots}:", finding.workload));
        lines.extend(finding.lines.iter().take(8).map(|line| format!("  {line}")));
    }
    for table in analysis.monitors.iter().filter(|table| table.experiment == experiment) {
        lines.push(String::new());
        if table.monitor == Monitor::PerfStat && table.kind == MonitorKind::PerOperation {
            lines.extend(super::perf_stat::lines(analysis, table));
        } else {
            lines.extend(columns(table));
        }
        lines.extend(absent(table));
    }
    lines
}

fn columns(table: &MonitorTable) -> Vec<String> {
    let mut lines = vec![words(table)];
    let mut shown: Vec<&MonitorRow> = table.rows.iter().filter(|row| !is_zero(row)).collect();
    let rest = shown.len().saturating_sub(ROWS);
    if rest > 0 {
        shown.sort_by(|a, b| largest(b).total_cmp(&largest(a)));
        shown.truncate(ROWS);
    }
    if !shown.is_empty() {
        let names = table.sides.iter().map(|side| format!(" {:>12}", clipped(side, 12)));
        lines.push(format!("  {:<24}{}", "", names.collect::<String>()).trim_end().to_owned());
    }
    lines.extend(shown.into_iter().map(line));
    let zero = table.rows.iter().filter(|row| is_zero(row)).count();
    if zero > 0 {
        lines.push(format!("  ({zero} more are zero on every side)"));
    }
    if rest > 0 {
        lines.push(format!("  ({rest} smaller ones are in the page and in JSON)"));
    }
    lines
}

fn is_zero(row: &MonitorRow) -> bool {
    row.values.iter().flatten().all(|value| value.mean == 0.0)
}

fn largest(row: &MonitorRow) -> f64 {
    row.values.iter().flatten().map(|value| value.mean.abs()).fold(0.0, f64::max)
}

fn line(row: &MonitorRow) -> String {
    let values = row.values.iter().map(|value| format!(" {:>12}", show(*value)));
    let values: String = values.collect();
    let change = change(row).map(|change| format!("  {change:>10}")).unwrap_or_default();
    format!("  {:<24}{values}{change}", clipped(&row.name, 24)).trim_end().to_owned()
}

/// Of the second side against the base, where there are two.
pub(super) fn change(row: &MonitorRow) -> Option<String> {
    let [Some(base), Some(value)] = row.values[..] else { return None };
    (base.mean > 0.0).then(|| signed_percent(value.mean / base.mean - 1.0))
}

pub(super) fn show(value: Option<MonitorMean>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| quantity(value.mean, "count"))
}

/// What kernels lack, each reason once.
pub(super) fn absent(table: &MonitorTable) -> Vec<String> {
    let mut reasons: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for (side, name, why) in &table.absent {
        match reasons.iter_mut().find(|(of, reason, _)| (*of, *reason) == (side, why)) {
            Some((.., names)) => names.push(name),
            None => reasons.push((side, why, vec![name])),
        }
    }
    reasons
        .into_iter()
        .map(|(side, why, names)| format!("  absent on {side}: {} ({why})", names.join(", ")))
        .collect()
}
