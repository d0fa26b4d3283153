use serde::Serialize;

use super::block::{Format, Note, Row};
use super::context::Context;
use super::skipped::Skipped;

/// What one side of a table is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Side {
    /// As the report calls it; empty if it does not.
    pub name: String,
    /// How many outputs were put together for it.
    pub blocks: usize,
}

/// Sides by metrics. All text in it is escaped.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Table {
    /// Which program printed it.
    pub format: Format,
    /// The first line of the input that it takes.
    pub first: usize,
    /// The last one.
    pub last: usize,
    /// Base first.
    pub sides: Vec<Side>,
    /// What the program was told.
    pub parameters: Vec<(String, String)>,
    /// One per metric, with a cell per side.
    pub rows: Vec<Row>,
    /// What to know about it.
    pub notes: Vec<Note>,
    /// First lines of further places that say the same, as quotes do.
    pub repeated: Vec<usize>,
}

/// Everything that was found in an input. All text in it is escaped.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Imported {
    /// Mails, or 1 for a text that is none.
    pub messages: usize,
    /// Of the first mail that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// In the order of the input.
    pub tables: Vec<Table>,
    /// What the text tells about machine and test.
    pub context: Context,
    /// Lines that went into no table.
    pub skipped: Skipped,
}
