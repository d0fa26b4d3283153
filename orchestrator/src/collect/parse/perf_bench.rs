//! `perf bench`: a head, some parameters, a total time, and what follows from it.

use kduel_protocol::Better;

use super::block::{Block, Format, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(r"^\s*# Running '?(?P<name>\w+/[\w-]+)'? benchmark:");
static TOTAL: Pattern = Pattern::new(r"^\s*Total time: (?P<value>[\d.]+) \[sec\]\s*$");
static RATE: Pattern = Pattern::new(r"^\s*(?P<value>[\d.,]+) (?P<unit>usecs/op|ops/sec)\s*$");
static GROUPS: Pattern =
    Pattern::new(r"^\s*# (?P<groups>\d+) groups == (?P<tasks>\d+) (?P<mode>process|thread)");
static COUNT: Pattern = Pattern::new(r"^\s*# Executed (?P<count>[\d,]+) ");

/// Whether a benchmark begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.contains("# Running") && HEAD.is_in(&lines[0].text)
}

/// Reads one benchmark.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::PerfBench);
    block.parameter("benchmark", group(&HEAD.captures(&lines[0].text)?, "name"));
    let mut used = 1;
    for (index, line) in lines.iter().enumerate().skip(1) {
        if let Some(found) = TOTAL.captures(&line.text) {
            let total = value(line, found.name("value"))?;
            block.rows.push(Row::result("total time", "s", Better::Lower, total));
        } else if let Some(found) = RATE.captures(&line.text) {
            let unit = group(&found, "unit");
            let better = if unit == "ops/sec" { Better::Higher } else { Better::Lower };
            let metric = if unit == "ops/sec" { "rate" } else { "time" };
            block.rows.push(Row::result(metric, unit, better, value(line, found.name("value"))?));
        } else if let Some(found) = GROUPS.captures(&line.text) {
            block.parameter("groups", group(&found, "groups"));
            block.parameter("mode", group(&found, "mode"));
        } else if let Some(found) = COUNT.captures(&line.text) {
            block.parameter("count", group(&found, "count"));
        } else if line.is_blank() {
            continue;
        } else if HEAD.is_in(&line.text) || !line.text.trim_start().starts_with('#') {
            break;
        }
        used = index + 1;
    }
    if block.rows.is_empty() {
        block.note(&lines[0], "incomplete: no `Total time:` follows");
    }
    block.finish(used)
}
