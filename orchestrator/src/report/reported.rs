//! What a report of others says, as tables of sides by metrics. Its text was escaped when it was read.

use serde_json::{Value, json};

use crate::analyse::{Agreement, Reported, changes};
use crate::collect::parse::{Cell, Imported, Role, Row, Sense, Skipped, Table};
use crate::text::count;

/// The format of [`reported_json`].
pub const IMPORT_FORMAT: &str = "kduel-import/1";

/// Rows of a table that are shown unless all are wanted.
const MOST_ROWS: usize = 60;

/// Notes of a table that are told unless all are wanted.
const MOST_NOTES: usize = 40;

/// Ranges of lines that are told.
const MOST_RANGES: usize = 20;

/// Longer names of metrics are cut.
const LONGEST_NAME: usize = 48;

/// Tables for people. `all`: every row of every table.
pub fn reported_text(imported: &Imported, all: bool) -> String {
    let mut out = String::new();
    if let Some(subject) = &imported.subject {
        out += &format!("subject: {subject}\n");
    }
    if imported.messages > 1 {
        out += &format!("{} in the mailbox\n", count(imported.messages, "mail"));
    }
    if let Some(machine) = &imported.context.machine {
        out +=
            &format!("machine: {} (line {})\n", count(machine.cpus as usize, "CPU"), machine.line);
    }
    for (name, value) in &imported.context.parameters {
        out += &format!("{name}: {value}\n");
    }
    for table in &imported.tables {
        out += &format!("{}{}", if out.is_empty() { "" } else { "\n" }, one_table(table, all));
    }
    if imported.tables.is_empty() {
        out += "no table in a shape that is known\n";
    }
    out + &skipped(&imported.skipped)
}

/// The same for programs, pretty-printed, with a newline at its end.
pub fn reported_json(imported: &Imported) -> String {
    let mut document = serde_json::to_value(imported).unwrap_or_default();
    for (table, value) in imported.tables.iter().zip(items(&mut document, "tables")) {
        for (row, value) in table.rows.iter().zip(items(value, "rows")) {
            value["changes"] = json!(changes(row));
            value["means"] = row.cells.iter().map(|cell| json!(cell.mean())).collect();
        }
    }
    let mut whole = json!({ "format": IMPORT_FORMAT });
    if let (Value::Object(whole), Value::Object(found)) = (&mut whole, document) {
        whole.extend(found);
    }
    let mut text = serde_json::to_string_pretty(&whole).unwrap_or_default();
    text.push('\n');
    text
}

fn items<'v>(value: &'v mut Value, key: &str) -> std::slice::IterMut<'v, Value> {
    value
        .get_mut(key)
        .and_then(Value::as_array_mut)
        .map_or_else(Default::default, |list| list.iter_mut())
}

/// `A`, `B`, …, `Z`, `27`, ….
fn letter(index: usize) -> String {
    match u8::try_from(index) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => (index + 1).to_string(),
    }
}

fn lines(first: usize, last: usize) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}-{last}") }
}

fn one_table(table: &Table, all: bool) -> String {
    let shown = if all { table.rows.len() } else { table.rows.len().min(MOST_ROWS) };
    let mut out = format!(
        "{}, {}: {}, {}\n",
        table.format.words(),
        lines(table.first, table.last),
        count(table.sides.len(), "side"),
        count(table.rows.len(), "metric"),
    );
    for (index, side) in table.sides.iter().enumerate() {
        let name = if side.name.is_empty() { "(not named)" } else { &side.name };
        let blocks = if side.blocks > 1 {
            format!(", {}", count(side.blocks, "output"))
        } else {
            String::new()
        };
        out += &format!("  {}  {name}{blocks}\n", letter(index));
    }
    if !table.parameters.is_empty() {
        let pairs: Vec<String> =
            table.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        out += &format!("  parameters: {}\n", pairs.join(", "));
    }
    out += &grid(table, &table.rows[..shown]);
    if shown < table.rows.len() {
        out += &format!("  {} more rows; --all shows them\n", table.rows.len() - shown);
    }
    let notes = table.notes.iter().map(|note| format!("line {}: {}", note.line, note.text));
    let notes: Vec<String> = disagreements(table).into_iter().chain(notes).collect();
    let told = if all { notes.len() } else { notes.len().min(MOST_NOTES) };
    for note in &notes[..told] {
        out += &format!("  {note}\n");
    }
    if told < notes.len() {
        out += &format!("  {} more notes; --all shows them\n", notes.len() - told);
    }
    if !table.repeated.is_empty() {
        let places: Vec<String> = table.repeated.iter().map(ToString::to_string).collect();
        let more = if places.len() > MOST_RANGES { ", ..." } else { "" };
        let places = places[..places.len().min(MOST_RANGES)].join(", ");
        out += &format!("  the same again at line {places}{more}\n");
    }
    out
}

fn grid(table: &Table, rows: &[Row]) -> String {
    let mut grid: Vec<Vec<String>> = vec![head(table)];
    grid.extend(rows.iter().map(line));
    let columns = grid[0].len();
    let width =
        |column: usize| grid.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &grid {
        let mut text = String::from("  ");
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Names and what is said in words to the left, numbers to the right.
            let words = column < 2 || column > 2 && column.is_multiple_of(2);
            text += &if words { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
        }
        out += text.trim_end();
        out.push('\n');
    }
    out
}

fn head(table: &Table) -> Vec<String> {
    let mut head = vec!["metric".to_owned(), String::new()];
    for index in 0..table.sides.len() {
        head.push(letter(index));
        if index > 0 {
            head.push(format!("against {}", letter(0)));
        }
    }
    head
}

fn line(row: &Row) -> Vec<String> {
    let name = match row.metric.char_indices().nth(LONGEST_NAME) {
        Some((at, _)) => format!("{}...", &row.metric[..at]),
        None => row.metric.clone(),
    };
    let total = if row.role == Role::Total { " (total)" } else { "" };
    let mut line = vec![format!("{name}{total}"), row.unit.clone()];
    let changes = changes(row);
    for (index, cell) in row.cells.iter().enumerate() {
        let absent = || cell.absent.clone().unwrap_or_else(|| "absent".to_owned());
        line.push(cell.mean().map_or_else(absent, |mean| written(mean, row, index)));
        if index > 0 {
            line.push(
                changes[index - 1]
                    .map(|change| change_words(&change, row, cell))
                    .unwrap_or_default(),
            );
        }
    }
    line
}

/// A mean with the digits of its values, and how many they are.
fn written(mean: f64, row: &Row, index: usize) -> String {
    let values = &row.cells[index].values;
    let step = values.iter().map(|value| value.step).fold(f64::INFINITY, f64::min);
    let decimals = if step.is_finite() && step > 0.0 { -step.log10().round() } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 9")]
    let decimals = decimals.clamp(0.0, 9.0) as usize;
    match values.len() {
        1 => format!("{mean:.decimals$}"),
        // The mean of whole numbers is none.
        n => format!("{mean:.*} (n={n})", decimals.max(1)),
    }
}

/// `+9.8 % worse`, `-87.2 % better (7.8 times faster)`.
fn change_words(change: &Reported, row: &Row, cell: &Cell) -> String {
    if is_points(cell) {
        return format!("{:+.2} points", change.difference);
    }
    let mut words = match change.change {
        Some(relative) => percent(relative),
        None => format!("{:+}", change.difference),
    };
    match change.improved {
        Some(true) => words += " better",
        Some(false) => words += " worse",
        None => {}
    }
    let ratio = change.change.map(|relative| 1.0 + relative).filter(|ratio| *ratio > 0.0);
    if let Some(ratio) = ratio.filter(|ratio| !(0.5..2.0).contains(ratio)) {
        let time = matches!(row.unit.as_str(), "s" | "ms" | "us" | "ns" | "usecs/op");
        let word = match (time, ratio < 1.0) {
            (true, true) => "faster",
            (true, false) => "slower",
            (false, true) => "less",
            (false, false) => "more",
        };
        words += &format!(" ({:.1} times {word})", ratio.max(1.0 / ratio));
    }
    words
}

/// `+9.8 %`: as reports write it.
fn percent(change: f64) -> String {
    let percent = 100.0 * change;
    // What rounds to zero has no sign.
    if percent.abs() < 0.005 {
        return "0.0 %".to_owned();
    }
    let decimals = if percent.abs() < 0.1 { 2 } else { 1 };
    format!("{percent:+.decimals$} %")
}

/// Whether the report itself takes the difference of two percentages.
fn is_points(cell: &Cell) -> bool {
    cell.claimed.is_some_and(|claimed| claimed.sense == Sense::Points)
}

/// Where the report's own percentages are not what its figures give.
fn disagreements(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for row in &table.rows {
        for (index, change) in changes(row).into_iter().enumerate() {
            let cell = &row.cells[index + 1];
            let (Some(change), Some(claimed)) = (change, cell.claimed) else { continue };
            let (at, said) = (claimed.value.line, claimed.value.number);
            let computed = match change.change {
                Some(relative) if !is_points(cell) => percent(relative),
                _ => format!("{:+.2} points", change.difference),
            };
            let what = match change.agreement {
                Some(Agreement::Disagrees) => "DISAGREES",
                Some(Agreement::OtherSign) => "OTHER SIGN",
                Some(Agreement::Agrees) | None => continue,
            };
            let name = &row.metric;
            found.push(format!(
                "line {at}: {what}: {name} of {} is said to change by {said:+}, its figures give {computed}",
                letter(index + 1)
            ));
        }
    }
    found
}

fn skipped(skipped: &Skipped) -> String {
    let mut out = String::new();
    let mut tell = |what: &str, ranges: &[(usize, usize)]| {
        if ranges.is_empty() {
            return;
        }
        let total: usize = ranges.iter().map(|(first, last)| last - first + 1).sum();
        let shown = ranges.iter().take(MOST_RANGES).map(|(first, last)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        });
        let shown = shown.collect::<Vec<_>>().join(", ");
        let more = if ranges.len() > MOST_RANGES { ", ..." } else { "" };
        out += &format!("skipped: {} of {what}: {shown}{more}\n", count(total, "line"));
    };
    tell("figures in no shape that is known", &skipped.figures);
    tell("text", &skipped.text);
    for (first, last, why) in skipped.parts.iter().take(MOST_RANGES) {
        out += &format!("skipped: {}: {why}\n", lines(*first, *last));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
