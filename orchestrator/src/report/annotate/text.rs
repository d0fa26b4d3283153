//! Executed code for a terminal: both sides in one list, as a diff.

use super::words;
use crate::analyse::annotate::{Annotation, Instruction, Listing, Row, rows};
use crate::report::page::{Look, Page};

/// The annotation as text, with a newline at its end.
pub fn annotation_text(annotation: &Annotation, look: Look) -> String {
    let mut page = Page::new(look);
    page.line(&format!("{}: executed code", annotation.function));
    page.paragraph("", [words::what(annotation).into()]);
    page.blank();
    summary(&mut page, annotation);
    page.blank();
    for note in &annotation.notes {
        page.paragraph("note: ", [note.as_str().into()]);
    }
    if !annotation.notes.is_empty() {
        page.blank();
    }
    Code::new(annotation).write(&mut page);
    page.finish()
}

/// Calls, instructions and address of each side.
fn summary(page: &mut Page, annotation: &Annotation) {
    let width = annotation.sides.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).max(4);
    page.line(&format!(
        "  {:width$}  {:>9}  {:>12}  {:>10}",
        "side", "calls", "instructions", "per call"
    ));
    for side in &annotation.sides {
        let Some(listing) = &side.listing else {
            page.line(&format!("  {:width$}  {:>9}", side.name, "none"));
            continue;
        };
        let each = words::per_call(listing).unwrap_or_default();
        page.line(&format!(
            "  {:width$}  {:>9}  {:>12}  {each:>10}  {:x}",
            side.name,
            words::per_operation(listing, listing.calls),
            words::per_operation(listing, listing.instructions),
            listing.function.range.start,
        ));
        let lead = " ".repeat(width + 4);
        let basis = format!("{}, {}", side.release, words::basis(listing));
        page.paragraph(&lead, [basis.into()]);
    }
    if let [base, value] = &annotation.sides[..]
        && let Some(change) = words::change(base, value)
    {
        page.paragraph("  ", [change.into()]);
    }
}

/// The list of instructions.
struct Code<'a> {
    names: Vec<&'a str>,
    listings: [Option<&'a Listing>; 2],
    rows: Vec<Row<'a>>,
    /// Columns of a count and of a place.
    count: usize,
    place: usize,
}

impl<'a> Code<'a> {
    fn new(annotation: &'a Annotation) -> Self {
        let listing = |place: usize| annotation.sides.get(place).and_then(|s| s.listing.as_ref());
        let listings = [listing(0), listing(1)];
        let present = || listings.iter().flatten();
        let counts = present().flat_map(|listing| {
            listing.code.iter().map(|line| words::per_operation(listing, line.executions).len())
        });
        let names: Vec<&str> = annotation.sides.iter().map(|side| side.name.as_str()).collect();
        let headings = names.iter().map(|name| name.chars().count().min(9));
        let places =
            present().map(|listing| words::place(listing, listing.function.range.end).len());
        Self {
            count: counts.chain(headings).max().unwrap_or(0).max(5),
            place: places.max().unwrap_or(1),
            rows: rows(listings[0], listings[1]),
            names,
            listings,
        }
    }

    fn write(&self, page: &mut Page) {
        let heads: Vec<String> =
            self.names.iter().map(|name| name.chars().take(9).collect()).collect();
        if let [base, value] = &heads[..] {
            let key =
                format!("- only {base}, + only {value}, ~ the same in {value} with other operands");
            page.paragraph("", [key.into()]);
            page.line(&self.lead(' ', Some(base), Some(value), ""));
        } else {
            page.line(&self.lead(' ', heads.first().map(String::as_str), None, ""));
        }
        let mut source = [None, None];
        for row in &self.rows {
            self.source(page, row, &mut source);
            self.row(page, row);
        }
    }

    fn row(&self, page: &mut Page, row: &Row<'_>) {
        let [base_side, value_side] = self.listings;
        match row {
            Row::Gap { base, value } => {
                let gap = words::gap(&[*base, *value][..self.names.len()], &self.names);
                page.line(&format!("{}... {gap}", self.lead(' ', None, None, "")));
            }
            Row::Base(line) => {
                let mark = if self.names.len() < 2 { ' ' } else { '-' };
                self.instruction(page, mark, base_side, (Some(line), None), line);
            }
            Row::Value(line) => self.instruction(page, '+', value_side, (None, Some(line)), line),
            Row::Both { base, value, same } => {
                self.instruction(page, ' ', base_side, (Some(base), Some(value)), base);
                if !same {
                    self.instruction(page, '~', value_side, (None, None), value);
                }
            }
        }
    }

    /// One instruction; what does not fit hangs below.
    fn instruction(
        &self,
        page: &mut Page,
        mark: char,
        shown: Option<&Listing>,
        counted: (Option<&Instruction>, Option<&Instruction>),
        line: &Instruction,
    ) {
        let Some(shown) = shown else { return };
        let [base, value] = self.listings;
        let number = |listing: Option<&Listing>, line: Option<&Instruction>| {
            Some(words::per_operation(listing?, line?.executions))
        };
        let (base, value) = (number(base, counted.0), number(value, counted.1));
        let place = words::place(shown, line.address);
        let lead = self.lead(mark, base.as_deref(), value.as_deref(), &place);
        let mut text = words::code(line, shown);
        if let Some(steps) = words::steps(line) {
            text += &format!("  # {steps}");
        }
        if line.rewritten {
            text += "  # rewritten";
        }
        page.hanging(&lead, &text);
    }

    fn lead(&self, mark: char, base: Option<&str>, value: Option<&str>, place: &str) -> String {
        let (count, width) = (self.count, self.place);
        let mut lead = format!("{mark} {:>count$} ", base.unwrap_or_default());
        if self.names.len() > 1 {
            lead += &format!("{:>count$} ", value.unwrap_or_default());
        }
        lead + &format!("{place:>width$}  ")
    }

    /// Where the next lines come from, if that is known and new.
    fn source<'b>(&self, page: &mut Page, row: &Row<'b>, last: &mut [Option<&'b str>; 2]) {
        let now = match row {
            Row::Gap { .. } => return,
            Row::Base(line) => [line.source.as_deref(), None],
            Row::Value(line) => [None, line.source.as_deref()],
            Row::Both { base, value, .. } => [base.source.as_deref(), value.source.as_deref()],
        };
        let mut new: Vec<&str> = Vec::new();
        for (last, now) in last.iter_mut().zip(now) {
            if let Some(now) = now.filter(|now| *last != Some(*now)) {
                *last = Some(now);
                new.push(now);
            }
        }
        new.dedup();
        if !new.is_empty() {
            page.line(&format!("{}{}:", self.lead(' ', None, None, ""), new.join(" | ")));
        }
    }
}
