//! Lines of a command's output, within bounds. Pure.

use kduel_protocol::MAX_LINE_BYTES;

use crate::fault::{Failure, FailureClass};

/// The most output that one command may have, in bytes.
pub const MAX_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// Takes a line of output without its newline; a failure ends the command.
pub type OnLine<'a> = &'a mut dyn FnMut(&str) -> Result<(), Failure>;

/// Cuts output into lines.
#[derive(Debug, Default)]
pub struct OutputLines {
    partial: Vec<u8>,
    total: u64,
}

impl OutputLines {
    /// Takes bytes as they come and hands over each line that they complete.
    ///
    /// # Errors
    ///
    /// [`FailureClass::OutputOversized`] or [`FailureClass::OutputMalformed`]; what `on_line` says.
    pub fn feed(&mut self, bytes: &[u8], on_line: OnLine<'_>) -> Result<(), Failure> {
        self.total += bytes.len() as u64;
        if self.total > MAX_OUTPUT_BYTES {
            return Err(oversized(&format!("more than {MAX_OUTPUT_BYTES} bytes of output")));
        }
        for part in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.partial.len() + part.len() > MAX_LINE_BYTES {
                return Err(oversized(&format!(
                    "a line of output is longer than {MAX_LINE_BYTES} bytes"
                )));
            }
            self.partial.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.partial.pop();
                self.finish(on_line)?;
            }
        }
        Ok(())
    }

    /// Hands over what stands behind the last newline.
    ///
    /// # Errors
    ///
    /// As [`OutputLines::feed`].
    pub fn end(&mut self, on_line: OnLine<'_>) -> Result<(), Failure> {
        if self.partial.is_empty() { Ok(()) } else { self.finish(on_line) }
    }

    fn finish(&mut self, on_line: OnLine<'_>) -> Result<(), Failure> {
        let line = std::mem::take(&mut self.partial);
        let text = std::str::from_utf8(&line).map_err(|error| {
            let start = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            Failure::new(FailureClass::OutputMalformed, "a line of output is no UTF-8")
                .detail(format!("byte {} of: {start}", error.valid_up_to()))
        })?;
        on_line(text)
    }
}

fn oversized(title: &str) -> Failure {
    Failure::new(FailureClass::OutputOversized, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(chunks: &[&[u8]]) -> Result<Vec<String>, Failure> {
        let mut seen = Vec::new();
        let mut on_line = |line: &str| {
            seen.push(line.to_owned());
            Ok(())
        };
        let mut lines = OutputLines::default();
        for chunk in chunks {
            lines.feed(chunk, &mut on_line)?;
        }
        lines.end(&mut on_line)?;
        Ok(seen)
    }

    #[test]
    fn lines_are_put_together_over_chunks() {
        assert_eq!(lines_of(&[b"a\nb", b"c\n\nd"]).unwrap(), ["a", "bc", "", "d"]);
    }

    #[test]
    fn bounds_hold_to_the_byte() {
        let mut longest = vec![b'x'; MAX_LINE_BYTES - 1];
        longest.push(b'\n');
        assert_eq!(lines_of(&[&longest]).unwrap()[0].len(), MAX_LINE_BYTES - 1);
        longest.insert(0, b'x');
        assert_eq!(lines_of(&[&longest]).unwrap_err().class, FailureClass::OutputOversized);
        let chunk = b"a line of thirty-two characters.\n".repeat(1 << 15);
        let much: Vec<&[u8]> = std::iter::repeat_n(chunk.as_slice(), 65).collect();
        assert_eq!(lines_of(&much).unwrap_err().class, FailureClass::OutputOversized);
    }

    #[test]
    fn what_is_no_text_is_malformed() {
        assert_eq!(lines_of(&[b"a\xff\n"]).unwrap_err().class, FailureClass::OutputMalformed);
    }

    #[test]
    fn a_failure_of_the_reader_ends_it() {
        let mut calls = 0;
        let failure = OutputLines::default()
            .feed(b"a\nb\n", &mut |_| {
                calls += 1;
                Err(Failure::new(FailureClass::WorkloadFailed, "x"))
            })
            .unwrap_err();
        assert_eq!((failure.class, calls), (FailureClass::WorkloadFailed, 1));
    }
}
