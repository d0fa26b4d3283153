//! The numbers for a commit message: at most 12 lines of 72 columns.

use crate::analyse::{Comparison, Verdict};
use crate::boot::Accel;
use crate::plan::{Measure, PlannedSide};
use crate::text::count;
use kduel_protocol::workload;

use super::headline::{has_changed, metric, word};
use super::number::{interval, quantity, signed_percent};
use super::outcome::mark;
use super::plain::{Plain, clipped, command_lines, wrapped};
use super::{Report, profile};

const WIDTH: usize = 72;
const LINES: usize = 12;

/// Lines for the sides, and for the command. With the line of method five are left for changes.
const SIDES: usize = 3;
const COMMAND: usize = 3;

/// Functions named of a comparison.
const FUNCTIONS: usize = 3;

/// At most 12 lines of 72 columns of ASCII; the last one ends with a newline. Nothing in it begins a line
/// that git would take for its own.
pub fn changelog(report: &Report<'_>) -> String {
    let mut page = Plain::new(WIDTH);
    page.line(&method(report));
    let sides = sides(report);
    let command = command(report);
    let room = LINES - 1 - sides.len() - command.len();
    for line in sides.into_iter().chain(changes(report, room)).chain(command) {
        page.line(&line);
    }
    page.finish()
}

fn method(report: &Report<'_>) -> String {
    let qemu = report.info.qemu.as_ref().map(|qemu| format!(", QEMU {}", qemu.version));
    let qemu = qemu.unwrap_or_default();
    let boots = super::outcome::boots_compared(report);
    let accel = report.analysis.accel.unwrap_or(report.info.accelerator);
    match (report.plan.measure, accel) {
        (Measure::Instructions, _) => {
            format!("kduel: instructions per operation, deterministic guests{qemu}:")
        }
        (Measure::Time, Accel::Kvm) => format!("kduel: time, {boots}, KVM{qemu}:"),
        (Measure::Time, Accel::Tcg) => format!("kduel: time, {boots}, emulated (~, TCG){qemu}:"),
    }
}

fn sides(report: &Report<'_>) -> Vec<String> {
    let mut sides: Vec<&PlannedSide> = Vec::new();
    for side in report.plan.experiments.iter().flat_map(|experiment| &experiment.sides) {
        let known =
            |one: &&PlannedSide| one.name == side.name && one.kernel_name == side.kernel_name;
        if !sides.iter().any(known) {
            sides.push(side);
        }
    }
    let width = sides.iter().map(|side| side.name.chars().count()).max().unwrap_or(0).min(16);
    let lines = sides.iter().map(|side| {
        let kernel = report.info.kernels.get(&side.kernel_name);
        let kernel = kernel.map_or(&side.kernel_name, |kernel| &kernel.origin);
        clipped(&format!("  {:<width$}  {kernel}", clipped(&side.name, width)), WIDTH)
    });
    shortened(lines.collect(), SIDES, "side")
}

/// The changes, worst first, each with its functions where there is room for both.
fn changes(report: &Report<'_>, room: usize) -> Vec<String> {
    let comparisons = report.analysis.comparisons.iter().filter(|c| c.primary);
    let tells = |c: &&Comparison| has_changed(c) || c.verdict == Verdict::Fails;
    let (mut changed, other): (Vec<&Comparison>, Vec<&Comparison>) = comparisons.partition(tells);
    changed.sort_by_key(|comparison| comparison.verdict);
    let rest: Vec<String> = tally(report, &other, !changed.is_empty());
    let room = room.saturating_sub(rest.len());
    let functions = |c: &&Comparison| functions(report, c);
    let whole = |c: &&Comparison| {
        let text = change(report, c);
        let room = if text.len() + 2 <= WIDTH { WIDTH - 2 } else { WIDTH - 4 };
        let lines = wrapped(&text, room).into_iter().enumerate();
        let indent = |place| if place == 0 { "  " } else { "    " };
        lines.map(move |(place, line)| format!("{}{line}", indent(place)))
    };
    let with: Vec<String> = changed.iter().flat_map(|c| whole(c).chain(functions(c))).collect();
    let mut lines = if with.len() <= room {
        with
    } else {
        let short = |c: &&Comparison| clipped(&format!("  {}", change(report, c)), WIDTH);
        shortened(changed.iter().map(short).collect(), room, "change")
    };
    lines.extend(rest);
    lines
}

/// `fork-exit: +20.0 % instructions (more), 146476 -> 175772 per fork+exit`.
fn change(report: &Report<'_>, comparison: &Comparison) -> String {
    let mark = mark(report);
    let show = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |v| format!("{mark}{}", quantity(v, &comparison.unit)))
    };
    let change = comparison.change.map(|change| format!("{mark}{}", signed_percent(change)));
    let ends = comparison.low.zip(comparison.high);
    let ends = ends.map(|(low, high)| format!(" {}", interval(low, high))).unwrap_or_default();
    let several = report.plan.experiments.iter().any(|experiment| experiment.sides.len() > 2);
    let side = if several { format!("{}, ", comparison.side) } else { String::new() };
    if comparison.verdict == Verdict::Fails {
        let (workload, reason) = (&comparison.series.workload, &comparison.reason);
        return format!("{side}{workload}: fails, {reason}");
    }
    let name = comparison.series.workload.split(' ').next().unwrap_or_default();
    let operation = workload(name).map(|info| format!(" per {}", info.operation));
    let (from, to) = (show(comparison.base), show(comparison.value));
    format!(
        "{side}{}: {}{ends} {} ({}), {from} -> {to}{}",
        comparison.series.workload,
        change.unwrap_or_default(),
        metric(comparison),
        word(report, comparison),
        operation.filter(|_| comparison.exact.is_some()).unwrap_or_default()
    )
}

/// `top: +1200 copy_page_range, +300 dup_mm`.
fn functions(report: &Report<'_>, comparison: &Comparison) -> Option<String> {
    let series = profile::of(report.profiles, comparison)?;
    let operations = series.profile.operations;
    let rows = profile::matter(series.profile.own()?, operations, FUNCTIONS);
    let one = |row: &&_| {
        let row: &crate::analyse::profile::Row = row;
        format!("{} {}", profile::signed(row.difference(operations)), row.code)
    };
    let named: Vec<String> = rows.iter().map(one).collect();
    (!named.is_empty()).then(|| format!("    top: {}", named.join(", ")))
}

/// `others: 3 no change, 1 inconclusive`; all of them if none `changed`.
fn tally(report: &Report<'_>, comparisons: &[&Comparison], changed: bool) -> Vec<String> {
    let mut words: Vec<(&str, usize)> = Vec::new();
    for comparison in comparisons {
        let found = word(report, comparison);
        match words.iter_mut().find(|(known, _)| *known == found) {
            Some((_, number)) => *number += 1,
            None => words.push((found, 1)),
        }
    }
    let parts: Vec<String> =
        words.iter().map(|(word, number)| format!("{number} {word}")).collect();
    let lead = if changed { "others: " } else { "" };
    if parts.is_empty() { Vec::new() } else { vec![format!("  {lead}{}", parts.join(", "))] }
}

fn command(report: &Report<'_>) -> Vec<String> {
    let lines = command_lines(&report.info.command, WIDTH - 2);
    if lines.len() > COMMAND {
        return vec![format!("  command: kduel report {} --format mail", report.info.reference())];
    }
    // A word that goes on in the next line does so from its first column, or it would be two.
    let mut goes_on = false;
    let indented = |line: String| {
        let shown = if goes_on { line.clone() } else { format!("  {line}") };
        goes_on = line.ends_with('\\') && !line.ends_with(" \\");
        shown
    };
    lines.into_iter().map(indented).collect()
}

/// As many as there is room for; the last line counts the others.
fn shortened(mut lines: Vec<String>, room: usize, noun: &str) -> Vec<String> {
    if lines.len() > room {
        let shown = room.saturating_sub(1);
        let hidden = count(lines.len() - shown, noun);
        lines.truncate(shown);
        lines.push(format!("  and {hidden} more"));
    }
    lines
}
