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
    /// Reads the one that begins there. Error: it was none after all, and none begins in the given number
    /// of lines from there on.
    read: fn(&[Line<'_>]) -> Result<Block, usize>,
}

macro_rules! parsers {
    ($($module:ident),* $(,)?) => {
        [$(Parser { starts: $module::starts, read: |lines| $module::read(lines).ok_or(1) }),*]
    };
}

/// What is surest to be told comes first.
static PARSERS: [Parser; 17] = parsers![
    perf_stat, perf_bench, hackbench, vmstat, kernbench, ktap, stress_ng, sysbench, schbench,
    unixbench, robot, mmtests, lmbench, time, perf_lines, hyperfine, fio,
];

/// Comes last: any number with a word behind it may be of a profile.
static PROFILE: Parser = Parser { starts: profile::starts, read: profile::read };

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
    let (mut at, mut no_profile_before) = (0, 0);
    while at < lines.len() {
        let rest = &lines[at..lines.len().min(at + LONGEST)];
        let read =
            |parser: &Parser| if (parser.starts)(rest) { (parser.read)(rest) } else { Err(1) };
        let mut block = None;
        if !rest[0].is_blank() {
            block = PARSERS.iter().find_map(|parser| read(parser).ok());
            if block.is_none() && at >= no_profile_before {
                match read(&PROFILE) {
                    Ok(profile) => block = Some(profile),
                    Err(lines) => no_profile_before = at + lines,
                }
            }
        }
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
