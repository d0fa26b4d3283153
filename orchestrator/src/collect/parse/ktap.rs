//! KTAP: plans, results, subtests by indentation.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row, Value};
use super::pattern::{Pattern, group};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(r"^\s*(?:#\s+)?(?:KTAP version \d+|TAP version \d+)\s*$");
static PLAN: Pattern = Pattern::new(r"^(?P<indent>\s*)(?:#\s)?\s*1\.\.(?P<count>\d+)(?:\s*#.*)?$");
static RESULT: Pattern = Pattern::new(
    r"^(?P<indent>\s*(?:#\s+)?)(?P<not>not )?ok (?P<number>\d+)(?: -)?(?: (?P<name>[^#]*?))?(?:\s*# ?(?P<directive>SKIP|TODO|XFAIL|TIMEOUT|ERROR)\b.*|\s*#.*)?\s*$",
);

/// Lines of a test's own that may stand between two results.
const GAP: usize = 200;

/// Whether a report begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.contains("TAP version") && HEAD.is_in(&lines[0].text)
}

/// A level of subtests.
struct Level {
    indent: usize,
    planned: Option<u64>,
    seen: u64,
    line: usize,
}

/// Reads one report: a row for every result, 1 if it passed, 0 if not; skipped ones have no value.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Ktap);
    let mut levels: Vec<Level> =
        vec![Level { indent: 0, planned: None, seen: 0, line: lines[0].number }];
    let mut used = 1;
    for (index, line) in lines.iter().enumerate().skip(1) {
        if index > used + GAP || HEAD.is_in(&line.text) && !line.text.starts_with([' ', '#']) {
            break;
        }
        if let Some(found) = PLAN.captures(&line.text) {
            let indent = indent(&line.text);
            close(&mut block, &mut levels, indent);
            let level = level(&mut levels, indent, line);
            level.planned = group(&found, "count").parse().ok();
        } else if let Some(found) = RESULT.captures(&line.text) {
            let indent = indent(&line.text);
            close(&mut block, &mut levels, indent);
            let level = level(&mut levels, indent, line);
            level.seen += 1;
            let number: u64 = group(&found, "number").parse().unwrap_or_default();
            if number != level.seen {
                let text = format!("result {number} stands where {} is due", level.seen);
                block.note(line, text);
                level.seen = number;
            }
            block.rows.push(row(line, &found, indent));
        } else {
            continue;
        }
        used = index + 1;
    }
    close(&mut block, &mut levels, 0);
    if let Some(top) = levels.first() {
        missing(&mut block, top);
    }
    tally(&mut block);
    block.finish(used)
}

/// Spaces before a line, without the mark of a diagnostic that subtests may wear.
fn indent(text: &str) -> usize {
    let bare = text.trim_start_matches([' ', '\t', '#']);
    text.len() - bare.len()
}

fn level<'l>(levels: &'l mut Vec<Level>, indent: usize, line: &Line<'_>) -> &'l mut Level {
    if levels.last().is_none_or(|level| level.indent < indent) {
        levels.push(Level { indent, planned: None, seen: 0, line: line.number });
    }
    let last = levels.len() - 1;
    &mut levels[last]
}

/// Ends the levels that are indented more.
fn close(block: &mut Block, levels: &mut Vec<Level>, indent: usize) {
    while levels.len() > 1 && levels.last().is_some_and(|level| level.indent > indent) {
        if let Some(level) = levels.pop() {
            missing(block, &level);
        }
    }
}

fn missing(block: &mut Block, level: &Level) {
    let text = match level.planned {
        Some(planned) if planned != level.seen => {
            format!("incomplete: {} of {planned} planned results", level.seen)
        }
        None => format!("{} results without a plan", level.seen),
        Some(_) => return,
    };
    block.note(&Line::new(level.line, ""), text);
}

fn row(line: &Line<'_>, found: &regex::Captures<'_>, indent: usize) -> Row {
    let name = group(found, "name").trim();
    let name = if name.is_empty() { group(found, "number") } else { name };
    let metric = if indent == 0 { name.to_owned() } else { format!("  {name}") };
    let passed = found.name("not").is_none();
    let number = if passed { 1.0 } else { 0.0 };
    let mut row = Row::result(
        &metric,
        "pass",
        Better::Higher,
        Value { number, step: 0.0, line: line.number },
    );
    let directive = group(found, "directive");
    if directive == "SKIP" {
        row.cells[0].values.clear();
        row.cells[0].absent = Some("SKIP".to_owned());
    }
    row
}

/// How many passed, failed and were skipped.
fn tally(block: &mut Block) {
    let count = |wanted: Option<f64>| {
        let value = |row: &&Row| row.cells[0].values.first().map(|value| value.number) == wanted;
        block.rows.iter().filter(value).count().to_string()
    };
    let counts = [("passed", Some(1.0)), ("failed", Some(0.0)), ("skipped", None)];
    let counts = counts.map(|(name, wanted)| (name, count(wanted)));
    for (name, count) in counts {
        block.parameter(name, count);
    }
    if block.rows.is_empty() {
        block.note(&Line::new(0, ""), "incomplete: no result");
    }
    for row in &mut block.rows {
        row.role = if row.metric.starts_with("  ") { Role::Monitor } else { Role::Result };
    }
}
