use std::ops::RangeInclusive;

use super::diagnostic::{Diagnostic, Source, Spot};
use super::files::Files;
use super::node::{Content, Entry, Node};
use crate::{text, units};

/// Collects every complaint while a tree is read. A reader that complains returns `None`, and its
/// caller goes on with the rest.
pub struct Check<'a> {
    /// What the user wrote; [`Spot::source`] is an index into it.
    pub sources: Vec<Source>,
    /// What is wrong.
    pub found: Vec<Diagnostic>,
    /// What is wrong only for those who use it: a missing file, a feature that is not there yet.
    pub deferred: Vec<Diagnostic>,
    /// Where relative paths begin, and what is there.
    pub files: Files<'a>,
}

impl<'a> Check<'a> {
    /// Nothing complained about yet.
    pub fn new(files: Files<'a>) -> Self {
        Self { sources: Vec::new(), found: Vec::new(), deferred: Vec::new(), files }
    }

    /// A diagnostic at `spot`, not yet complained about.
    pub fn diagnostic(&self, spot: Spot, message: impl Into<String>) -> Diagnostic {
        match self.sources.get(spot.source) {
            Some(source) => Diagnostic::at(source, spot, message),
            None => Diagnostic::whole("", message),
        }
    }

    /// Complains.
    pub fn complain(&mut self, spot: Spot, message: impl Into<String>) {
        let diagnostic = self.diagnostic(spot, message);
        self.found.push(diagnostic);
    }

    /// Complains, and says what to do.
    pub fn advise(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let diagnostic = self.diagnostic(spot, message).hint(hint);
        self.found.push(diagnostic);
    }

    /// Complains if what stands here is used.
    pub fn defer(&mut self, spot: Spot, message: impl Into<String>, hint: impl Into<String>) {
        let diagnostic = self.diagnostic(spot, message).hint(hint);
        self.deferred.push(diagnostic);
    }

    /// Complains about a word that is none of `valid`; offers the nearest, or all of them.
    pub fn unknown(&mut self, spot: Spot, what: &str, word: &str, valid: &[&str]) {
        let message = format!("unknown {what} `{word}`");
        match choice_hint(word, valid) {
            Some(hint) => self.advise(spot, message, hint),
            None => self.complain(spot, message),
        }
    }

    /// The entries of a map whose keys are all in `valid`.
    pub fn map<'n>(&mut self, node: &'n Node, what: &str, valid: &[&str]) -> Option<&'n [Entry]> {
        let entries = self.open_map(node, what)?;
        for entry in entries.iter().filter(|entry| !valid.contains(&entry.key.as_str())) {
            let message = format!("unknown key `{}` in {what}", entry.key);
            let hint = choice_hint(&entry.key, valid).unwrap_or_default();
            self.advise(entry.spot, message, hint);
        }
        Some(entries)
    }

    /// The entries of a section with names of the user's own; a section may hold nothing yet.
    pub fn section<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        if node.is_null() { Some(&[]) } else { self.open_map(node, what) }
    }

    /// The entries of a map with names of the user's own.
    pub fn open_map<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Entry]> {
        match &node.content {
            Content::Map(entries) => Some(entries),
            _ => {
                let message = format!("{what} must be a map, not {}", node.kind());
                self.complain(node.spot, message);
                None
            }
        }
    }

    /// Whether a map lacks `key`; not if it has one that looks like a slip of it, which was complained
    /// about already.
    pub fn lacks(&self, node: &Node, key: &str) -> bool {
        let Content::Map(entries) = &node.content else { return false };
        let near = |entry: &Entry| nearest(&entry.key, [key]).is_some();
        !entries.iter().any(near)
    }

    /// The items of a list.
    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.content {
            Content::List(items) => Some(items),
            _ => {
                let message = format!("{what} must be a list, not {}", node.kind());
                self.advise(node.spot, message, "write a list as `[one, two]`");
                None
            }
        }
    }

    /// The items of a list, or the one that stands for itself.
    pub fn one_or_more<'n>(&mut self, node: &'n Node, what: &str) -> Option<Vec<&'n Node>> {
        match &node.content {
            Content::List(items) if items.is_empty() => {
                self.complain(node.spot, format!("{what} must not be empty"));
                None
            }
            Content::List(items) => Some(items.iter().collect()),
            _ => Some(vec![node]),
        }
    }

    /// A word or text, as written.
    pub fn text(&mut self, node: &Node, what: &str) -> Option<String> {
        let text = node.text().map(str::to_owned);
        if text.is_none() {
            let message = if node.is_null() {
                format!("{what} has no value")
            } else {
                format!("{what} must be a word, not {}", node.kind())
            };
            self.complain(node.spot, message);
        }
        text
    }

    /// Words, from a list or a single one.
    pub fn texts(&mut self, node: &Node, what: &str) -> Option<Vec<String>> {
        let items = self.one_or_more(node, what)?;
        items.into_iter().map(|item| self.text(item, what)).collect()
    }

    /// A name of the user's own that becomes part of file names.
    pub fn name(&mut self, spot: Spot, what: &str, name: &str) -> bool {
        let good = name.len() <= 40
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        if !good {
            let hint = "a name has at most 40 letters, digits, `-`, `_` and `.`, and begins with a letter or digit";
            self.advise(spot, format!("`{name}` is no name for {what}"), hint);
        }
        good
    }

    /// A number within bounds.
    pub fn integer(&mut self, node: &Node, what: &str, range: RangeInclusive<u64>) -> Option<u64> {
        let text = self.text(node, what)?;
        let value = text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
        if value.is_none_or(|value| !range.contains(&value)) {
            let (low, high) = range.into_inner();
            let hint = if low == high {
                format!("it must be {low}")
            } else {
                format!("write a whole number from {low} to {high}")
            };
            self.advise(node.spot, format!("{what} cannot be `{text}`"), hint);
            return None;
        }
        value
    }

    /// [`Self::integer`] for the small numbers of plans.
    pub fn small(&mut self, node: &Node, what: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let (low, high) = range.into_inner();
        let value = self.integer(node, what, u64::from(low)..=u64::from(high))?;
        u32::try_from(value).ok()
    }

    /// A size in bytes.
    pub fn size(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = self.text(node, what)?;
        match units::parse_size(&text) {
            Ok(bytes) => Some(bytes),
            Err(why) => {
                let message = format!("{what} cannot be `{text}`: {why}");
                self.advise(node.spot, message, units::SIZE_HELP);
                None
            }
        }
    }

    /// A duration in nanoseconds.
    pub fn duration_ns(&mut self, node: &Node, what: &str) -> Option<u64> {
        let text = self.text(node, what)?;
        match units::parse_duration_ns(&text) {
            Ok(ns) => Some(ns),
            Err(why) => {
                let message = format!("{what} cannot be `{text}`: {why}");
                self.advise(node.spot, message, units::DURATION_HELP);
                None
            }
        }
    }

    /// A duration in whole seconds, rounded up.
    pub fn seconds(&mut self, node: &Node, what: &str) -> Option<u32> {
        let ns = self.duration_ns(node, what)?;
        let seconds = u32::try_from(ns.div_ceil(1_000_000_000)).ok().filter(|s| *s <= 24 * 3600);
        if seconds.is_none() {
            self.complain(node.spot, format!("{what} is longer than a day"));
        }
        seconds
    }

    /// `true` or `false`.
    pub fn flag(&mut self, node: &Node, what: &str) -> Option<bool> {
        match self.text(node, what)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            other => {
                let message = format!("{what} cannot be `{other}`");
                self.advise(node.spot, message, "write `true` or `false`");
                None
            }
        }
    }
}

/// The candidate nearest to `word`; a word as long as a document is near to none.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 100 { None } else { text::nearest(word, candidates) }
}

/// `did you mean …?`, or the words there are if they are few.
pub fn choice_hint(word: &str, valid: &[&str]) -> Option<String> {
    if let Some(near) = nearest(word, valid.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    let all = valid.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    match valid.len() {
        0 => None,
        1 => Some(format!("only {all} is possible")),
        _ => Some(format!("possible are {all}")),
    }
}
