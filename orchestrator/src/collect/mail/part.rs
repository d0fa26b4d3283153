use super::decode;
use super::header::Header;
use super::input::Raw;
use super::line::Line;
use super::quote::unquoted;

/// The deepest nesting of parts in parts.
const MAX_DEPTH: usize = 10;

/// A longer line is no line of a table.
const LONGEST_LINE: usize = 1 << 20;

/// A mail, or a text that is none.
#[derive(Debug, Default)]
pub struct Message<'a> {
    /// Of a mail that has one.
    pub subject: Option<String>,
    /// The texts in it, each with its lines, unquoted.
    pub texts: Vec<Vec<Line<'a>>>,
    /// What is no text.
    pub left: Vec<Left>,
}

/// Lines of the input that were left out, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The first line.
    pub first: usize,
    /// The last line.
    pub last: usize,
    /// Why.
    pub why: String,
}

/// Undoes what mailing did to one message.
pub fn open<'a>(lines: &[Raw<'a>]) -> Message<'a> {
    let mut message = Message::default();
    match Header::split(lines) {
        None => message.add(decode::plain(lines)),
        Some((header, body)) => {
            message.subject = header.subject();
            message.part(&header, body, 0);
        }
    }
    message
}

impl<'a> Message<'a> {
    fn add(&mut self, lines: Vec<Line<'a>>) {
        let (short, long): (Vec<_>, Vec<_>) =
            lines.into_iter().partition(|line| line.text.len() <= LONGEST_LINE);
        let left = |line: &Line<'_>| Left {
            first: line.number,
            last: line.last(),
            why: "line longer than 1 MiB".to_owned(),
        };
        self.left.extend(long.iter().map(left));
        self.texts.push(short.into_iter().map(unquoted).collect());
    }

    fn part(&mut self, header: &Header, body: &[Raw<'a>], depth: usize) {
        let kind = header.media_type();
        if depth > MAX_DEPTH {
            return self.leave(body, "parts nested too deep");
        }
        match (kind.as_str(), header.boundary()) {
            (kind, Some(boundary)) if kind.starts_with("multipart/") => {
                for part in sections(body, boundary) {
                    let (header, body) = Header::of_part(part);
                    self.part(&header, body, depth + 1);
                }
            }
            ("message/rfc822", _) => {
                let (header, body) = Header::of_part(body);
                self.part(&header, body, depth + 1);
            }
            (kind, _) if kind.starts_with("text/") && kind != "text/html" => {
                match header.encoding().as_str() {
                    "quoted-printable" => self.add(decode::quoted_printable(body)),
                    "base64" => match decode::base64(body) {
                        Some(lines) => self.add(lines),
                        None => self.leave(body, "not the base64 that it should be"),
                    },
                    _ => self.add(decode::plain(body)),
                }
            }
            _ => self.leave(body, &format!("part of type {kind}")),
        }
    }

    fn leave(&mut self, body: &[Raw<'_>], why: &str) {
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            let (first, last) = (first.number, last.number);
            self.left.push(Left { first, last, why: why.to_owned() });
        }
    }
}

/// What stands between lines of `boundary`.
fn sections<'r, 'a>(body: &'r [Raw<'a>], boundary: &str) -> Vec<&'r [Raw<'a>]> {
    let mut sections = Vec::new();
    let mut start = None;
    for (index, line) in body.iter().enumerate() {
        let marked = line.bytes.strip_prefix(b"--");
        let Some(rest) = marked.and_then(|rest| rest.strip_prefix(boundary.as_bytes())) else {
            continue;
        };
        let rest = rest.trim_ascii_end();
        if !(rest.is_empty() || rest == b"--") {
            continue;
        }
        if let Some(start) = start.replace(index + 1) {
            sections.push(&body[start..index]);
        }
        if rest == b"--" {
            return sections;
        }
    }
    // The last boundary is missing: the mail is cut off, and what is there is read.
    sections.extend(start.map(|start| &body[start..]));
    sections
}
