//! stress-ng's `--metrics`: one line for each stressor.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row, Value};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static LINE: Pattern = Pattern::new(
    r"^\s*stress-ng: (?:info|metrc|metric): +\[\d+\] +(?P<name>[a-z][\w-]*) +(?P<ops>\d+) +(?P<real>\d+\.\d+) +(?P<user>\d+\.\d+) +(?P<system>\d+\.\d+) +(?P<rate>\d+\.\d+) +(?P<cpu_rate>\d+\.\d+)",
);
static SETTING: Pattern = Pattern::new(
    r"stress-ng: \w+: +\[\d+\] +(?:setting to|defaulting to) an? (?P<length>.+?) run per stressor",
);
static RUN: Pattern =
    Pattern::new(r"stress-ng: \w+: +\[\d+\] +dispatching hogs: (?P<hogs>.+?)\s*$");
static HEAD: Pattern = Pattern::new(r"stress-ng: \w+: +\[\d+\] +stressor +bogo ops real time");

/// Whether a table begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    let begins = || SETTING.is_in(text) || RUN.is_in(text) || HEAD.is_in(text);
    text.contains("stress-ng:") && (begins() || LINE.is_in(&wrapped(lines).text))
}

/// A line with the next, to which a mailer may have moved its end.
fn wrapped(lines: &[Line<'_>]) -> Line<'static> {
    let ends = |line: &&Line<'_>| !line.text.contains("stress-ng:") && !line.is_blank();
    let more = lines.iter().skip(1).take(2).take_while(ends).count();
    Line::joined(&lines[..=more])
}

/// Reads the lines of one run.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::StressNg);
    let mut at = 0;
    while at < lines.len() && lines[at].text.contains("stress-ng:") {
        let line = wrapped(&lines[at..]);
        // The next run begins.
        let again = SETTING.is_in(&line.text) || RUN.is_in(&line.text);
        let name = if RUN.is_in(&line.text) { "hogs" } else { "run" };
        if again && block.parameters.iter().any(|(known, _)| known == name) {
            break;
        }
        if let Some(found) = SETTING.captures(&line.text) {
            block.parameter("run", group(&found, "length"));
        } else if let Some(found) = RUN.captures(&line.text) {
            block.parameter("hogs", group(&found, "hogs"));
        } else if let Some(found) = LINE.captures(&line.text) {
            rows(&mut block, &line, &found);
        }
        let joined = lines[at + 1..].iter().take_while(|next| next.number <= line.last()).count();
        at += 1 + joined;
    }
    let hogs = block.parameters.iter().find(|(name, _)| name == "hogs");
    let hogs = hogs.map_or(0, |(_, hogs)| hogs.split(", ").count());
    let found = block.rows.iter().filter(|row| row.metric.ends_with(" ops/s")).count();
    if found < hogs.max(1) {
        block.note(
            &lines[0],
            format!("incomplete: {found} of {} stressors have metrics", hogs.max(1)),
        );
    }
    block.finish(at)
}

fn rows(block: &mut Block, line: &Line<'_>, found: &regex::Captures<'_>) {
    let name = group(found, "name");
    let number = |field: &str| value(line, found.name(field));
    let mut add = |what: &str, unit: &str, better, role, number: Option<Value>| {
        let row = number.map(|value| Row::result(&format!("{name} {what}"), unit, better, value));
        block.rows.extend(row.map(|row| row.with(role)));
    };
    add("ops/s", "1/s", Better::Higher, Role::Result, number("rate"));
    add("ops/CPU-s", "1/s", Better::Higher, Role::Monitor, number("cpu_rate"));
    add("ops", "", Better::Higher, Role::Monitor, number("ops"));
    add("real", "s", Better::Lower, Role::Monitor, number("real"));
    add("user", "s", Better::Lower, Role::Monitor, number("user"));
    add("system", "s", Better::Lower, Role::Monitor, number("system"));
}
