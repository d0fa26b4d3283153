//! vmstat: a head of column names, then one line for each interval. The first is since boot.

use super::block::{Block, Cell, Format, Role, Row, Value};
use super::number::number;
use crate::collect::mail::Line;

/// What the columns are called in the head, and their units.
const COLUMNS: &[(&str, &str)] = &[
    ("r", "tasks"),
    ("b", "tasks"),
    ("w", "tasks"),
    ("swpd", "KiB"),
    ("free", "KiB"),
    ("buff", "KiB"),
    ("cache", "KiB"),
    ("inact", "KiB"),
    ("active", "KiB"),
    ("si", "KiB/s"),
    ("so", "KiB/s"),
    ("bi", "blocks/s"),
    ("bo", "blocks/s"),
    ("in", "1/s"),
    ("cs", "1/s"),
    ("us", "%"),
    ("sy", "%"),
    ("id", "%"),
    ("wa", "%"),
    ("st", "%"),
    ("gu", "%"),
];

/// Whether the head begins in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_start();
    (text.starts_with("procs ") && text.contains("memory")) || names(lines).is_some()
}

/// The columns, and how many lines their names take.
fn names(lines: &[Line<'_>]) -> Option<(Vec<&'static (&'static str, &'static str)>, usize)> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().take(3).enumerate() {
        let known = |word: &str| COLUMNS.iter().find(|(name, _)| *name == word);
        let words: Option<Vec<_>> = line.text.split_whitespace().map(known).collect();
        match words {
            Some(words) if !words.is_empty() && (index > 0 || words[0].0 == "r") => {
                found.extend(words);
            }
            _ => break,
        }
        let next_names = lines.get(index + 1).is_some_and(|line| {
            line.text.split_whitespace().next().is_some_and(|word| known(word).is_some())
        });
        if !next_names {
            return (found.len() >= 6).then_some((found, index + 1));
        }
    }
    None
}

/// Reads a head and its samples.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    // The line of groups above the names, which may be wrapped.
    let above = (0..3.min(lines.len())).find(|at| names(&lines[*at..]).is_some())?;
    let (names, taken) = names(&lines[above..])?;
    let mut block = Block::new(Format::Vmstat);
    let mut used = above + taken;
    let mut samples: Vec<Vec<Value>> = Vec::new();
    let mut heads = Vec::new();
    while let Some(line) = lines.get(used) {
        if let Some((sample, taken)) = sample(&lines[used..], names.len()) {
            samples.push(sample);
            heads.push(line);
            used += taken;
        } else if let Some((again, taken)) =
            self::names(&lines[used..]).filter(|(n, _)| *n == names)
        {
            debug_assert_eq!(again.len(), names.len());
            used += taken;
        } else if repeats_head(&lines[used..]) {
            used += 1;
        } else {
            break;
        }
    }
    if samples.is_empty() {
        block.note(&lines[0], "incomplete: a head without samples");
        return block.finish(used);
    }
    block.note(heads[0], "first sample dropped: it is the mean since boot");
    samples.remove(0);
    block.parameter("samples", samples.len().to_string());
    if samples.is_empty() {
        block.note(&lines[0], "incomplete: no sample is left");
    }
    for (index, (name, unit)) in names.iter().enumerate() {
        let values: Vec<Value> = samples.iter().map(|sample| sample[index]).collect();
        let cell = Cell { values, ..Cell::default() };
        let (metric, unit) = ((*name).to_owned(), (*unit).to_owned());
        block.rows.push(Row { metric, unit, better: None, role: Role::Monitor, cells: vec![cell] });
    }
    block.finish(used)
}

/// `vmstat` prints its head again now and then.
fn repeats_head(lines: &[Line<'_>]) -> bool {
    let text = lines[0].text.trim_start();
    text.starts_with("procs ") && text.contains("memory")
}

/// As many numbers as there are columns, from one line or more; a time of day may stand behind them.
fn sample(lines: &[Line<'_>], columns: usize) -> Option<(Vec<Value>, usize)> {
    let mut values = Vec::new();
    for (index, line) in lines.iter().take(3).enumerate() {
        let before = values.len();
        for word in line.text.split_whitespace() {
            let Some(number) = number(word).filter(|number| number.value >= 0.0) else { break };
            values.push(Value { number: number.value, step: number.step, line: line.number });
            if values.len() == columns {
                return Some((values, index + 1));
            }
        }
        let words = line.text.split_whitespace().count();
        if values.len() == before || values.len() - before < words {
            return None;
        }
    }
    None
}
