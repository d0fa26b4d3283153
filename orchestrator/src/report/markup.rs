//! Text as HTML.

use crate::analyse::Verdict;
use crate::text::escape;

use super::page::Span;

/// Text that can stand anywhere in a document, whoever it is from.
pub(super) fn safe(text: &str) -> String {
    quoted(&escape(text))
}

/// Markup that can stand as text or in an attribute, and means itself there.
pub(super) fn quoted(markup: &str) -> String {
    let mut safe = String::with_capacity(markup.len());
    for character in markup.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

/// The pieces of a paragraph, verdicts in their colours.
pub(super) fn spans(spans: Vec<Span>) -> String {
    let mut html = String::new();
    for span in spans {
        let (text, verdict) = match span {
            Span::Plain(text) => (text, None),
            Span::Verdict(verdict) => (verdict.words().to_owned(), Some(verdict)),
            Span::Coloured(text, verdict) => (text, Some(verdict)),
        };
        if !html.is_empty() && !text.starts_with([',', ';', '.', ':', ')']) {
            html.push(' ');
        }
        html += &match verdict.map(colour) {
            Some(colour) => format!("<b class=\"{colour}\">{}</b>", safe(&text)),
            None => safe(&text),
        };
    }
    html
}

pub(super) fn colour(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fails | Verdict::Regression => "worse",
        Verdict::Improvement => "better",
        Verdict::Invalid | Verdict::Inconclusive => "unsure",
        Verdict::NoChange => "same",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_guest_says_is_markup() {
        let attack = "<script>'\"&\u{1b}[2J\u{202e}";
        let safe = safe(attack);
        assert_eq!(safe, "&lt;script&gt;&#39;&quot;&amp;\\x1b[2J\\u{202e}");
        let said = spans(vec![attack.into(), Span::Coloured("<b>".into(), Verdict::Fails)]);
        assert_eq!(said, format!("{safe} <b class=\"worse\">&lt;b&gt;</b>"));
    }

    #[test]
    fn commas_stick() {
        let spans = spans(vec!["b:".into(), Span::Verdict(Verdict::NoChange), ", so".into()]);
        assert_eq!(spans, "b: <b class=\"same\">no change</b>, so");
    }
}
