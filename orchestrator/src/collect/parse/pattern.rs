use std::sync::OnceLock;

use regex::{Captures, Match, Regex};

use super::block::Value;
use super::number::number;
use crate::collect::mail::Line;

/// A regular expression that is compiled when it is first needed.
pub struct Pattern {
    text: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Of a text that is known to be one; every parser's tests would show another.
    pub const fn new(text: &'static str) -> Self {
        Self { text, regex: OnceLock::new() }
    }

    fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(self.text).ok()).as_ref()
    }

    /// Whether it is found.
    pub fn is_in(&self, text: &str) -> bool {
        self.regex().is_some_and(|regex| regex.is_match(text))
    }

    /// The groups of its first place.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Captures<'t>> {
        self.regex()?.captures(text)
    }

    /// The groups of every place.
    pub fn all<'t>(&'t self, text: &'t str) -> impl Iterator<Item = Captures<'t>> + 't {
        self.regex().into_iter().flat_map(move |regex| regex.captures_iter(text))
    }
}

/// The number that was found in a line.
pub fn value(line: &Line<'_>, found: Option<Match<'_>>) -> Option<Value> {
    let found = found?;
    let number = number(found.as_str())?;
    Some(Value { number: number.value, step: number.step, line: line.number_at(found.start()) })
}

/// The text of a group, empty if it has none.
pub fn group<'t>(captures: &Captures<'t>, name: &str) -> &'t str {
    captures.name(name).map_or("", |found| found.as_str())
}
