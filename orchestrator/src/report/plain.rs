//! Plain ASCII lines of a bounded width, for mails and commit messages.

use crate::text::escape;

/// Escaped as everywhere, and what is not ASCII too: `\u{b1}`.
pub(super) fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Where a mail has this word, the regression tracker takes it for a command.
    for c in escape(text).replace("#regzbot", "\\x23regzbot").chars() {
        if c.is_ascii() {
            plain.push(c);
        } else {
            plain.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        }
    }
    plain
}

/// At most `width` characters of ASCII; what is cut off is shown as dots.
pub(super) fn clipped(text: &str, width: usize) -> String {
    let plain = ascii(text);
    if plain.len() <= width {
        return plain;
    }
    let kept: String = plain.chars().take(width.saturating_sub(3)).collect();
    format!("{}...", kept.trim_end())
}

/// Breaks text into lines of at most `width` characters, at blanks where there are any.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in ascii(text).split(' ').filter(|word| !word.is_empty()) {
        let letters: Vec<char> = word.chars().collect();
        for part in letters.chunks(width.max(1)) {
            let part: String = part.iter().collect();
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = part,
                Some(line) if line.len() + 1 + part.len() <= width => *line += &format!(" {part}"),
                _ => lines.push(part),
            }
        }
    }
    lines
}

/// Lines of ASCII, none longer than the width.
#[derive(Debug)]
pub(super) struct Plain {
    width: usize,
    lines: Vec<String>,
}

impl Plain {
    pub fn new(width: usize) -> Self {
        Self { width, lines: Vec::new() }
    }

    pub fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// One line, cut where it is too long.
    pub fn line(&mut self, text: &str) {
        self.lines.push(clipped(text, self.width).trim_end().to_owned());
    }

    /// `lead` before the first line, as many blanks before the others.
    pub fn paragraph(&mut self, lead: &str, text: &str) {
        let lead = clipped(lead, self.width / 2);
        let indent = " ".repeat(lead.len());
        for (place, line) in wrapped(text, self.width - lead.len()).into_iter().enumerate() {
            let lead = if place == 0 { &lead } else { &indent };
            self.lines.push(format!("{lead}{line}").trim_end().to_owned());
        }
    }

    pub fn finish(self) -> String {
        self.lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// A command for a shell, on lines of at most `width` characters that are one command together: in plain
/// ASCII, whatever its words are made of. The lines after the first are not indented where a word goes on.
pub(super) fn command_lines(command: &[String], width: usize) -> Vec<String> {
    let room = width.saturating_sub(4).max(16);
    let mut lines = vec![String::new()];
    for word in command {
        for (place, piece) in pieces(word, room).into_iter().enumerate() {
            // What begins a line goes on with the word before it, or stands after a blank.
            let (glue, indent) = if place == 0 { (" ", "  ") } else { ("", "") };
            match lines.last_mut() {
                Some(line) if line.is_empty() => *line = piece,
                Some(line) if place == 0 && line.len() + 1 + piece.len() <= width - 2 => {
                    *line += &format!(" {piece}");
                }
                Some(line) => {
                    *line += &format!("{glue}\\");
                    lines.push(format!("{indent}{piece}"));
                }
                None => {}
            }
        }
    }
    lines
}

/// A word as a shell reads it, in parts of at most `room` characters that stick together.
fn pieces(word: &str, room: usize) -> Vec<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%^".contains(c);
    let printable = |c: char| c == ' ' || c.is_ascii_graphic();
    let (open, close) = match word {
        "" => return vec!["''".to_owned()],
        word if word.chars().all(plain) => ("", ""),
        word if word.chars().all(printable) => ("'", "'"),
        _ => ("$'", "'"),
    };
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for c in word.chars() {
        let shown = in_quotes(c, open);
        if !piece.is_empty() && open.len() + piece.len() + shown.len() + close.len() > room {
            pieces.push(format!("{open}{piece}{close}"));
            piece.clear();
        }
        piece.push_str(&shown);
    }
    pieces.push(format!("{open}{piece}{close}"));
    pieces
}

fn in_quotes(c: char, open: &str) -> String {
    let mut bytes = [0; 4];
    match (open, c) {
        ("'", '\'') => "'\\''".to_owned(),
        ("$'", '\'' | '\\') => format!("\\{c}"),
        ("$'", c) if c != ' ' && !c.is_ascii_graphic() => {
            // Octal has at most three digits, so that a digit behind it stays one.
            c.encode_utf8(&mut bytes).bytes().map(|byte| format!("\\{byte:03o}")).collect()
        }
        _ => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_ascii_leaves() {
        assert_eq!(ascii("a\u{1b}[2J \u{b1} \u{202e}"), "a\\x1b[2J \\u{b1} \\u{202e}");
        assert_eq!(clipped("0123456789", 8), "01234...");
        assert_eq!(wrapped("aaaa bb cccccccccc", 5), ["aaaa", "bb", "ccccc", "ccccc"]);
        let mut page = Plain::new(12);
        page.paragraph("- ", "one two three");
        assert_eq!(page.finish(), "- one two\n  three\n");
    }

    /// A shell has to read the words that went in.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a shell is the judge")]
    fn a_shell_reads_the_command_that_was_given() {
        let long = "x".repeat(200);
        let quoted = "it's a \"$HOME\" `word` with blanks ".repeat(6);
        let odd = "a\nb\t\u{e9}1\u{1b}[2J\\' ".repeat(9);
        let words = ["printf", "<%s>", "", "plain", "#not", "~", &long, &quoted, &odd, "*", "end"];
        for width in [24, 72] {
            let lines = command_lines(&words.map(String::from), width);
            assert!(lines.iter().all(|line| line.is_ascii() && line.len() <= width), "{lines:#?}");
            let output =
                std::process::Command::new("bash").args(["-c", &lines.join("\n")]).output();
            let expected: String = words[2..].iter().map(|word| format!("<{word}>")).collect();
            assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap(), expected, "{lines:#?}");
        }
    }
}
