//! What was watched beside workloads: a table and, where there are rows, plots over time.

use super::super::markup::safe;
use super::super::svg::Scale;
use super::super::{Report, monitors};
use super::charts::frame::{Frame, RIGHT};
use crate::analyse::MonitorTable;

/// Columns of vmstat that are drawn, those that scheduler reports argue with.
const DRAWN: [&str; 5] = ["r", "cs", "us", "sy", "id"];

/// Sides have four kinds of lines; nobody follows more.
const LINES: [&str; 4] = ["a", "b", "c", "d"];

/// All of them.
pub(super) fn section(report: &Report<'_>) -> String {
    let mut html = String::new();
    for found in &report.analysis.kernel_log {
        let lines: Vec<String> = found.lines.iter().map(|line| safe(line)).collect();
        html += &format!(
            "<p>{} on {} during {}, in {} boots</p>\n<pre>{}</pre>\n",
            found.kind.words(),
            safe(&found.side),
            safe(&found.workload),
            found.boots,
            lines.join("\n")
        );
    }
    for (place, table) in report.analysis.monitors.iter().enumerate() {
        html += &one(table, place);
    }
    if html.is_empty() {
        return html;
    }
    format!("<section class=\"each\">\n<h2>Beside the workloads</h2>\n{html}</section>\n")
}

fn one(table: &MonitorTable, place: usize) -> String {
    let is_pair = table.sides.len() == 2;
    let head = if is_pair { "<th scope=\"col\">change</th>" } else { "" };
    let names: String =
        table.sides.iter().map(|side| format!("<th scope=\"col\">{}</th>", safe(side))).collect();
    let row = |row: &crate::analyse::MonitorRow| {
        let values = row.values.iter().map(|v| format!("<td>{}</td>", monitors::show(*v)));
        let change = monitors::change(row).unwrap_or_default();
        let change = if is_pair { format!("<td>{change}</td>") } else { String::new() };
        let (name, values) = (safe(&row.name), values.collect::<String>());
        format!("<tr><th scope=\"row\">{name}</th>{values}{change}</tr>\n")
    };
    let rows: String = table.rows.iter().map(row).collect();
    let absent: String = monitors::absent(table)
        .iter()
        .map(|line| format!("<p class=\"dim\">{}</p>\n", safe(line)))
        .collect();
    let figures: String = DRAWN.iter().filter_map(|column| plot(table, place, column)).collect();
    let body = match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<div class=\"wide\"><table class=\"sides\">\n<thead><tr><td></td>{names}{head}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n"
        ),
    };
    format!(
        "<article id=\"m{place}\">\n<h3 class=\"series\">{}</h3>\n<div class=\"charts\">\n{figures}</div>\n{body}{absent}</article>\n",
        safe(&monitors::words(table))
    )
}

/// One column of the first boots of the first sides, over time.
fn plot(table: &MonitorTable, place: usize, column: &str) -> Option<String> {
    let at = table.rows.iter().position(|row| row.name == column)? + 1;
    let points = |trace: &Vec<Vec<f64>>| -> Vec<(f64, f64)> {
        trace.iter().filter_map(|row| Some((row.first()? / 1000.0, *row.get(at)?))).collect()
    };
    let traces: Vec<Vec<(f64, f64)>> = table.traces.iter().take(LINES.len()).map(points).collect();
    let last = traces.iter().flatten().map(|(time, _)| *time).fold(0.0, f64::max);
    if traces.iter().all(|trace| trace.len() < 2) {
        return None;
    }
    let title =
        format!("{column} over the seconds of the kept iterations, first boot of each side");
    let id = format!("m{place}-{column}");
    // From zero: how much, not only how it changes.
    let values = traces.iter().flatten().map(|(_, value)| *value).chain([0.0]);
    let mut frame = Frame::new(&id, [&title, ""], values, "count");
    let x = Scale::even((0.0, last), (frame.left + 4.0, RIGHT - 6.0));
    let ticks: Vec<(f64, String)> =
        x.ticks(5).into_iter().map(|value| (value, format!("{value} s"))).collect();
    frame.along(&ticks, &x);
    for (trace, class) in traces.iter().zip(LINES) {
        let line: Vec<(f64, f64)> =
            trace.iter().map(|(time, value)| (x.at(*time), frame.y.at(*value))).collect();
        frame.svg.through(&format!("line {class}"), &line);
    }
    let names: Vec<String> = table
        .sides
        .iter()
        .zip(LINES)
        .map(|(side, class)| format!("<span><i class=\"k-{class}\"></i> {}</span>", safe(side)))
        .collect();
    Some(format!(
        "<figure><figcaption><b>{column}</b> {}</figcaption>\n{}\n</figure>\n",
        names.join(" "),
        frame.svg.finish()
    ))
}
