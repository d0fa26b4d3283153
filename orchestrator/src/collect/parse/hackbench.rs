//! hackbench: what it runs, what it sends, how long it took.

use kduel_protocol::Better;

use super::block::{Block, Format, Row};
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static HEAD: Pattern = Pattern::new(
    r"Running (?:in|with) (?P<mode>process|thread)\w*(?: mode)? (?:with|using) (?P<groups>\d+) groups? using (?P<fds>\d+) file descriptors",
);
static SENDS: Pattern =
    Pattern::new(r"Each sender will pass (?P<loops>\d+) messages of (?P<bytes>\d+) bytes");
static TIME: Pattern = Pattern::new(r"^\s*Time:\s+(?P<time>[\d.]+)\s*$");

/// Whether a run begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = &*lines[0].text;
    text.contains("Running ") && text.contains("group")
        || text.contains("Each sender will pass")
        || text.contains("Time:") && TIME.is_in(text)
}

/// Reads one run, of which any line may be missing.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Hackbench);
    let wrapped = Line::joined(&lines[..lines.len().min(2)]);
    let whole = HEAD.captures(&lines[0].text).map(|found| (found, 1));
    let head = whole.or_else(|| HEAD.captures(&wrapped.text).map(|found| (found, 2)));
    let headed = head.is_some();
    let mut used = 0;
    if let Some((found, takes)) = head {
        let fds: u64 = group(&found, "fds").parse().ok()?;
        block.parameter("mode", group(&found, "mode"));
        block.parameter("groups", group(&found, "groups"));
        // Printed are those of senders and receivers together.
        block.parameter("fds", (fds / 2).to_string());
        let sends = |at: usize| lines.get(at).is_some_and(|line| SENDS.is_in(&line.text));
        // What a mailer wrapped of the first line stands between the two.
        used = if !sends(takes) && sends(takes + 1) { takes + 1 } else { takes };
    }
    let sends = lines.get(used).and_then(|line| SENDS.captures(&line.text));
    let sent = sends.is_some();
    if let Some(found) = sends {
        block.parameter("loops", group(&found, "loops"));
        block.parameter("bytes", group(&found, "bytes"));
        used += 1;
    }
    let time =
        lines.get(used).and_then(|line| value(line, TIME.captures(&line.text)?.name("time")));
    match time {
        Some(time) => {
            block.rows.push(Row::result("elapsed", "s", Better::Lower, time));
            used += 1;
        }
        None => block.note(&lines[0], "incomplete: no `Time:` follows"),
    }
    if time.is_some() && !(headed && sent) {
        block.note(&lines[0], "incomplete: what was run is not told");
    }
    if used == 0 { None } else { block.finish(used) }
}
