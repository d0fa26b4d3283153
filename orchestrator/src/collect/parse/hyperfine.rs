//! hyperfine's JSON: of every command all its times.

use kduel_protocol::Better;

use super::block::{Block, Cell, Format, Role, Row, Value};
use super::json::{Json, read_json};
use crate::collect::mail::Line;

/// How far into an object its tell-tale key may stand, in lines.
const LOOK: usize = 6;

/// Whether an object of hyperfine begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let head = &lines[..lines.len().min(LOOK)];
    lines[0].text.trim_start().starts_with('{')
        && head.iter().any(|line| line.text.contains("\"results\""))
        && head.iter().any(|line| line.text.contains("\"command\""))
}

/// Reads the object. Several commands are the sides.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Hyperfine);
    let Some((json, used)) = read_json(lines) else {
        block.note(&lines[0], "incomplete: the JSON of hyperfine is cut off or broken");
        return block.finish(1);
    };
    let results = json.get("results")?.items();
    let command =
        |result: &Json| result.get("command").and_then(Json::text).unwrap_or_default().to_owned();
    match results {
        [one] => block.parameter("command", command(one)),
        several => block.sides = several.iter().map(command).collect(),
    }
    let cells = |find: &dyn Fn(&Json) -> Vec<Value>| {
        results.iter().map(|result| Cell { values: find(result), ..Cell::default() }).collect()
    };
    let times = |result: &Json| {
        let all: Vec<Value> = result
            .get("times")
            .map_or(&[][..], Json::items)
            .iter()
            .filter_map(Json::value)
            .collect();
        // Without its single times a result still has their mean.
        if all.is_empty() { number(result, "mean") } else { all }
    };
    block.rows.push(row("time", Role::Result, cells(&times)));
    for key in ["mean", "median", "stddev", "min", "max", "user", "system"] {
        block.rows.push(row(key, Role::Monitor, cells(&|result| number(result, key))));
    }
    for result in results {
        check_mean(&mut block, lines, result, &times(result));
    }
    block.rows.retain(|row| row.cells.iter().any(|cell| !cell.values.is_empty()));
    block.finish(used)
}

fn number(result: &Json, key: &str) -> Vec<Value> {
    result.get(key).and_then(Json::value).into_iter().collect()
}

/// The mean that it gives must be that of its times.
fn check_mean(block: &mut Block, lines: &[Line<'_>], result: &Json, times: &[Value]) {
    let Some(given) = result.get("mean").and_then(Json::value) else { return };
    let numbers: Vec<f64> = times.iter().map(|time| time.number).collect();
    let Ok(mean) = kduel_stats::mean(&numbers) else { return };
    if (mean - given.number).abs() > 1e-6 * mean.abs() {
        let text = format!("its mean is {} s, that of its times {mean} s", given.number);
        let line = lines.iter().find(|line| line.number == given.line).unwrap_or(&lines[0]);
        block.note(line, text);
    }
}

fn row(metric: &str, role: Role, cells: Vec<Cell>) -> Row {
    let (metric, unit) = (metric.to_owned(), "s".to_owned());
    // A deviation that is smaller is no gain by itself.
    let better = (metric != "stddev").then_some(Better::Lower);
    Row { metric, unit, better, role, cells }
}
