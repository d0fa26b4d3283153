use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag};

use super::diagnostic::{Diagnostic, Diagnostics, Source, Spot};
use super::node::{Content, Entry, Node};

/// The longest document that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The deepest nesting of lists and maps.
pub const MAX_DEPTH: usize = 32;

/// The most values in a document, those that aliases repeat included.
pub const MAX_NODES: usize = 20_000;

/// Reads the YAML of a document into a tree that knows where everything stands. The complaints that
/// come with it do not keep the rest from being checked.
///
/// # Errors
///
/// What keeps the tree from being built at all.
pub fn parse(
    index: usize,
    name: &str,
    bytes: &[u8],
) -> Result<(Source, Node, Vec<Diagnostic>), Diagnostics> {
    let text = decode(name, bytes)?;
    let source = Source { name: name.to_owned(), lines: lines(&text) };
    let mut builder = Builder::new(index, &source);
    let node = builder.read(&text).and_then(|node| agree(&source, &text).map(|()| node));
    match node {
        Ok(node) => {
            let complaints = std::mem::take(&mut builder.complaints);
            Ok((source, node, complaints))
        }
        Err(fatal) => {
            let mut complaints = builder.complaints;
            complaints.push(*fatal);
            Err(Diagnostics(complaints))
        }
    }
}

/// The text of a document: not too long, UTF-8, no control characters.
fn decode(name: &str, bytes: &[u8]) -> Result<String, Diagnostics> {
    if bytes.len() > MAX_BYTES {
        let found = Diagnostic::whole(name, "document is longer than the 1 MiB allowed");
        return Err(Diagnostics::one(found));
    }
    let (text, broken) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), None),
        Err(error) => (String::from_utf8_lossy(bytes), Some(error.valid_up_to())),
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let control = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
    let (at, what) = match (control, broken) {
        (Some(at), broken) if broken.is_none_or(|broken| at < broken) => {
            let code = text[at..].chars().next().map_or(0, u32::from);
            (at, format!("control character U+{code:04X} in the document"))
        }
        (_, Some(at)) => (at.min(text.len()), "document is not UTF-8".to_owned()),
        _ => return Ok(text.to_owned()),
    };
    let source = Source { name: name.to_owned(), lines: lines(text) };
    let before = lines(&text[..at]);
    let column = before.last().map_or(0, |line| line.chars().count()) + 1;
    let spot = Spot { source: 0, line: before.len(), column, len: 1 };
    Err(Diagnostics::one(Diagnostic::at(&source, spot, what)))
}

/// Lines as YAML breaks them.
fn lines(text: &str) -> Vec<Arc<str>> {
    text.replace("\r\n", "\n").split(['\n', '\r']).map(Arc::from).collect()
}

/// The same text must be YAML for `serde_yaml` too, which other tools and editors follow.
fn agree(source: &Source, text: &str) -> Result<(), Box<Diagnostic>> {
    let Err(error) = serde_yaml::from_str::<serde::de::IgnoredAny>(text) else {
        return Ok(());
    };
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let spot = error.location().map_or_else(Spot::default, |location| Spot {
        source: 0,
        line: location.line(),
        column: location.column(),
        len: 1,
    });
    Err(Box::new(Diagnostic::at(source, spot, format!("not valid YAML: {message}"))))
}

/// A list or map that is not finished.
struct Open {
    spot: Spot,
    anchor: usize,
    items: Vec<Node>,
    map: Option<OpenMap>,
}

/// Of a map that is not finished: its entries and the key that waits for its value.
#[derive(Default)]
struct OpenMap {
    entries: Vec<Entry>,
    key: Option<(String, Spot)>,
}

struct Builder<'s> {
    index: usize,
    source: &'s Source,
    /// Of the source's lines, in characters.
    widths: Vec<usize>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
    complaints: Vec<Diagnostic>,
}

type Step = Result<(), Box<Diagnostic>>;

impl<'s> Builder<'s> {
    fn new(index: usize, source: &'s Source) -> Self {
        Self {
            index,
            source,
            widths: source.lines.iter().map(|line| line.trim_end().chars().count()).collect(),
            open: Vec::new(),
            anchors: BTreeMap::new(),
            nodes: 0,
            root: None,
            complaints: Vec::new(),
        }
    }

    fn read(&mut self, text: &str) -> Result<Node, Box<Diagnostic>> {
        for event in Parser::new_from_str(text) {
            let (event, span) = event.map_err(|error| self.scan_error(&error))?;
            self.take(event, span)?;
        }
        self.root.take().ok_or_else(|| {
            Box::new(
                Diagnostic::whole(&self.source.name, "document is empty")
                    .hint("a document begins with `version: 1`"),
            )
        })
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Step {
        let spot = self.spot(span);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.check_scalar(&text, spot, tag.as_deref());
                let plain = style == ScalarStyle::Plain;
                let content = Content::Scalar { text: text.into_owned(), plain };
                self.finish(Node { spot, content }, anchor, 1)
            }
            Event::Alias(id) => match self.anchors.get(&id).cloned() {
                Some(node) => {
                    let weight = size(&node);
                    self.finish(Node { spot, ..node }, 0, weight)
                }
                None => Err(self.fatal(spot, "alias stands inside what it names")),
            },
            Event::SequenceStart(anchor, tag) => self.begin(spot, anchor, false, tag.as_deref()),
            Event::MappingStart(anchor, tag) => self.begin(spot, anchor, true, tag.as_deref()),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.fatal(spot, "a second document begins here, and only one is read"))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, spot: Spot, anchor: usize, map: bool, tag: Option<&Tag>) -> Step {
        if self.open.len() == MAX_DEPTH {
            return Err(self.fatal(spot, format!("nested more than {MAX_DEPTH} deep")));
        }
        self.check_tag(spot, tag);
        let map = map.then(OpenMap::default);
        self.open.push(Open { spot, anchor, items: Vec::new(), map });
        Ok(())
    }

    fn end(&mut self) -> Step {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let Open { mut spot, anchor, items, map } = open;
        let content = match map {
            None => Content::List(items),
            Some(OpenMap { entries, .. }) => {
                // A block map has no bracket of its own: show its first key instead.
                if let Some(first) =
                    entries.first().filter(|first| first.spot.column == spot.column)
                {
                    spot = first.spot;
                }
                Content::Map(entries)
            }
        };
        self.finish(Node { spot, content }, anchor, 1)
    }

    /// Puts a finished value where it belongs; `weight` are the values that it adds.
    fn finish(&mut self, node: Node, anchor: usize, weight: usize) -> Step {
        self.nodes += weight;
        if self.nodes > MAX_NODES {
            return Err(
                self.fatal(node.spot, format!("more than {MAX_NODES} values, aliases expanded"))
            );
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.map {
            None => open.items.push(node),
            Some(OpenMap { entries, key }) => match key.take() {
                Some((key, spot)) => entries.push(Entry { key, spot, value: node }),
                None => return self.key(node),
            },
        }
        Ok(())
    }

    fn key(&mut self, node: Node) -> Step {
        let spot = node.spot;
        let Content::Scalar { text, .. } = node.content else {
            return Err(self.fatal(spot, "a key must be a word"));
        };
        let Some(OpenMap { entries, key }) =
            self.open.last_mut().and_then(|open| open.map.as_mut())
        else {
            return Ok(());
        };
        let first = entries.iter().find(|entry| entry.key == text).map(|entry| entry.spot.line);
        *key = Some((text.clone(), spot));
        if let Some(first) = first {
            let message = format!("key `{text}` is written twice");
            let complaint = Diagnostic::at(self.source, spot, message)
                .hint(format!("the first is in line {first}; remove one of them"));
            self.complaints.push(complaint);
        }
        Ok(())
    }

    fn check_scalar(&mut self, text: &str, spot: Spot, tag: Option<&Tag>) {
        self.check_tag(spot, tag);
        if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t')) {
            let message = "control character in a text";
            self.complaints.push(Diagnostic::at(self.source, spot, message));
        }
    }

    fn check_tag(&mut self, spot: Spot, tag: Option<&Tag>) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            let message = format!("tag `{}{}` means nothing here", tag.handle, tag.suffix);
            self.complaints.push(Diagnostic::at(self.source, spot, message));
        }
    }

    fn spot(&self, span: Span) -> Spot {
        let (start, end) = (span.start, span.end);
        let width = self.widths.get(start.line().saturating_sub(1)).copied().unwrap_or_default();
        let end = if end.line() == start.line() { end.col() } else { width };
        let len = end.min(width).saturating_sub(start.col()).max(1);
        Spot { source: self.index, line: start.line(), column: start.col() + 1, len }
    }

    fn fatal(&self, spot: Spot, message: impl Into<String>) -> Box<Diagnostic> {
        Box::new(Diagnostic::at(self.source, spot, message))
    }

    fn scan_error(&self, error: &ScanError) -> Box<Diagnostic> {
        let marker = error.marker();
        let mut spot = self.spot(Span::empty(*marker));
        // What ends too early is shown where its text ends, not on the empty lines behind it.
        if self.widths.iter().skip(spot.line.saturating_sub(1)).all(|width| *width == 0) {
            let last = self.widths.iter().rposition(|width| *width > 0).unwrap_or_default();
            let width = self.widths.get(last).copied().unwrap_or_default();
            spot = Spot { line: last + 1, column: width + 1, len: 1, ..spot };
        }
        self.fatal(spot, format!("not valid YAML: {}", error.info()))
    }
}

/// Values in a tree, itself included.
fn size(node: &Node) -> usize {
    1 + match &node.content {
        Content::Scalar { .. } => 0,
        Content::List(items) => items.iter().map(size).sum::<usize>(),
        Content::Map(entries) => entries.iter().map(|entry| size(&entry.value)).sum(),
    }
}
