//! schbench: percentiles of wake-up and request latencies, of requests a second, and their average.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(
    r"^\s*(?P<name>Wakeup Latencies|Request Latencies|RPS|Latency) percentiles \((?P<unit>\w+)\)(?: runtime (?P<runtime>\d+) \(s\))?",
);
static LINE: Pattern = Pattern::new(r"^\s*\*?\s*(?P<rank>\d+\.\d+)th: (?P<value>[\d.]+)");
static ENDS: Pattern = Pattern::new(r"^\s*min=(?P<min>\d+), max=(?P<max>\d+)");
static AVERAGE: Pattern = Pattern::new(r"^\s*average rps: (?P<value>[\d.]+)\s*$");

/// Whether percentiles begin in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    text.contains("percentiles (") && HEAD.is_in(text) || AVERAGE.is_in(text)
}

/// Reads the percentiles of one thing, or the average.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Schbench);
    let line = &lines[0];
    if let Some(found) = AVERAGE.captures(&line.text) {
        let average = value(line, found.name("value"))?;
        block.rows.push(Row::result("average rps", "1/s", Better::Higher, average));
        return block.finish(1);
    }
    let head = HEAD.captures(&line.text)?;
    let (name, unit, better) = match group(&head, "name") {
        "RPS" => ("rps", "1/s", Better::Higher),
        "Request Latencies" => ("request latency", "us", Better::Lower),
        _ => ("wakeup latency", "us", Better::Lower),
    };
    let mut used = 1;
    let mut ended = false;
    for line in &lines[1..] {
        if let Some(found) = LINE.captures(&line.text) {
            let rank = group(&found, "rank");
            let metric = format!("{name} p{}", rank.strip_suffix(".0").unwrap_or(rank));
            block.rows.push(Row::result(&metric, unit, better, value(line, found.name("value"))?));
        } else if let Some(found) = ENDS.captures(&line.text) {
            ended = true;
            for end in ["min", "max"] {
                let row = Row::result(
                    &format!("{name} {end}"),
                    unit,
                    better,
                    value(line, found.name(end))?,
                );
                block.rows.push(row.with(Role::Monitor));
            }
        } else {
            break;
        }
        used += 1;
    }
    if !ended {
        block.note(line, format!("incomplete: no `min=, max=` ends the percentiles of {name}"));
    }
    block.finish(used)
}
