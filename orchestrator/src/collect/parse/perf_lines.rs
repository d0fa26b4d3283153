//! `perf stat` for programs: `-x,` (fields between commas) and `-j` (an object a line).

use kduel_protocol::Better;

use super::block::{Block, Format, Row};
use super::json::{Json, read_json};
use super::pattern::{Pattern, group, value};
use super::perf_stat::absent;
use crate::collect::mail::Line;

static FIELDS: Pattern = Pattern::new(
    r"^\s*(?:(?P<time>\d+\.\d+),)?(?:(?P<absent><not (?:counted|supported)>)|(?P<value>\d+(?:\.\d+)?)),(?P<unit>[A-Za-z]*),(?P<event>[A-Za-z][\w:./=-]*),(?:(?P<spread>[\d.]+)%,)?(?P<rest>\d+,[\d.]+,.*)$",
);

/// Whether a line of either form stands first.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_start();
    text.starts_with('{') && text.contains("\"counter-value\"")
        || text.starts_with(|c: char| c.is_ascii_digit() || c == '<')
            && text.contains(',')
            && FIELDS.is_in(text)
}

/// Reads lines of one form.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::PerfStat);
    let mut used = 0;
    while let Some(line) = lines.get(used) {
        let row = fields(line).or_else(|| object(line));
        let Some((row, spread)) = row else { break };
        add(&mut block, row, spread);
        used += 1;
    }
    block.finish(used)
}

/// Rows of the same event, as `-I` prints them, are samples of one.
fn add(block: &mut Block, mut row: Row, spread: Option<f64>) {
    let same = block.rows.iter_mut().find(|other| other.metric == row.metric);
    match (same, row.cells.pop()) {
        (Some(other), Some(cell)) => {
            if let Some(into) = other.cells.first_mut() {
                into.values.extend(cell.values);
                into.spread = None;
            }
        }
        (None, Some(mut cell)) => {
            cell.spread = spread;
            row.cells.push(cell);
            block.rows.push(row);
        }
        (_, None) => {}
    }
}

fn fields(line: &Line<'_>) -> Option<(Row, Option<f64>)> {
    let found = FIELDS.captures(&line.text)?;
    let (event, unit) = (group(&found, "event"), unit(group(&found, "unit")));
    if found.name("absent").is_some() {
        return Some((absent(event, unit, group(&found, "absent")), None));
    }
    let row = Row::monitor(event, unit, value(line, found.name("value"))?);
    let spread = super::number::number(group(&found, "spread")).map(|spread| spread.value);
    Some((Row { better: Some(Better::Lower), ..row }, spread))
}

fn object(line: &Line<'_>) -> Option<(Row, Option<f64>)> {
    if !line.text.trim_start().starts_with('{') {
        return None;
    }
    let (object, _) = read_json(std::slice::from_ref(line))?;
    let event = object.get("event")?.text()?.to_owned();
    let unit = unit(object.get("unit").and_then(Json::text).unwrap_or_default());
    let counted = object.get("counter-value")?;
    let Some(number) = counted.value() else {
        return Some((absent(&event, unit, counted.text()?), None));
    };
    let spread = object.get("variance").and_then(Json::value).map(|value| value.number);
    let row = Row { better: Some(Better::Lower), ..Row::monitor(&event, unit, number) };
    Some((row, spread))
}

fn unit(written: &str) -> &str {
    if written == "msec" { "ms" } else { written }
}
