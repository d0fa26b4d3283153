//! readprofile (`ticks function load`) and diffprofile (`ticks function`, candidate minus base).

use super::block::{Block, Cell, Claimed, Format, Role, Row, Sense, Value};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static LINE: Pattern = Pattern::new(
    r"^\s*(?P<ticks>[-+]?\d+)\s+(?:(?P<change>[-+]?\d+(?:\.\d+)?)%\s+)?(?P<name>[A-Za-z_.][\w.$]*)(?:\s+(?P<load>\d+\.\d+))?\s*$",
);

/// Fewer lines are no profile.
const FEWEST: usize = 4;

/// What the sum of all functions is called.
const TOTAL: &str = "total";

/// Whether a profile begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_start();
    text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')) && LINE.is_in(text)
}

/// Reads a profile. None of one: how many lines look like one and are none, since there may be so many
/// that they must not be looked at again for each.
pub fn read(lines: &[Line<'_>]) -> Result<Block, usize> {
    let mut rows = Vec::new();
    let (mut changes, mut loads) = (0, 0);
    for line in lines {
        let Some(found) = LINE.captures(&line.text) else { break };
        let Some(ticks) = value(line, found.name("ticks")) else { break };
        let change = value(line, found.name("change"));
        changes += usize::from(change.is_some());
        loads += usize::from(found.name("load").is_some());
        rows.push((group(&found, "name").to_owned(), ticks, change));
    }
    let used = rows.len();
    let raw = loads * 2 > used;
    let total = rows.iter().find(|(name, ..)| name == TOTAL).map(|(_, ticks, _)| *ticks);
    let negative = rows.iter().any(|(_, ticks, _)| ticks.number < 0.0);
    if used < FEWEST || !(raw || negative || total.is_some()) {
        return Err(used);
    }
    let format = if raw { Format::Readprofile } else { Format::Diffprofile };
    let mut block = Block::new(format);
    let functions = rows.iter().filter(|(name, ..)| name != TOTAL);
    let sum: f64 = functions.clone().map(|(_, ticks, _)| ticks.number).sum();
    block.parameter("functions", functions.count().to_string());
    if !raw {
        block.note(&lines[0], "candidate minus base: the ticks of either are not known");
    }
    block.note(&lines[0], summed(sum, total));
    if changes > 0 {
        block.note(&lines[0], "percentages of unknown ticks cannot be checked");
    }
    block.rows = rows.into_iter().map(|(name, ticks, change)| row(name, ticks, change)).collect();
    block.finish(used).ok_or(used)
}

fn summed(sum: f64, total: Option<Value>) -> String {
    match total {
        Some(total) => format!(
            "its functions sum to {sum}; the total is {}, so {} are of functions not listed",
            total.number,
            total.number - sum
        ),
        None => format!("its functions sum to {sum}; no total is given"),
    }
}

fn row(name: String, ticks: Value, change: Option<Value>) -> Row {
    let role = if name == TOTAL { Role::Total } else { Role::Result };
    let claimed = change.map(|value| Claimed { value, sense: Sense::Raw });
    let cells = vec![Cell { claimed, ..Cell::of(ticks) }];
    Row { metric: name, unit: "ticks".to_owned(), better: None, role, cells }
}
