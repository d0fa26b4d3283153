//! From single outputs to tables: outputs of one program with the same parameters are the sides of
//! one table, each named by what stands above it.

use std::collections::BTreeMap;

use super::block::{Block, Cell, Format, Note, Row};
use super::heading::heading;
use super::scan::{Place, scan};
use super::table::{Imported, Side, Table};
use crate::collect::mail::{Line, messages, open, raw_lines};
use crate::text::{count, escape};

/// Parameters in which outputs differ that are not sides of one comparison.
const TELLING: &[&str] = &[
    "mode",
    "groups",
    "fds",
    "loops",
    "bytes",
    "benchmark",
    "load",
    "jobs",
    "command",
    "hogs",
    "Number of threads",
    "Prime numbers limit",
];

/// Finds every table in an input: a mailbox, a mail or any text.
pub fn import(bytes: &[u8]) -> Imported {
    let raw = raw_lines(bytes);
    let messages = messages(&raw);
    let mut imported = Imported { messages: messages.len(), ..Imported::default() };
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for message in messages {
        let message = open(message);
        let subject = message.subject.as_deref().map(escape);
        imported.subject = imported.subject.take().or(subject);
        message.left.iter().for_each(|left| imported.skipped.leave(left));
        for lines in &message.texts {
            for table in one_text(lines, &mut imported) {
                add(table, &mut imported.tables, &mut known);
            }
        }
    }
    imported
}

/// Adds a table, or where it stands once more.
fn add(table: Table, tables: &mut Vec<Table>, known: &mut BTreeMap<String, usize>) {
    let identity = identity(&table);
    match known.get(&identity) {
        Some(index) => tables[*index].repeated.push(table.first),
        None => {
            known.insert(identity, tables.len());
            tables.push(table);
        }
    }
}

/// All of a table but where it stands.
fn identity(table: &Table) -> String {
    let mut text = format!("{:?} {:?} {:?}", table.format, table.sides, table.parameters);
    for row in &table.rows {
        text += &row.metric;
        for cell in &row.cells {
            let numbers = cell.values.iter().map(|value| value.number.to_bits());
            text += &format!(" {:x?}", numbers.collect::<Vec<_>>());
        }
    }
    text
}

/// The tables of lines that stood together; tells what is left of them.
fn one_text(lines: &[Line<'_>], imported: &mut Imported) -> Vec<Table> {
    let places = scan(lines);
    let mut used = vec![false; lines.len()];
    for place in &places {
        let end = lines.len().min(place.at + place.block.used);
        used[place.at..end].fill(true);
    }
    let tables = tables(lines, places, &mut used);
    for (index, line) in lines.iter().enumerate() {
        imported.context.look(line, lines.get(index + 1));
        if !used[index] {
            imported.skipped.add(line);
        }
    }
    tables
}

/// Puts tables together; the lines that name their sides count as used, too.
fn tables(lines: &[Line<'_>], places: Vec<Place>, used: &mut [bool]) -> Vec<Table> {
    let mut tables: Vec<(String, Table)> = Vec::new();
    let mut free = 0;
    let mut label = String::new();
    for Place { at, block } in places {
        let own = !block.sides.is_empty();
        if let Some((index, heading)) = heading(lines, at, free) {
            label = heading;
            used[index] |= !own;
        }
        free = at + block.used;
        let last = lines[at..free.min(lines.len())].iter().rev().find(|line| !line.is_blank());
        let span = (lines[at].number, last.map_or(lines[at].number, Line::last));
        let key = key(&block);
        match tables.iter_mut().find(|(other, _)| !own && *other == key) {
            Some((_, table)) => join(table, &label, block, span),
            None => {
                let key = if own { String::new() } else { key };
                tables.push((key, table(&label, block, span)));
            }
        }
    }
    tables.into_iter().map(|(_, table)| finished(table)).collect()
}

fn key(block: &Block) -> String {
    let telling = |(name, _): &&(String, String)| TELLING.contains(&name.as_str());
    let parameters: Vec<_> = block.parameters.iter().filter(telling).collect();
    format!("{:?} {parameters:?}", block.format)
}

fn table(label: &str, block: Block, (first, last): (usize, usize)) -> Table {
    let sides: Vec<Side> = match block.sides.is_empty() {
        true => vec![Side { name: escape(label), blocks: 1 }],
        false => block.sides.iter().map(|name| Side { name: escape(name), blocks: 1 }).collect(),
    };
    let safe = |(name, value): (String, String)| (escape(&name), escape(&value));
    Table {
        format: block.format,
        first,
        last,
        sides,
        parameters: block.parameters.into_iter().map(safe).collect(),
        rows: block.rows.into_iter().map(escaped).collect(),
        notes: block.notes.into_iter().map(escaped_note).collect(),
        repeated: Vec::new(),
    }
}

fn escaped(row: Row) -> Row {
    let absent = |cell: Cell| Cell { absent: cell.absent.as_deref().map(escape), ..cell };
    let cells = row.cells.into_iter().map(absent).collect();
    Row { metric: escape(&row.metric), unit: escape(&row.unit), cells, ..row }
}

fn escaped_note(note: Note) -> Note {
    Note { text: escape(&note.text), ..note }
}

/// Adds an output of one side to a table.
fn join(into: &mut Table, label: &str, block: Block, span: (usize, usize)) {
    let from = table(label, block, span);
    let name = &from.sides[0].name;
    let side = into.sides.iter().position(|side| side.name == *name);
    let side = side.unwrap_or_else(|| {
        into.sides.push(Side { name: name.clone(), blocks: 0 });
        into.sides.len() - 1
    });
    // Another line of the same output is no further output.
    let mut again = false;
    for mut row in from.rows {
        let Some(cell) = row.cells.pop() else { continue };
        let found =
            into.rows.iter().position(|other| other.metric == row.metric && other.unit == row.unit);
        let index = found.unwrap_or_else(|| {
            into.rows.push(row);
            into.rows.len() - 1
        });
        let cells = &mut into.rows[index].cells;
        cells.resize_with(cells.len().max(side + 1), Cell::default);
        let there = &mut cells[side];
        if there.values.is_empty() && there.absent.is_none() {
            *there = cell;
        } else {
            again = true;
            there.values.extend(cell.values);
            there.spread = None;
        }
    }
    if again || into.sides[side].blocks == 0 {
        into.sides[side].blocks += 1;
    }
    into.notes.extend(from.notes);
    into.last = into.last.max(from.last);
    for parameter in from.parameters {
        if !into.parameters.contains(&parameter) {
            into.parameters.push(parameter);
        }
    }
}

/// Every row gets a cell for every side.
fn finished(mut table: Table) -> Table {
    let sides = table.sides.len();
    for row in &mut table.rows {
        row.cells.resize_with(sides, Cell::default);
        for cell in row.cells.iter_mut().filter(|cell| cell.values.is_empty()) {
            cell.absent.get_or_insert_with(|| "not given".to_owned());
        }
    }
    if let [side] = &table.sides[..]
        && side.blocks > 1
        && table.format != Format::Lmbench
    {
        let text =
            format!("nothing tells sides apart: {} are runs of one", count(side.blocks, "output"));
        table.notes.push(Note { line: table.first, text });
    }
    table
}
