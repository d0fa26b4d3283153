use super::block::Block;
use super::{
    fio, hackbench, hyperfine, kernbench, ktap, lmbench, mmtests, perf_bench, perf_lines,
    perf_stat, profile, robot, schbench, stress_ng, sysbench, time, unixbench, vmstat,
};
use crate::collect::mail::Line;

/// How one program's tables are told and read.
struct Parser {
    /// Whether one begins in the first of these lines; there is at least one.
    starts: fn(&[Line<'_>]) -> bool,
    /// Reads the one that begins there. None: it was none after all.
    read: fn(&[Line<'_>]) -> Option<Block>,
}

macro_rules! parsers {
    ($($module:ident),* $(,)?) => {
        &[$(Parser { starts: $module::starts, read: $module::read }),*]
    };
}

/// What is surest to be told comes first.
const PARSERS: &[Parser] = parsers![
    perf_stat, perf_bench, hackbench, vmstat, kernbench, ktap, stress_ng, sysbench, schbench,
    unixbench, robot, mmtests, lmbench, time, perf_lines, hyperfine, fio, profile,
];

/// A table is looked at this far, in lines; more follows from a broken text only.
const LONGEST: usize = 100_000;

/// A table and the place of its first line among those that were scanned.
pub struct Place {
    /// Index of the first line.
    pub at: usize,
    /// The table.
    pub block: Block,
}

/// Finds every table in lines that stood together.
pub fn scan(lines: &[Line<'_>]) -> Vec<Place> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let rest = &lines[at..lines.len().min(at + LONGEST)];
        let read = |parser: &Parser| if (parser.starts)(rest) { (parser.read)(rest) } else { None };
        let block = if rest[0].is_blank() { None } else { PARSERS.iter().find_map(read) };
        match block {
            Some(block) => {
                let used = block.used.max(1);
                found.push(Place { at, block });
                at += used;
            }
            None => at += 1,
        }
    }
    found
}
