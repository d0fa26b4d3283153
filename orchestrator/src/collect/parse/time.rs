//! What the shell's `time` prints: real, user, sys.

use kduel_protocol::Better;

use super::block::{Block, Format, Role, Row};
use super::number::number;
use super::pattern::{Pattern, group, value};
use crate::collect::mail::Line;

static LINE: Pattern = Pattern::new(
    r"^\s*(?P<name>real|user|sys)\s+(?:(?P<minutes>\d+)m)?(?P<seconds>\d+(?:\.\d+)?)s?\s*$",
);

/// Whether its first line is there.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.trim_start().starts_with("real") && LINE.is_in(&lines[0].text)
}

/// Reads the up to three lines.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let mut block = Block::new(Format::Time);
    for line in lines.iter().take(3) {
        let Some(found) = LINE.captures(&line.text) else { break };
        let Some(mut time) = value(line, found.name("seconds")) else { break };
        if let Some(minutes) = number(group(&found, "minutes")) {
            time.number += 60.0 * minutes.value;
        }
        let name = group(&found, "name");
        if block.rows.iter().any(|row| row.metric == name) {
            break;
        }
        let role = if name == "real" { Role::Result } else { Role::Monitor };
        block.rows.push(Row::result(name, "s", Better::Lower, time).with(role));
    }
    let used = block.rows.len();
    if used < 3 {
        block.note(&lines[0], format!("{used} of the three lines real, user, sys"));
    }
    block.finish(used)
}
