//! sysbench: options, a rate, totals, latencies and how fair threads were.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(r"^\s*sysbench (?P<version>\d[\w.]*)");
static OPTION: Pattern =
    Pattern::new(r"^\s*(?P<name>Number of threads|Prime numbers limit): (?P<value>\d+)\s*$");
static LINE: Pattern = Pattern::new(
    r"^\s*(?P<name>[A-Za-z0-9][\w /()-]*?):\s+(?P<value>\d[\d.]*)(?P<unit>s?)(?:\s*/\s*(?P<spread>\d[\d.]*))?(?:\s+\((?P<rate>\d[\d.]*) (?:per sec\.|MiB/sec)\))?\s*$",
);
static SECTION: Pattern = Pattern::new(r"^(?P<name>[A-Z][\w /()]*):\s*$");

/// How many lines without a number of its own may stand between those that have one.
const GAP: usize = 12;

/// Whether an output begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_start();
    text.starts_with("sysbench ") && HEAD.is_in(text)
}

/// Reads one output.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Sysbench);
    block.parameter("version", group(&HEAD.captures(&lines[0].text)?, "version"));
    let (mut used, mut section) = (1, String::new());
    for (index, line) in lines.iter().enumerate().skip(1) {
        if index > used + GAP || HEAD.is_in(&line.text) {
            break;
        }
        if let Some(found) = OPTION.captures(&line.text) {
            block.parameter(group(&found, "name"), group(&found, "value"));
        } else if let Some(found) = SECTION.captures(&line.text) {
            group(&found, "name").clone_into(&mut section);
            continue;
        } else if let Some(found) = LINE.captures(&line.text) {
            block.rows.extend(row(line, &found, &section));
        } else {
            continue;
        }
        used = index + 1;
        if section == "Threads fairness" && line.text.contains("execution time") {
            return block.finish(used);
        }
    }
    block.note(&lines[0], "incomplete: `Threads fairness` does not end it");
    block.finish(used)
}

fn row(line: &Line<'_>, found: &regex::Captures<'_>, section: &str) -> Option<Row> {
    let name = group(found, "name");
    let number = value(line, found.name("value"))?;
    let latency = section.starts_with("Latency");
    let (unit, better, role) = match name {
        "events per second" | "transferred" => ("1/s", Better::Higher, Role::Result),
        "total time" => ("s", Better::Lower, Role::Monitor),
        "total number of events" => ("events", Better::Higher, Role::Result),
        "avg" | "95th percentile" if latency => ("ms", Better::Lower, Role::Result),
        _ if latency => ("ms", Better::Lower, Role::Monitor),
        _ => (group(found, "unit"), Better::Lower, Role::Monitor),
    };
    let known = latency || role == Role::Result || name == "total time";
    let metric = if latency { format!("latency {name}") } else { name.to_owned() };
    let row = Row::result(&metric, unit, better, number).with(role);
    Some(Row { better: row.better.filter(|_| known), ..row })
}
