//! `perf stat` for people: one counter a line, `<not counted>` where there was none.

use kduel_protocol::Better;

use super::block::{Block, Cell, Format, Role, Row};
use super::number::number;
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(
    r"Performance counter stats for (?P<what>.+?)(?: \((?P<runs>\d+)\s+runs\))?:?\s*$",
);
static COUNTER: Pattern = Pattern::new(
    r"^\s*(?:(?P<absent><not (?:counted|supported)>)|(?P<value>\d[\d,.]*))\s+(?:(?P<unit>msec|Joules|MiB|seconds|ns)\s+)?(?P<event>[A-Za-z][\w:./=,-]*)(?P<rest>\s.*)?$",
);
static ELAPSED: Pattern = Pattern::new(
    r"^\s*(?P<value>\d[\d,.]*)\s+(?:\+-\s*(?P<deviation>[\d.]+)\s+)?seconds (?P<what>time elapsed|user|sys)(?P<rest>.*)$",
);
static SPREAD: Pattern = Pattern::new(r"\(\s*\+-\s*(?P<spread>[\d.]+)\s*%\s*\)");
static UTILISED: Pattern = Pattern::new(r"#\s+(?P<value>[\d.]+)\s+CPUs\s+utilized");

/// Whether a block begins in the first line, or in it and the next if it was wrapped.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.contains("Performance counter stats for")
}

/// Reads one block.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::PerfStat);
    let (head, mut used) = head(lines);
    let found = HEAD.captures(&head.text)?;
    block.parameter("command", group(&found, "what").trim_matches('\''));
    if !group(&found, "runs").is_empty() {
        block.parameter("runs", group(&found, "runs"));
    }
    let mut elapsed = false;
    loop {
        let blank = lines[used..].iter().take_while(|line| line.is_blank()).count();
        let at = used + blank;
        let Some(line) = lines.get(at).filter(|line| blank <= 2 && is_row(line)) else { break };
        let goes_on = lines[at + 1..].iter().take(2).take_while(|next| goes_on(next)).count();
        let whole = Line::joined(&lines[at..=at + goes_on]);
        elapsed |=
            ELAPSED.captures(&line.text).is_some_and(|f| group(&f, "what") == "time elapsed");
        block.rows.extend(rows(&whole));
        used = at + goes_on + 1;
    }
    if !elapsed {
        block.note(&lines[0], "incomplete: no `seconds time elapsed`");
    }
    block.finish(used)
}

/// The head, which may be wrapped, and how many lines it takes.
fn head(lines: &[Line<'_>]) -> (Line<'static>, usize) {
    let ends = |line: &Line<'_>| line.text.trim_end().ends_with(':');
    let takes = lines.iter().take(3).position(ends).map_or(1, |at| at + 1);
    (Line::joined(&lines[..takes]), takes)
}

fn is_row(line: &Line<'_>) -> bool {
    COUNTER.is_in(&line.text) || ELAPSED.is_in(&line.text)
}

/// What a mailer wrapped: no row, and what rows end with.
fn goes_on(line: &Line<'_>) -> bool {
    let text = line.text.trim();
    let ends = ["utilized", ")", "/sec", "GHz", "cycle", "branches", "hits", "refs"];
    !is_row(line) && !text.contains(':') && ends.iter().any(|end| text.ends_with(end))
}

fn rows(line: &Line<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let spread = SPREAD.captures(&line.text).and_then(|found| number(group(&found, "spread")));
    let spread = spread.map(|spread| spread.value);
    if let Some(found) = ELAPSED.captures(&line.text) {
        let what = group(&found, "what");
        let (metric, role) = match what {
            "time elapsed" => ("elapsed", Role::Result),
            other => (other, Role::Monitor),
        };
        let row = value(line, found.name("value"));
        rows.extend(row.map(|time| Row::result(metric, "s", Better::Lower, time).with(role)));
    } else if let Some(found) = COUNTER.captures(&line.text) {
        rows.extend(counter(line, &found));
        let used = UTILISED.captures(&line.text).and_then(|found| value(line, found.name("value")));
        rows.extend(used.map(|cpus| Row::monitor("CPUs utilized", "CPUs", cpus)));
        // The deviation is the counter's.
        if let Some(row) = rows.get_mut(1) {
            row.cells[0].spread = None;
        }
    }
    if let Some(cell) = rows.first_mut().and_then(|row| row.cells.first_mut()) {
        cell.spread = spread;
    }
    rows
}

fn counter(line: &Line<'_>, found: &regex::Captures<'_>) -> Option<Row> {
    let event = group(found, "event");
    // Older versions leave the unit out.
    let is_clock = |event: &str| event.starts_with("task-clock") || event.starts_with("cpu-clock");
    let unit = match group(found, "unit") {
        "msec" => "ms",
        "" if is_clock(event) => "ms",
        unit => unit,
    };
    if found.name("absent").is_some() {
        return Some(absent(event, unit, group(found, "absent")));
    }
    let number = value(line, found.name("value"))?;
    Some(Row { better: Some(Better::Lower), ..Row::monitor(event, unit, number) })
}

/// An event that was not counted: no zero, but nothing.
pub(super) fn absent(event: &str, unit: &str, why: &str) -> Row {
    let cell = Cell { absent: Some(why.to_owned()), ..Cell::default() };
    Row {
        metric: event.to_owned(),
        unit: unit.to_owned(),
        better: Some(Better::Lower),
        role: Role::Monitor,
        cells: vec![cell],
    }
}
