use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::diagnostic::Spot;

/// A value as it was written, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Where it begins; of a block map, its first key.
    pub spot: Spot,
    /// What it is.
    pub content: Content,
}

/// What a [`Node`] is. Scalars keep their written text: `6.10`, `no` and `0x1` mean themselves.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A word or text; `plain` without quotes.
    Scalar {
        /// Unquoted and unescaped.
        text: String,
        /// Written without quotes.
        plain: bool,
    },
    /// In order.
    List(Vec<Node>),
    /// In written order.
    Map(Vec<Entry>),
}

/// One key of a map with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key's text.
    pub key: String,
    /// Where the key stands.
    pub spot: Spot,
    /// What belongs to it.
    pub value: Node,
}

impl Node {
    /// A word without quotes.
    pub fn word(spot: Spot, text: impl Into<String>) -> Self {
        Self { spot, content: Content::Scalar { text: text.into(), plain: true } }
    }

    /// A list.
    pub fn list(spot: Spot, items: Vec<Self>) -> Self {
        Self { spot, content: Content::List(items) }
    }

    /// A map.
    pub fn map(spot: Spot, entries: Vec<Entry>) -> Self {
        Self { spot, content: Content::Map(entries) }
    }

    /// What it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.content {
            _ if self.is_null() => "nothing",
            Content::Scalar { .. } => "a word",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    /// Whether nothing is written, or `~` or `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true }
            if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// The text of a scalar that is not empty.
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// The value of `key` if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.content {
            Content::Map(entries) => {
                entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
            }
            _ => None,
        }
    }

    /// The place of `len` characters of a scalar's text from `start`, if it stands there as written.
    pub fn part(&self, start: usize, len: usize) -> Spot {
        match &self.content {
            Content::Scalar { text, plain: true } if text.chars().count() == self.spot.len => {
                Spot { column: self.spot.column + start, len: len.max(1), ..self.spot }
            }
            _ => self.spot,
        }
    }
}

impl Entry {
    /// A key that stands where its value does.
    pub fn new(key: impl Into<String>, value: Node) -> Self {
        Self { key: key.into(), spot: value.spot, value }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.content {
            Content::Scalar { text, plain } => match text.parse::<u64>() {
                Ok(number) if *plain && number.to_string() == *text => {
                    serializer.serialize_u64(number)
                }
                _ => serializer.serialize_str(text),
            },
            Content::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Content::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&entry.key, &entry.value)?;
                }
                map.end()
            }
        }
    }
}
