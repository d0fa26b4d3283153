use std::io::Read;

/// The longest input that is read, in bytes.
pub const MAX_BYTES: usize = 32 << 20;

/// The most lines of an input.
pub const MAX_LINES: usize = 1_000_000;

/// Of the input, this much is looked at to tell text from what is none.
const HEAD: usize = 8192;

/// A line of the input as it is, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a> {
    /// From 1.
    pub number: usize,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Why an input is not read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be read.
    #[error("failed to read {0}: {1}")]
    Read(String, #[source] std::io::Error),
    /// It is too long.
    #[error(
        "failed to read {0}: it is longer than {limit} MiB\n  hint: import a part of it, or one mail",
        limit = MAX_BYTES >> 20
    )]
    TooLong(String),
    /// It has too many lines.
    #[error(
        "failed to read {0}: it has more than {MAX_LINES} lines\n  hint: import a part of it, or one mail"
    )]
    TooManyLines(String),
    /// It is no text.
    #[error(
        "failed to read {0}: it is no text but binary data\n  hint: unpack it if it is compressed"
    )]
    Binary(String),
}

/// Reads text, at most [`MAX_BYTES`] of it; `name` is what it is called in messages.
///
/// # Errors
///
/// It cannot be read, is too long, or is no text.
pub fn read(name: &str, from: impl Read) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| InputError::Read(name.to_owned(), error))?;
    if bytes.len() > MAX_BYTES {
        return Err(InputError::TooLong(name.to_owned()));
    }
    if bytes.iter().take(HEAD).any(|byte| *byte == 0) {
        return Err(InputError::Binary(name.to_owned()));
    }
    if bytes.iter().filter(|byte| **byte == b'\n').count() > MAX_LINES {
        return Err(InputError::TooManyLines(name.to_owned()));
    }
    Ok(bytes)
}

/// The lines of an input.
pub fn raw_lines(bytes: &[u8]) -> Vec<Raw<'_>> {
    let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n');
    let plain = |line: &'_ [u8]| line.strip_suffix(b"\r").map_or(line.len(), <[u8]>::len);
    lines
        .enumerate()
        .map(|(index, line)| Raw { number: index + 1, bytes: &line[..plain(line)] })
        .collect()
}

/// The messages of a mailbox, each without its `From ` line; all of it if it is no mailbox.
pub fn messages<'r, 'a>(lines: &'r [Raw<'a>]) -> Vec<&'r [Raw<'a>]> {
    if !lines.first().is_some_and(|line| begins_message(line.bytes)) {
        return vec![lines];
    }
    let begins = |index: &usize| {
        begins_message(lines[*index].bytes) && (*index == 0 || lines[*index - 1].bytes.is_empty())
    };
    let starts: Vec<usize> = (0..lines.len()).filter(begins).collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts.iter().zip(ends).map(|(start, end)| &lines[start + 1..end]).collect()
}

/// `From name Mon Jan  1 10:00:00 2024`.
fn begins_message(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"From ") else { return false };
    let time = |bytes: &[u8]| {
        bytes.len() == 5
            && bytes[2] == b':'
            && bytes[0].is_ascii_digit()
            && bytes[4].is_ascii_digit()
    };
    rest.len() < 500 && rest.windows(5).any(time)
}
