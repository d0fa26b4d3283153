use crate::analyse::{Comparison, Verdict};
use kduel_protocol::Better;

use super::number::{interval, percent, signed_percent};
use super::page::Span;

/// A comparison in words: `patched is slower by 16.1 % [12.0, 19.8], regression`. `mark` stands before
/// every estimate: `~` where the guests were emulated.
pub(super) fn sentence(comparison: &Comparison, mark: &str) -> Vec<Span> {
    let mut spans = statement(comparison, mark);
    if !comparison.primary {
        spans.push("(secondary, decides nothing)".into());
    }
    spans
}

/// The same, short enough for a line where it can be: reasons only where there are no numbers.
pub(super) fn short(comparison: &Comparison, mark: &str) -> Vec<Span> {
    let mut spans = match comparison.verdict {
        Verdict::Fails | Verdict::Invalid => statement(comparison, mark),
        _ => finding(comparison, mark),
    };
    if !comparison.primary {
        spans.push("(secondary)".into());
    }
    spans
}

fn statement(comparison: &Comparison, mark: &str) -> Vec<Span> {
    let mut spans = finding(comparison, mark);
    let reason = match (comparison.verdict, comparison.change) {
        (Verdict::Regression | Verdict::Improvement, Some(_)) => return spans,
        (Verdict::Fails, _) => format!(": {}", comparison.reason),
        _ => format!("; {}", comparison.reason),
    };
    spans.push(reason.into());
    spans
}

fn finding(comparison: &Comparison, mark: &str) -> Vec<Span> {
    let side = &comparison.side;
    let verdict = Span::Verdict(comparison.verdict);
    match (comparison.verdict, comparison.change) {
        (Verdict::Fails, _) => vec![side.as_str().into(), verdict],
        (Verdict::Regression | Verdict::Improvement, Some(change)) => {
            vec![format!("{}, ", effect(comparison, change, mark)).into(), verdict]
        }
        (_, Some(change)) => {
            let change = format!("{mark}{}", signed_percent(change));
            let ends = comparison.low.zip(comparison.high);
            let interval = ends.map(|(low, high)| format!(" {}", interval(low, high)));
            let found = format!("{side}: {change}{},", interval.unwrap_or_default());
            vec![found.into(), verdict]
        }
        (_, None) => vec![format!("{side}:").into(), verdict],
    }
}

/// What changed, by how much, as people say it.
fn effect(comparison: &Comparison, change: f64, mark: &str) -> String {
    let side = &comparison.side;
    let size = format!("{mark}{}", percent(change.abs()));
    let ends = comparison.low.zip(comparison.high);
    let ends = ends.map(|(low, high)| if change < 0.0 { (-high, -low) } else { (low, high) });
    let range = ends.map(|(low, high)| format!(" [{}, {}]", bare(low), bare(high)));
    let range = range.unwrap_or_default();
    let is_time = matches!(comparison.unit.as_str(), "ns" | "us" | "ms" | "s");
    let metric = &comparison.series.metric;
    match (is_time && comparison.better == Better::Lower, change > 0.0) {
        (true, true) => format!("{side} is slower by {size}{range}"),
        (true, false) => format!("{side} is faster, {size} less {metric}{range}"),
        (false, true) => format!("{side} has {size} more {metric}{range}"),
        (false, false) => format!("{side} has {size} less {metric}{range}"),
    }
}

fn bare(change: f64) -> String {
    percent(change).trim_end_matches(" %").to_owned()
}
