use std::fmt;
use std::sync::Arc;

use crate::text;

/// Where something stands in what the user wrote. Lines and columns count from 1, in characters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Index into [`Sources`].
    pub source: usize,
    /// 0: the source as a whole.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// Characters, at least 1; never beyond the end of the line.
    pub len: usize,
}

/// One text that the user wrote.
#[derive(Debug, Clone)]
pub struct Source {
    /// As shown: `kernels.yaml`, `command line`.
    pub name: String,
    /// Its lines. The words of a command line are one line each, and their numbers are not shown.
    pub lines: Vec<Arc<str>>,
}

/// The name of the source that holds the words of the command line.
pub const COMMAND_LINE: &str = "command line";

/// One thing that is wrong, where it stands, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A lower-case fragment.
    pub message: String,
    /// The name of the source.
    pub file: String,
    /// From 1; 0 if the source as a whole is meant.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// Characters underlined.
    pub len: usize,
    /// What to do.
    pub hint: Option<String>,
    /// The line it stands in, raw. Shared, since one line may be wrong in many places.
    pub excerpt: Arc<str>,
}

impl Diagnostic {
    /// A complaint about a source as a whole.
    pub fn whole(file: &str, message: impl Into<String>) -> Self {
        Self {
            message: shortened(message.into()),
            file: file.to_owned(),
            line: 0,
            column: 0,
            len: 0,
            hint: None,
            excerpt: Arc::from(""),
        }
    }

    /// A complaint about the text at `spot`; what is missing behind the end is placed at the end.
    pub fn at(source: &Source, spot: Spot, message: impl Into<String>) -> Self {
        let excerpt = spot.line.checked_sub(1).and_then(|index| source.lines.get(index));
        let (line, column, len, excerpt) = match (excerpt, source.lines.last()) {
            (None, Some(last)) if spot.line > 0 => {
                (source.lines.len(), last.chars().count() + 1, 1, Arc::clone(last))
            }
            (excerpt, _) => {
                let excerpt = excerpt.map_or_else(|| Arc::from(""), Arc::clone);
                (spot.line, spot.column, spot.len, excerpt)
            }
        };
        Self { line, column, len, excerpt, ..Self::whole(&source.name, message) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(shortened(hint.into()));
        self
    }

    fn render(&self, paint: Paint) -> String {
        let (red, blue, off) = (paint.red(), paint.blue(), paint.off());
        let mut out = format!("{red}error{off}: {}\n", text::escape(&self.message));
        let numbered = self.line > 0 && self.file != COMMAND_LINE;
        let number = if numbered { self.line.to_string() } else { " ".to_owned() };
        let margin = " ".repeat(number.len());
        let position =
            if numbered { format!(":{}:{}", self.line, self.column) } else { String::new() };
        out += &format!("{margin}{blue}-->{off} {}{position}\n", text::escape(&self.file));
        if self.line > 0 {
            let (line, start, length) = self.window();
            out += &format!("{margin} {blue}|{off}\n{blue}{number} |{off} {line}\n");
            let carets = "^".repeat(length);
            out += &format!("{margin} {blue}|{off} {}{red}{carets}{off}\n", " ".repeat(start));
        }
        if let Some(hint) = &self.hint {
            for (index, line) in hint.lines().enumerate() {
                let word = if index == 0 { "= hint: " } else { "        " };
                out += &format!("{margin} {blue}{word}{off}{}\n", text::escape(line));
            }
        }
        out
    }

    /// The excerpt escaped and cut to a width that fits a terminal, with the start and length of its
    /// underline in characters.
    fn window(&self) -> (String, usize, usize) {
        const BEFORE: usize = 60;
        const WIDTH: usize = 100;
        let chars: Vec<char> = self.excerpt.trim_end().chars().collect();
        let start = (self.column.max(1) - 1).min(chars.len());
        let end = (start + self.len.max(1)).min(chars.len());
        let from = start.saturating_sub(BEFORE);
        let from = if chars.len() <= WIDTH { 0 } else { from };
        let to = chars.len().min(from + WIDTH);
        let escaped = |range: &[char]| text::escape(&range.iter().collect::<String>());
        let before = escaped(&chars[from..start]).chars().count();
        let marked = escaped(&chars[start..end.clamp(start, to.max(start))]).chars().count();
        let mut shown = escaped(&chars[from..to]);
        if from > 0 {
            shown.replace_range(..shown.chars().next().map_or(0, char::len_utf8), "…");
        }
        if to < chars.len() {
            shown.push('…');
        }
        (shown, before, marked.max(1))
    }
}

/// Messages quote what was written, which may be as long as a document.
fn shortened(message: String) -> String {
    const LONGEST: usize = 400;
    match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

/// Everything that is wrong with what the user wrote, in order of position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Of one complaint.
    pub fn one(diagnostic: Diagnostic) -> Self {
        Self(vec![diagnostic])
    }

    /// As shown on a terminal, with colours where `colour` says so.
    pub fn render(&self, colour: bool) -> String {
        const SHOWN: usize = 40;
        let paint = Paint(colour);
        let mut out = String::new();
        for diagnostic in self.0.iter().take(SHOWN) {
            out += &diagnostic.render(paint);
            out.push('\n');
        }
        if self.0.len() > SHOWN {
            out += &format!("… and {} not shown\n", self.0.len() - SHOWN);
        }
        out + &self.summary() + "\n"
    }

    /// `2 problems in kernels.yaml, 1 problem in command line`.
    fn summary(&self) -> String {
        let mut files: Vec<&str> = Vec::new();
        for diagnostic in &self.0 {
            if !files.contains(&diagnostic.file.as_str()) {
                files.push(&diagnostic.file);
            }
        }
        let part = |file: &&str| {
            let n = self.0.iter().filter(|diagnostic| diagnostic.file == **file).count();
            format!("{} in {}", text::count(n, "problem"), text::escape(file))
        };
        files.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn pick(self, code: &'static str) -> &'static str {
        if self.0 { code } else { "" }
    }
    fn red(self) -> &'static str {
        self.pick("\x1b[1;31m")
    }
    fn blue(self) -> &'static str {
        self.pick("\x1b[1;34m")
    }
    fn off(self) -> &'static str {
        self.pick("\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(line: &str) -> Source {
        Source { name: "kernels.yaml".to_owned(), lines: vec![Arc::from(line)] }
    }

    #[test]
    fn underlines_what_is_meant() {
        let spot = Spot { source: 0, line: 1, column: 4, len: 3 };
        let shown = Diagnostics::one(
            Diagnostic::at(&source("a: bcd"), spot, "unknown `bcd`").hint("did you mean `bcc`?"),
        );
        assert_eq!(
            shown.to_string(),
            "error: unknown `bcd`\n --> kernels.yaml:1:4\n  |\n1 | a: bcd\n  |    ^^^\n  \
             = hint: did you mean `bcc`?\n\n1 problem in kernels.yaml\n"
        );
    }

    #[test]
    fn escapes_and_keeps_the_underline_below_the_word() {
        let spot = Spot { source: 0, line: 1, column: 2, len: 1 };
        let shown = Diagnostics::one(Diagnostic::at(&source("\x1bx"), spot, "bad")).to_string();
        assert!(shown.contains("1 | \\x1bx\n  |     ^\n"), "{shown}");
    }

    #[test]
    fn colours_only_where_asked_to() {
        let found = Diagnostics::one(Diagnostic::whole("kernels.yaml", "bad"));
        assert!(found.render(true).contains("\x1b[1;31merror\x1b[0m"));
        assert!(!found.render(false).contains('\x1b'));
    }

    #[test]
    fn cuts_long_lines_around_the_underline() {
        let line = format!("{}BAD{}", "a".repeat(500), "b".repeat(500));
        let spot = Spot { source: 0, line: 1, column: 501, len: 3 };
        let shown = Diagnostics::one(Diagnostic::at(&source(&line), spot, "bad")).to_string();
        assert!(shown.lines().all(|line| line.chars().count() < 110), "{shown}");
        assert!(shown.contains("BAD") && shown.contains("^^^"));
    }
}
