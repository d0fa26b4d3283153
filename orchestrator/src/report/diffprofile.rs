//! Every function of every comparison, worst first, with the total among the rows.

use crate::analyse::profile::{DiffProfile, Operations, Row, Section, SeriesProfile};
use crate::plan::Measure;
use kduel_protocol::workload;

use super::Report;
use super::page::{Look, Page};
use super::profile::{
    entries, folded, groups, moved_words, name, parts, ratio, short, signed, total,
};

/// How a difference is split, in words.
const FORMULA: &str = "by calls = (calls value - calls base) x each base; by cost = (each value - each \
                       base) x calls value; they add up to change. Function on one side: all by calls.";

/// All rows of all comparisons. Ends with a newline.
pub fn diffprofile(report: &Report<'_>) -> String {
    let mut page = Page::new(Look::default());
    if report.plan.measure == Measure::Time {
        page.line("no profile: this is a timed run; an exact one (--measure instructions) has one");
    }
    for series in &report.profiles.series {
        one(&mut page, series);
        page.blank();
    }
    for note in &report.profiles.notes {
        page.line(&format!("note: {note}"));
    }
    page.finish()
}

fn one(page: &mut Page, series: &SeriesProfile) {
    let profile = &series.profile;
    let word = series.workload.split(' ').next().unwrap_or_default();
    let operation = workload(word).map_or("operation", |info| info.operation);
    page.line(&format!(
        "{}: {}, {} minus {}, instructions per {operation}; {} operations of {}, {} of {}",
        series.experiment,
        series.workload,
        series.side,
        series.base,
        profile.operations.base,
        series.base,
        profile.operations.value,
        series.side
    ));
    page.line(FORMULA);
    for section in &profile.sections {
        page.blank();
        all(page, section, profile.operations);
    }
    page.blank();
    groups(page, profile, false);
    entries(page, profile, false);
    notes(page, profile);
}

fn notes(page: &mut Page, profile: &DiffProfile) {
    for moved in &profile.moved {
        page.line(&moved_words(moved));
    }
    for fold in &profile.folds {
        page.line(&folded(fold));
    }
}

fn all(page: &mut Page, section: &Section, operations: Operations) {
    page.line(section.scope.words());
    page.line(&format!(
        "{:>9} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {:>9} {:>9}  function",
        "change", "ratio", "base", "value", "calls", "calls", "each", "each", "by calls", "by cost"
    ));
    let total = total(section);
    let mut rows: Vec<(&Row, bool)> = section.rows.iter().map(|row| (row, false)).collect();
    rows.push((&total, true));
    rows.sort_by_key(|(row, _)| std::cmp::Reverse(row.exact(operations)));
    for (row, is_total) in rows {
        line(page, row, is_total, operations);
    }
    page.line(&sums(section, operations));
}

fn line(page: &mut Page, row: &Row, is_total: bool, operations: Operations) {
    let calls = [operations.base(row.base.calls), operations.value(row.value.calls)];
    let cost = [operations.base(row.base.instructions), operations.value(row.value.instructions)];
    let each = |side: usize| match calls[side] {
        0.0 => "-".to_owned(),
        calls => short(cost[side] / calls),
    };
    let times = |side: usize| if is_total { "-".to_owned() } else { short(calls[side]) };
    let (by_calls, by_cost) = parts(row.split(operations).filter(|_| !is_total));
    page.line(&format!(
        "{:>9} {:>6} {:>9} {:>9} {:>8} {:>8} {:>8} {:>8} {by_calls:>9} {by_cost:>9}  {}",
        signed(row.difference(operations)),
        ratio(row, operations),
        short(cost[0]),
        short(cost[1]),
        times(0),
        times(1),
        each(0),
        each(1),
        if is_total { "(total)".to_owned() } else { name(row) }
    ));
}

/// The check that nothing is lost, in whole instructions of the windows.
fn sums(section: &Section, operations: Operations) -> String {
    let word = if section.adds_up(operations) { "add up to" } else { "do NOT add up to" };
    format!(
        "the {} rows {word} the totals of the windows: {} and {} instructions, difference {:+.4} per \
         operation",
        section.rows.len(),
        section.base,
        section.value,
        operations.difference(section.base, section.value)
    )
}
