use serde::Serialize;

use crate::collect::mail::{Left, Line};
use crate::text::escape;

/// Lines of the input that went into no table; header lines of mails and blank lines are not told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Skipped {
    /// Text without figures: first and last lines.
    pub text: Vec<(usize, usize)>,
    /// Figures in no shape that is known: first and last lines.
    pub figures: Vec<(usize, usize)>,
    /// Parts of mails that are no text, and why.
    pub parts: Vec<(usize, usize, String)>,
}

impl Skipped {
    /// Adds a line.
    pub fn add(&mut self, line: &Line<'_>) {
        if line.is_blank() {
            return;
        }
        let ranges = if has_figures(&line.text) { &mut self.figures } else { &mut self.text };
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == line.number => *last = line.last(),
            _ => ranges.push((line.number, line.last())),
        }
    }

    /// Adds a part.
    pub fn leave(&mut self, left: &Left) {
        self.parts.push((left.first, left.last, escape(&left.why)));
    }
}

/// Whether a line looks like one of a table: at least two numbers, or one and a word.
fn has_figures(text: &str) -> bool {
    let words = text.split_whitespace().map(|word| word.trim_matches(['(', ')', '%', ',', ':']));
    let numbers = words.clone().filter(|word| super::number::number(word).is_some()).count();
    numbers >= 2 || numbers == 1 && words.count() <= 3
}
