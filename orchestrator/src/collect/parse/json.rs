//! JSON whose numbers know their lines.

use super::block::Value;
use super::number::number;
use crate::collect::mail::Line;

/// The deepest nesting of lists and objects.
const MAX_DEPTH: usize = 32;

/// A value, with the line it stands in where it is a number or may be one.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `true`, `false`, `null`.
    Word,
    /// A number or a text.
    Scalar {
        /// As written, without quotes.
        text: String,
        /// The line of the input.
        line: usize,
    },
    /// In order.
    List(Vec<Json>),
    /// In order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// What an object has under a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The value at the end of a path of keys.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Keys and values of an object.
    pub fn entries(&self) -> &[(String, Self)] {
        if let Self::Object(entries) = self { entries } else { &[] }
    }

    /// The items of a list.
    pub fn items(&self) -> &[Self] {
        if let Self::List(items) = self { items } else { &[] }
    }

    /// The text of a scalar.
    pub fn text(&self) -> Option<&str> {
        if let Self::Scalar { text, .. } = self { Some(text) } else { None }
    }

    /// The number that a scalar is.
    pub fn value(&self) -> Option<Value> {
        let Self::Scalar { text, line } = self else { return None };
        let number = number(text)?;
        Some(Value { number: number.value, step: number.step, line: *line })
    }
}

/// Reads one value that begins in the first line, and says how many lines it takes. None if it is not
/// whole or no JSON.
pub fn read_json(lines: &[Line<'_>]) -> Option<(Json, usize)> {
    let mut reader = Reader { lines, line: 0, at: 0 };
    let json = reader.any(0)?;
    Some((json, reader.line + 1))
}

struct Reader<'r, 'a> {
    lines: &'r [Line<'a>],
    line: usize,
    at: usize,
}

impl<'r> Reader<'r, '_> {
    fn rest(&self) -> &'r str {
        self.lines.get(self.line).map_or("", |line| &line.text[self.at..])
    }

    /// The next character that is no space, on this line or a further one.
    fn peek(&mut self) -> Option<char> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            self.at += rest.len() - trimmed.len();
            if let Some(next) = trimmed.chars().next() {
                return Some(next);
            }
            if self.line + 1 >= self.lines.len() {
                return None;
            }
            (self.line, self.at) = (self.line + 1, 0);
        }
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += wanted.len_utf8())
    }

    fn any(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            '{' => self.object(depth),
            '[' => self.list(depth),
            '"' => {
                let line = self.number_here();
                Some(Json::Scalar { text: self.string()?, line })
            }
            _ => self.word(),
        }
    }

    fn number_here(&self) -> usize {
        self.lines.get(self.line).map_or(0, |line| line.number_at(self.at))
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        self.take('{')?;
        let mut entries = Vec::new();
        while self.peek()? != '}' {
            if !entries.is_empty() {
                self.take(',')?;
            }
            self.peek()?;
            let key = self.string()?;
            self.take(':')?;
            entries.push((key, self.any(depth + 1)?));
        }
        self.take('}')?;
        Some(Json::Object(entries))
    }

    fn list(&mut self, depth: usize) -> Option<Json> {
        self.take('[')?;
        let mut items = Vec::new();
        while self.peek()? != ']' {
            if !items.is_empty() {
                self.take(',')?;
            }
            items.push(self.any(depth + 1)?);
        }
        self.take(']')?;
        Some(Json::List(items))
    }

    /// A text on one line; of the escapes those that programs use here.
    fn string(&mut self) -> Option<String> {
        self.take('"')?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    return Some(text);
                }
                '\\' => match chars.next()?.1 {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    'u' => {
                        let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                        let code = u32::from_str_radix(&digits, 16).ok()?;
                        text.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                    }
                    other => text.push(other),
                },
                other => text.push(other),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Json> {
        let rest = self.rest();
        let end = rest.find(|c: char| matches!(c, ',' | '}' | ']') || c.is_whitespace());
        let word = &rest[..end.unwrap_or(rest.len())];
        let line = self.number_here();
        self.at += word.len();
        match word {
            "true" | "false" | "null" => Some(Json::Word),
            _ => number(word).map(|_| Json::Scalar { text: word.to_owned(), line }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Line<'_>> {
        text.lines().enumerate().map(|(index, line)| Line::new(index + 1, line)).collect()
    }

    #[test]
    fn numbers_know_their_lines() {
        let lines =
            lines("{ \"a\": [1,\n 2.50 ], \"b\":\n{\"c\" : \"x\\\"\\u0041\", \"d\": null}}\nrest");
        let (json, used) = read_json(&lines).unwrap();
        assert_eq!(used, 3);
        let second = json.get("a").unwrap().items()[1].value().unwrap();
        assert_eq!((second.number, second.step, second.line), (2.5, 0.01, 2));
        assert_eq!(json.at(&["b", "c"]).unwrap().text(), Some("x\"A"));
    }

    #[test]
    fn what_is_cut_off_or_none_is_none() {
        for text in ["{", "{\"a\"", "{\"a\":1", "[1 2]", "{1:2}", "\"a", "{\"a\":x}", "[1,]"] {
            assert_eq!(read_json(&lines(text)), None, "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(read_json(&lines(&deep)), None);
    }
}
