//! kernbench: blocks of averages with deviations, and the table that people make of it, one kernel a
//! line.

use kduel_protocol::Better;

use super::block::{Block, Cell, Claimed, Format, Role, Row, Sense, Value};
use super::number::number;
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(
    r"^\s*Average (?P<load>\w+) [Ll]oad(?: -j ?(?P<jobs>\d+))? Run \(std deviation\):",
);
static LINE: Pattern = Pattern::new(
    r"^\s*(?P<name>Elapsed Time|User Time|System Time|Percent CPU|Context Switches|Sleeps):?(?P<rest>\s+[\d.].*)$",
);
static COLUMN: Pattern =
    Pattern::new(r"(?P<value>\d[\d.]*(?:e\+?\d+)?) ?\((?P<deviation>[\d.e+]+)\)");
static CHANGE: Pattern = Pattern::new(r"(?P<change>[-+][\d.]+) ?%\s*\)?\s*$");

/// Lines of a block of averages.
const LINES: usize = 6;

/// Whether either shape begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    text.contains("std deviation") && HEAD.is_in(text) || columns(text).is_some()
}

/// Reads a table of either shape.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    match HEAD.captures(&lines[0].text) {
        Some(head) => averages(lines, &head),
        None => table(lines),
    }
}

/// Name, unit and role of a number that kernbench gives.
fn metric(word: &str) -> Option<(&'static str, &'static str, Role, Option<Better>)> {
    let time = |name, role| Some((name, "s", role, Some(Better::Lower)));
    match word {
        "Elapsed" | "Elapsed Time" => time("elapsed", Role::Result),
        "User" | "User Time" => time("user", Role::Result),
        "System" | "System Time" => time("system", Role::Result),
        "CPU" | "Percent CPU" => Some(("cpu", "%", Role::Monitor, None)),
        "Context Switches" => Some(("context switches", "", Role::Monitor, None)),
        "Sleeps" => Some(("sleeps", "", Role::Monitor, None)),
        _ => None,
    }
}

fn averages(lines: &[Line<'_>], head: &regex::Captures<'_>) -> Option<Block> {
    let mut block = Block::new(Format::Kernbench);
    block.parameter("load", group(head, "load").to_lowercase());
    if !group(head, "jobs").is_empty() {
        block.parameter("jobs", group(head, "jobs"));
    }
    let mut used = 1;
    while let Some(line) = lines.get(used) {
        let Some(found) = LINE.captures(&line.text) else { break };
        let Some((name, unit, role, better)) = metric(group(&found, "name")) else { break };
        let joined = Line::joined(&lines[used..lines.len().min(used + 2)]);
        // What does not begin like a line of the block goes on with the one before.
        let goes_on = lines.get(used + 1).is_some_and(|next| {
            let text = next.text.trim_start();
            text.starts_with(['(', '+', '-']) || COLUMN.is_in(text) && !LINE.is_in(text)
        });
        let line = if goes_on { &joined } else { line };
        let cells = cells(line);
        if cells.is_empty() {
            break;
        }
        let (metric, unit) = (name.to_owned(), unit.to_owned());
        block.rows.push(Row { metric, unit, better, role, cells });
        used += if goes_on { 2 } else { 1 };
    }
    let sides = block.rows.first().map_or(0, |row| row.cells.len());
    block.rows.retain(|row| row.cells.len() == sides);
    if block.rows.len() < LINES {
        let text = format!("incomplete: {} of the {LINES} lines of a block", block.rows.len());
        block.note(&lines[0], text);
    }
    if sides > 1 {
        block.sides = (1..=sides).map(|number| format!("column {number}")).collect();
    }
    block.finish(used)
}

/// The numbers of a line with their deviations, and the change at its end.
fn cells(line: &Line<'_>) -> Vec<Cell> {
    let cell = |found: regex::Captures<'_>| {
        let number = value(line, found.name("value"))?;
        let deviation = self::number(group(&found, "deviation"))?.value;
        let spread = (number.number != 0.0).then(|| 100.0 * deviation / number.number);
        Some(Cell { spread, ..Cell::of(number) })
    };
    let mut cells: Vec<Cell> = COLUMN.all(&line.text).filter_map(cell).collect();
    let change = CHANGE.captures(&line.text).and_then(|found| value(line, found.name("change")));
    if let (2.., Some(last), Some(value)) = (cells.len(), cells.last_mut(), change) {
        last.claimed = Some(Claimed { value, sense: Sense::Raw });
    }
    cells
}

/// The columns of the other shape's head.
fn columns(text: &str) -> Option<Vec<&str>> {
    if !text.contains("Elapsed") {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.len() >= 3 && words.iter().all(|word| metric(word).is_some())).then_some(words)
}

fn table(lines: &[Line<'_>]) -> Option<Block> {
    let columns = columns(&lines[0].text)?;
    let mut block = Block::new(Format::Kernbench);
    let mut found: Vec<(String, Vec<Value>)> = Vec::new();
    let mut used = 1;
    while let Some(line) = lines.get(used) {
        match side(line, columns.len()) {
            Some(side) => found.push(side),
            // A blank line or a ruler between head and first line is none of it.
            None if found.is_empty() && used == 1 && !has_digit(line) => {}
            None => break,
        }
        used += 1;
    }
    if found.is_empty() {
        block.note(&lines[0], "incomplete: a head without lines");
        return block.finish(1);
    }
    for (index, word) in columns.iter().enumerate() {
        let (name, unit, role, better) = metric(word)?;
        let cells = found.iter().map(|(_, values)| Cell::of(values[index])).collect();
        block.rows.push(Row {
            metric: name.to_owned(),
            unit: unit.to_owned(),
            better,
            role,
            cells,
        });
    }
    block.sides = found.into_iter().map(|(name, _)| name).collect();
    block.finish(used)
}

fn has_digit(line: &Line<'_>) -> bool {
    line.text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A kernel's name and its numbers.
fn side(line: &Line<'_>, columns: usize) -> Option<(String, Vec<Value>)> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let names = words.len().checked_sub(columns).filter(|names| *names > 0)?;
    let values: Option<Vec<Value>> = words[names..]
        .iter()
        .map(|word| {
            let number = number(word.trim_end_matches('%'))?;
            Some(Value { number: number.value, step: number.step, line: line.number })
        })
        .collect();
    Some((words[..names].join(" ").trim_end_matches(':').to_owned(), values?))
}
