//! Result lines of lmbench: `Process fork+exit: 83.1 microseconds`, the pairs of `lat_ctx` and of the
//! bandwidth programs.

use kduel_protocol::Better;

use super::block::{Block, Format, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static LINE: Pattern = Pattern::new(
    r"^\s*(?P<name>[A-Z][^:]{2,60}): (?P<value>[\d.]+) (?P<unit>microseconds|nanoseconds|milliseconds|MB/sec|KB/sec)\.?\s*$",
);
static CONTEXT: Pattern = Pattern::new(r#"^\s*"size=(?P<size>\d+k) ovr=(?P<overhead>[\d.]+)\s*$"#);
static BANDWIDTH: Pattern =
    Pattern::new(r"^\s*(?P<name>(?:Socket|AF_UNIX|TCP)[\w /]* bandwidth using [\w.-]+)\s*$");
static PAIR: Pattern = Pattern::new(r"^\s*(?P<of>[\d.]+) (?P<value>[\d.]+)(?: MB/sec)?\s*$");

/// Whether a table begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    text.contains("seconds") && LINE.is_in(text)
        || text.contains("B/sec") && LINE.is_in(text)
        || text.contains("\"size=") && CONTEXT.is_in(text)
        || text.contains("bandwidth using") && BANDWIDTH.is_in(text)
}

/// Reads one result line, or a head with its pairs.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Lmbench);
    let line = &lines[0];
    if let Some(found) = LINE.captures(&line.text) {
        let (unit, better) = match group(&found, "unit") {
            "microseconds" => ("us", Better::Lower),
            "nanoseconds" => ("ns", Better::Lower),
            "milliseconds" => ("ms", Better::Lower),
            other => (other, Better::Higher),
        };
        let number = value(line, found.name("value"))?;
        block.rows.push(Row::result(group(&found, "name"), unit, better, number));
        return block.finish(1);
    }
    let (name, unit, better) = match CONTEXT.captures(&line.text) {
        Some(found) => {
            (format!("lat_ctx size={} processes=", group(&found, "size")), "us", Better::Lower)
        }
        None => {
            let found = BANDWIDTH.captures(&line.text)?;
            (format!("{} MB=", group(&found, "name")), "MB/sec", Better::Higher)
        }
    };
    for line in &lines[1..] {
        let Some(found) = PAIR.captures(&line.text) else { break };
        let Some(number) = value(line, found.name("value")) else { break };
        let metric = format!("{name}{}", group(&found, "of"));
        block.rows.push(Row::result(&metric, unit, better, number));
    }
    if block.rows.is_empty() {
        block.note(line, "incomplete: no pair of numbers follows");
    }
    let used = 1 + block.rows.len();
    block.finish(used)
}
