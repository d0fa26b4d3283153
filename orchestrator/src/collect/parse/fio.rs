//! fio's JSON: of every job and direction what it moved, how fast, and how long an operation took.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row, Value};
use super::json::{Json, read_json};
use crate::collect::mail::Line;

/// How far into an object its tell-tale key may stand, in lines.
const LOOK: usize = 12;

/// Path below a direction, name, unit, which way is better, role. Latencies are in nanoseconds.
type Metric = (&'static [&'static str], &'static str, &'static str, Better, Role);

const METRICS: &[Metric] = &[
    (&["iops"], "iops", "1/s", Better::Higher, Role::Result),
    (&["bw_bytes"], "bandwidth", "B/s", Better::Higher, Role::Result),
    (&["clat_ns", "mean"], "clat mean", "ns", Better::Lower, Role::Result),
    (&["clat_ns", "percentile", "50.000000"], "clat p50", "ns", Better::Lower, Role::Result),
    (&["clat_ns", "percentile", "99.000000"], "clat p99", "ns", Better::Lower, Role::Result),
    (&["clat_ns", "max"], "clat max", "ns", Better::Lower, Role::Monitor),
    (&["total_ios"], "operations", "", Better::Higher, Role::Monitor),
    (&["runtime"], "runtime", "ms", Better::Lower, Role::Monitor),
];

/// Whether an object of fio begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.trim_start().starts_with('{')
        && lines.iter().take(LOOK).any(|line| line.text.contains("\"fio version\""))
}

/// Reads the object.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Fio);
    let Some((json, used)) = read_json(lines) else {
        block.note(&lines[0], "incomplete: the JSON of fio is cut off or broken");
        return block.finish(1);
    };
    if let Some(version) = json.get("fio version").and_then(Json::text) {
        block.parameter("version", version);
    }
    let jobs = json.get("jobs").map_or(&[][..], Json::items);
    for job in jobs {
        let name = job.get("jobname").and_then(Json::text).unwrap_or("job");
        for (key, option) in job.get("job options").map_or(&[][..], Json::entries) {
            if let Some(text) = option.text() {
                block.parameter(&format!("{name}.{key}"), text);
            }
        }
        for direction in ["read", "write", "trim"] {
            let Some(found) = job.get(direction).filter(|found| moved(found)) else { continue };
            rows(&mut block, &format!("{name} {direction}"), found);
        }
        for (key, unit) in [("usr_cpu", "%"), ("sys_cpu", "%"), ("ctx", "")] {
            if let Some(number) = job.get(key).and_then(Json::value) {
                block.rows.push(Row::monitor(&format!("{name} {key}"), unit, number));
            }
        }
    }
    if block.rows.is_empty() {
        block.note(&lines[0], "incomplete: no job that moved anything");
    }
    block.finish(used)
}

/// Whether a direction was used at all.
fn moved(direction: &Json) -> bool {
    direction.get("total_ios").and_then(Json::value).is_none_or(|ios: Value| ios.number > 0.0)
}

fn rows(block: &mut Block, name: &str, direction: &Json) {
    for (path, metric, unit, better, role) in METRICS {
        if let Some(number) = direction.at(path).and_then(Json::value) {
            let row = Row::result(&format!("{name} {metric}"), unit, *better, number);
            block.rows.push(row.with(*role));
        }
    }
}
