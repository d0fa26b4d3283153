//! The changes of many series in one line, for those who want one number.

use crate::analyse::{GeometricLine, geometric_lines};

use super::Report;
use super::number::signed_percent;
use super::outcome::mark;

/// `geometric mean of 9 (time), v2:b: ~-20.0 %, 1 left out`, one for each side and unit.
pub(super) fn lines(report: &Report<'_>) -> Vec<String> {
    let several = report.plan.experiments.len() > 1;
    let lines = geometric_lines(&report.analysis.comparisons).into_iter();
    lines.map(|line| said(&line, several, mark(report))).collect()
}

fn said(line: &GeometricLine, several: bool, mark: &str) -> String {
    let GeometricLine { experiment, side, of, series, left_out, .. } = line;
    let experiment = if several { format!("{experiment}, ") } else { String::new() };
    let left_out = if *left_out > 0 { format!(", {left_out} left out") } else { String::new() };
    let change = signed_percent(line.change);
    format!("geometric mean of {series} ({of}), {experiment}{side}: {mark}{change}{left_out}")
}
