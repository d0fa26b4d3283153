use std::borrow::Cow;

/// A line as it was written before it was mailed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// Without quote marks and line ends.
    pub text: Cow<'a, str>,
    /// How often it was quoted.
    pub depth: usize,
    /// The line of the input that it begins in, from 1.
    pub number: usize,
    /// Where it goes on in a further line of the input: from which byte of `text` on, and which line.
    pub breaks: Vec<(usize, usize)>,
}

impl<'a> Line<'a> {
    /// A line that stands as it is in line `number` of the input.
    pub fn new(number: usize, text: impl Into<Cow<'a, str>>) -> Self {
        Self { text: text.into(), depth: 0, number, breaks: Vec::new() }
    }

    /// The line of the input in which byte `offset` of the text stood.
    pub fn number_at(&self, offset: usize) -> usize {
        let at = self.breaks.iter().rev().find(|(from, _)| *from <= offset);
        at.map_or(self.number, |(_, number)| *number)
    }

    /// The last line of the input that it takes.
    pub fn last(&self) -> usize {
        self.breaks.last().map_or(self.number, |(_, number)| *number)
    }

    /// Whether nothing is written in it.
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Lines that were one before they were wrapped, with a space between them.
    pub fn joined(lines: &[Line<'_>]) -> Line<'static> {
        let mut text = String::new();
        let mut breaks = Vec::new();
        for line in lines {
            if !text.is_empty() {
                text.push(' ');
                breaks.push((text.len(), line.number));
            }
            let from = text.len();
            breaks.extend(line.breaks.iter().map(|(offset, number)| (from + offset, *number)));
            text.push_str(line.text.trim_end());
        }
        let (number, depth) = lines.first().map_or((0, 0), |line| (line.number, line.depth));
        Line { text: Cow::Owned(text), depth, number, breaks }
    }

    /// The same without its first `bytes` bytes.
    pub(super) fn without(self, bytes: usize) -> Self {
        let text = match self.text {
            Cow::Borrowed(text) => Cow::Borrowed(text.get(bytes..).unwrap_or_default()),
            Cow::Owned(mut text) => {
                text.drain(..bytes.min(text.len()));
                Cow::Owned(text)
            }
        };
        let shifted = |(from, number): &(usize, usize)| (from.saturating_sub(bytes), *number);
        let breaks = self.breaks.iter().map(shifted).collect();
        Self { text, breaks, ..self }
    }
}
