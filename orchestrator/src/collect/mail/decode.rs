use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::input::Raw;
use super::line::Line;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// UTF-8, or what is not as Latin-1, of which every byte is a character.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// A line that is put together from pieces of the input's lines.
#[derive(Default)]
struct Pieces {
    pieces: Vec<(usize, Vec<u8>)>,
}

impl Pieces {
    fn add(&mut self, number: usize, bytes: &[u8]) {
        match self.pieces.last_mut() {
            Some((last, piece)) if *last == number => piece.extend(bytes),
            _ => self.pieces.push((number, bytes.to_vec())),
        }
    }

    /// The line that they make; nothing is left.
    fn finish(&mut self) -> Option<Line<'static>> {
        let pieces = std::mem::take(&mut self.pieces);
        let number = pieces.first()?.0;
        let whole: Vec<u8> = pieces.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
        let utf8 = String::from_utf8(whole).ok();
        let (mut latin, mut at, mut breaks) = (String::new(), 0, Vec::new());
        for (index, (number, bytes)) in pieces.iter().enumerate() {
            let from = if utf8.is_some() { at } else { latin.len() };
            if index > 0 {
                breaks.push((from, *number));
            }
            at += bytes.len();
            if utf8.is_none() {
                latin.extend(bytes.iter().map(|byte| char::from(*byte)));
            }
        }
        let mut text = utf8.unwrap_or(latin);
        if text.ends_with('\r') {
            text.pop();
        }
        Some(Line { breaks, ..Line::new(number, text) })
    }
}

/// Text as it stands.
pub fn plain<'a>(lines: &[Raw<'a>]) -> Vec<Line<'a>> {
    lines.iter().map(|line| Line::new(line.number, text(line.bytes))).collect()
}

/// Quoted-printable.
pub fn quoted_printable(lines: &[Raw<'_>]) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut pieces = Pieces::default();
    for line in lines {
        let bytes = line.bytes.trim_ascii_end();
        let (bytes, goes_on) = match bytes.strip_suffix(b"=") {
            Some(bytes) => (bytes, true),
            None => (bytes, false),
        };
        pieces.add(line.number, &unescaped(bytes));
        if !goes_on {
            out.extend(pieces.finish());
        }
    }
    out.extend(pieces.finish());
    out
}

/// `=3D` is `=`; what is no such escape stays.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = match bytes[at..] {
            [b'=', high, low, ..] => hex(high).zip(hex(low)).map(|(high, low)| high * 16 + low),
            _ => None,
        };
        out.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    out
}

/// Base64. None if it is not.
pub fn base64(lines: &[Raw<'_>]) -> Option<Vec<Line<'static>>> {
    let (mut out, mut pieces) = (Vec::new(), Pieces::default());
    let mut waiting: Vec<u8> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        waiting.extend(line.bytes.iter().filter(|byte| !byte.is_ascii_whitespace()));
        let last = index + 1 == lines.len();
        let whole = if last { waiting.len() } else { waiting.len() / 4 * 4 };
        let decoded = BASE64.decode(&waiting[..whole]).ok()?;
        waiting.drain(..whole);
        let mut parts = decoded.split(|byte| *byte == b'\n');
        pieces.add(line.number, parts.next().unwrap_or_default());
        for part in parts {
            out.extend(pieces.finish());
            pieces.add(line.number, part);
        }
    }
    out.extend(pieces.finish());
    Some(out)
}

/// A header's value with its encoded words (`=?utf-8?q?=C2=B1?=`) as they read.
pub fn words(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find("=?") {
        let (before, encoded) = rest.split_at(start);
        let Some((word, after)) = word(encoded) else { break };
        // Space between two encoded words is none of the text.
        if !before.trim().is_empty() || out.is_empty() {
            out += before;
        }
        out += &word;
        rest = after;
    }
    out + rest
}

fn word(encoded: &str) -> Option<(String, &str)> {
    let mut fields = encoded.strip_prefix("=?")?.splitn(3, '?');
    let (_charset, kind) = (fields.next()?, fields.next()?);
    let (payload, after) = fields.next()?.split_once("?=")?;
    let bytes = match kind {
        "q" | "Q" => unescaped(payload.replace('_', " ").as_bytes()),
        "b" | "B" => BASE64.decode(payload).ok()?,
        _ => return None,
    };
    Some((text(&bytes).into_owned(), after))
}
