//! MMTests' compare tables: two lines of kernel names, then a statistic, an operation and per kernel a
//! value with how much better it is. `*` instead of brackets: intervals do not overlap.

use kduel_protocol::Better;

use super::block::{Block, Cell, Claimed, Format, Role, Row, Sense, Value};
use super::number::number;
use super::pattern::{Pattern, value};
use crate::collect::mail::Line;

static CELL: Pattern =
    Pattern::new(r"(?P<value>-?\d[\d.]*)\s+[(*]\s*(?P<change>[-+]?\d[\d.]*)%[)*]");
static STATISTIC: Pattern = Pattern::new(
    r"^(?:Min|[ABHG]+mean(?:-\d+)?|Stddev|CoeffVar|Max|\d+(?:st|nd|rd|th)?-?q?rtile-?\d*|[1-3]st-qrtle|Median|Mean)\b",
);
static PLAIN: Pattern = Pattern::new(r"^(?:Duration|Ops) \S");

/// Whether the names of the kernels begin in the first line.
pub fn starts(lines: &[Line<'_>]) -> bool {
    lines[0].text.starts_with("    ") && names(lines).is_some()
}

/// The kernels, and how many lines their names take.
fn names(lines: &[Line<'_>]) -> Option<(Vec<String>, usize)> {
    let above: Vec<&Line<'_>> = lines
        .iter()
        .take(3)
        .take_while(|line| line.text.starts_with("    ") && !line.is_blank())
        .collect();
    let first: Vec<&str> = above.first()?.text.split_whitespace().collect();
    let row = lines.get(above.len())?;
    let is_row = PLAIN.is_in(&row.text) || STATISTIC.is_in(&row.text);
    let alike = above.iter().all(|line| line.text.split_whitespace().count() == first.len());
    if !is_row || !alike || above.len() > 2 {
        return None;
    }
    let mut names = vec![String::new(); first.len()];
    for line in &above {
        for (name, word) in names.iter_mut().zip(line.text.split_whitespace()) {
            let dash = if name.is_empty() { "" } else { "-" };
            *name += &format!("{dash}{word}");
        }
    }
    Some((names, above.len()))
}

/// Reads one table.
pub fn read(lines: &[Line<'_>]) -> Option<Block> {
    let (names, mut used) = names(lines)?;
    let mut block = Block::new(Format::Mmtests);
    block.sides = names;
    while let Some(line) = lines.get(used) {
        let known = STATISTIC.is_in(&line.text) || PLAIN.is_in(&line.text);
        if !known {
            break;
        }
        // A mailer may have moved the end of a wide row to the next lines.
        let whole = (1..=3.min(lines.len() - used)).find_map(|takes| {
            let row = row(&Line::joined(&lines[used..used + takes]), block.sides.len())?;
            Some((row, takes))
        });
        match whole {
            Some((row, takes)) => {
                block.rows.push(row);
                used += takes;
            }
            None => {
                let text =
                    format!("skipped: not one value for each of {} kernels", block.sides.len());
                block.note(line, text);
                used += 1;
            }
        }
    }
    let means: Vec<(String, Option<Better>)> =
        block.rows.iter().map(|row| (operation(&row.metric).to_owned(), row.better)).collect();
    for row in block.rows.iter_mut().filter(|row| row.better.is_none()) {
        let own = operation(&row.metric);
        row.better = means
            .iter()
            .find(|(name, better)| name == own && better.is_some())
            .and_then(|(_, b)| *b);
    }
    block.finish(used)
}

/// A metric without its statistic.
fn operation(metric: &str) -> &str {
    metric.split_once(' ').map_or("", |(_, operation)| operation)
}

fn row(line: &Line<'_>, sides: usize) -> Option<Row> {
    if PLAIN.is_in(&line.text) {
        return plain(line, sides);
    }
    let found: Vec<regex::Captures<'_>> = CELL.all(&line.text).collect();
    let start = found.first()?.get(0)?.start();
    let cell = |(index, found): (usize, &regex::Captures<'_>)| {
        let change = value(line, found.name("change"))?;
        let claimed = Claimed { value: change, sense: Sense::BetterIsPlus };
        let claimed = (index > 0).then_some(claimed);
        Some(Cell { claimed, ..Cell::of(value(line, found.name("value"))?) })
    };
    let cells: Option<Vec<Cell>> = found.iter().enumerate().map(cell).collect();
    let cells = cells.filter(|cells| cells.len() == sides)?;
    let words: Vec<&str> = line.text[..start].split_whitespace().collect();
    let (better, role) = match words.first().copied().unwrap_or_default() {
        "Amean" | "Gmean" | "Median" | "Mean" => (Some(Better::Lower), Role::Result),
        "Hmean" => (Some(Better::Higher), Role::Result),
        "Stddev" | "CoeffVar" => (Some(Better::Lower), Role::Monitor),
        word if word.starts_with("BH") => (Some(Better::Higher), Role::Monitor),
        word if word.starts_with("BA") => (Some(Better::Lower), Role::Monitor),
        _ => (None, Role::Monitor),
    };
    Some(Row { metric: words.join(" "), unit: String::new(), better, role, cells })
}

/// A row of values alone.
fn plain(line: &Line<'_>, sides: usize) -> Option<Row> {
    let words: Vec<&str> = line.text.split_whitespace().collect();
    let names = words.len().checked_sub(sides).filter(|names| *names >= 2)?;
    let read = |word: &&str| {
        let number = number(word)?;
        Some(Cell::of(Value { number: number.value, step: number.step, line: line.number }))
    };
    let cells: Option<Vec<Cell>> = words[names..].iter().map(read).collect();
    let duration = words[0] == "Duration";
    Some(Row {
        metric: words[..names].join(" "),
        unit: if duration { "s" } else { "" }.to_owned(),
        better: duration.then_some(Better::Lower),
        role: Role::Monitor,
        cells: cells?,
    })
}
