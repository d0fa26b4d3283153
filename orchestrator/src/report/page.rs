use crate::analyse::Verdict;
use crate::text::escape;

/// What the place that text is written to can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns.
    pub width: usize,
    /// Whether verdicts are coloured.
    pub colour: bool,
}

impl Default for Look {
    fn default() -> Self {
        Self { width: 80, colour: false }
    }
}

/// A piece of a paragraph.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Span {
    Plain(String),
    Verdict(Verdict),
    /// Words in a verdict's colour.
    Coloured(String, Verdict),
}

impl From<&str> for Span {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<String> for Span {
    fn from(text: String) -> Self {
        Self::Plain(text)
    }
}

/// Lines of text. Whatever goes in is escaped here, so nothing a guest said leaves raw.
#[derive(Debug)]
pub(super) struct Page {
    look: Look,
    text: String,
}

impl Page {
    pub fn new(look: Look) -> Self {
        Self { look, text: String::new() }
    }

    pub fn finish(self) -> String {
        self.text
    }

    pub fn blank(&mut self) {
        self.text.push('\n');
    }

    /// One line as it is.
    pub fn line(&mut self, text: &str) {
        self.text.push_str(escape(text).trim_end());
        self.text.push('\n');
    }

    /// One line, cut at the right edge.
    pub fn cut(&mut self, text: &str) {
        let safe = escape(text);
        if safe.chars().count() <= self.look.width {
            return self.line(&safe);
        }
        let kept: String = safe.chars().take(self.look.width.saturating_sub(1)).collect();
        self.line(&format!("{kept}…"));
    }

    /// One line behind `lead`; what does not fit goes on below, under its own beginning. For lists where
    /// nothing may be cut.
    pub fn hanging(&mut self, lead: &str, text: &str) {
        let (lead, safe) = (escape(lead), escape(text));
        let room = self.look.width.saturating_sub(lead.chars().count()).max(20);
        let characters: Vec<char> = safe.chars().collect();
        let indent = " ".repeat(lead.chars().count());
        for (place, part) in characters.chunks(room).enumerate() {
            let part: String = part.iter().collect();
            self.line(&format!("{}{part}", if place == 0 { &lead } else { &indent }));
        }
    }

    /// A paragraph: `lead` before its first line, as many spaces before the others.
    pub fn paragraph(&mut self, lead: &str, spans: impl IntoIterator<Item = Span>) {
        let lead = escape(lead);
        let indent = lead.chars().count();
        self.text.push_str(&lead);
        let mut column = indent;
        let mut at_start = true;
        for (word, glued, verdict) in spans.into_iter().flat_map(words) {
            let length = word.chars().count();
            if glued || at_start {
                column += length;
            } else if column + 1 + length <= self.look.width {
                self.text.push(' ');
                column += 1 + length;
            } else {
                self.text.push('\n');
                self.text.push_str(&" ".repeat(indent));
                column = indent + length;
            }
            at_start = false;
            self.paint(&word, verdict);
        }
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn paint(&mut self, word: &str, verdict: Option<Verdict>) {
        let code = match verdict {
            Some(Verdict::Fails | Verdict::Regression) => "31",
            Some(Verdict::Improvement) => "32",
            Some(Verdict::Invalid | Verdict::Inconclusive) => "33",
            Some(Verdict::NoChange) | None => "",
        };
        if self.look.colour && !code.is_empty() {
            self.text.push_str(&format!("\x1b[{code}m{word}\x1b[0m"));
        } else {
            self.text.push_str(word);
        }
    }
}

/// The words of a span, escaped; each with whether it sticks to the word before it.
fn words(span: Span) -> Vec<(String, bool, Option<Verdict>)> {
    let (text, verdict) = match &span {
        Span::Plain(text) => (escape(text), None),
        Span::Verdict(verdict) => (verdict.words().to_owned(), Some(*verdict)),
        Span::Coloured(text, verdict) => (escape(text), Some(*verdict)),
    };
    let sticks = text.starts_with([',', ';', '.', ':', ')']);
    let words = text.split(' ').filter(|word| !word.is_empty()).enumerate();
    words.map(|(place, word)| (word.to_owned(), place == 0 && sticks, verdict)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(width: usize, colour: bool) -> Page {
        Page::new(Look { width, colour })
    }

    #[test]
    fn paragraphs_hang_under_their_lead() {
        let mut page = page(20, false);
        page.paragraph(
            "  base  ",
            ["one two three four".into(), Span::Verdict(Verdict::Fails), ", five".into()],
        );
        assert_eq!(page.finish(), "  base  one two\n        three four\n        fails, five\n");
    }

    #[test]
    fn what_guests_say_is_escaped_and_only_verdicts_are_coloured() {
        let mut page = page(80, true);
        page.line("a\x1b[2Jb");
        page.cut(&"\u{202e}".repeat(40));
        page.paragraph("\x07", ["x\ny".into(), Span::Verdict(Verdict::Improvement)]);
        let text = page.finish();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "a\\x1b[2Jb");
        assert_eq!(lines[1].chars().count(), 80);
        assert_eq!(lines[2], "\\x07x\\x0ay \x1b[32mimprovement\x1b[0m");
    }
}
