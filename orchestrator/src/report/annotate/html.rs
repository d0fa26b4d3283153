//! Executed code as a page of its own: no script, nothing from the network.

use super::words;
use crate::analyse::annotate::{AnnotatedSide, Annotation, Instruction, Listing, Row, rows};
use crate::report::markup::safe;

const STYLE: &str = include_str!("style.css");

/// An instruction executed more often than this for each call of the function is in a loop; the levels
/// of emphasis.
const LOOPS: [f64; 3] = [1.5, 6.0, 24.0];

/// The annotation as a whole HTML document.
pub fn annotation_html(annotation: &Annotation) -> String {
    let listing = |place: usize| annotation.sides.get(place).and_then(|s| s.listing.as_ref());
    let table = Table { sides: [listing(0), listing(1)], names: names(annotation) };
    let function = safe(&annotation.function);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{function}: executed code</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1><code>{function}</code></h1>\n<p>Executed code: {}.</p>\n{}{}{}</body>\n</html>\n",
        safe(&words::what(annotation)),
        summary(annotation),
        key(&table.names),
        table.render(),
    )
}

fn names(annotation: &Annotation) -> Vec<String> {
    annotation.sides.iter().map(|side| safe(&side.name)).collect()
}

fn summary(annotation: &Annotation) -> String {
    let mut html = "<table class=\"sides\">\n<thead><tr><th scope=\"col\">side</th>\
                    <th class=\"r\" scope=\"col\">calls</th><th class=\"r\" scope=\"col\">instructions</th>\
                    <th class=\"r\" scope=\"col\">per call</th><th class=\"release\" scope=\"col\">kernel</th>\
                    </tr></thead>\n<tbody>\n"
        .to_owned();
    html.extend(annotation.sides.iter().map(side));
    html += "</tbody>\n</table>\n";
    if let [base, value] = &annotation.sides[..]
        && let Some(change) = words::change(base, value)
    {
        html += &format!("<p>{}: {}.</p>\n", safe(&value.name), safe(&change));
    }
    html.extend(annotation.notes.iter().map(|note| format!("<p>Note: {}.</p>\n", safe(note))));
    html
}

fn side(side: &AnnotatedSide) -> String {
    let name = safe(&side.name);
    let release = safe(&side.release);
    let Some(listing) = &side.listing else {
        return format!(
            "<tr><th scope=\"row\">{name}</th><td class=\"r dim\" colspan=\"3\">no such function</td>\
             <td class=\"release dim\">{release}</td></tr>\n"
        );
    };
    format!(
        "<tr><th scope=\"row\">{name}</th><td class=\"r\">{}</td><td class=\"r\">{}</td>\
         <td class=\"r\">{}</td><td class=\"release dim\">{release}, at {:x}, {}</td></tr>\n",
        words::per_operation(listing, listing.calls),
        words::per_operation(listing, listing.instructions),
        words::per_call(listing).unwrap_or_default(),
        listing.function.range.start,
        words::basis(listing),
    )
}

fn key(names: &[String]) -> String {
    let loops =
        "<span class=\"w1\">often</span> <span class=\"w3\">very often</span> for each call";
    let [base, value] = names else {
        return format!(
            "<p class=\"key dim\">Executions per operation before each instruction: {loops}.</p>\n"
        );
    };
    format!(
        "<p class=\"key dim\">Executions per operation before each instruction: {loops}; \
         <b>bold</b> where the sides differ. \
         <span class=\"b\">− only {base}</span> <span class=\"v\">+ only {value}</span> \
         <span class=\"x\">other operands</span></p>\n"
    )
}

/// The list of instructions, the sides beside each other.
struct Table<'a> {
    sides: [Option<&'a Listing>; 2],
    names: Vec<String>,
}

impl Table<'_> {
    fn render(&self) -> String {
        let mut html = format!(
            "<table class=\"list{}\">\n<colgroup>",
            if self.is_single() { " one" } else { "" }
        );
        html += &"<col class=\"n\"><col>".repeat(self.names.len());
        html += "</colgroup>\n<thead><tr>";
        for (name, class) in self.names.iter().zip(["a", "c"]) {
            html += &format!(
                "<th class=\"n {class}\" scope=\"col\">{name}</th><th class=\"{class} t\" scope=\"col\">code</th>"
            );
        }
        html += "</tr></thead>\n<tbody>\n";
        let mut source = [None, None];
        for row in &rows(self.sides[0], self.sides[1]) {
            html += &self.source(row, &mut source);
            html += &self.row(row);
        }
        html + "</tbody>\n</table>\n"
    }

    fn is_single(&self) -> bool {
        self.names.len() < 2
    }

    fn row(&self, row: &Row<'_>) -> String {
        let (class, base, value) = match *row {
            Row::Gap { base, value } => {
                let names: Vec<&str> = self.names.iter().map(String::as_str).collect();
                let base = base.map(|bytes| words::gap(&[Some(bytes), None], &names));
                let value = value.map(|bytes| words::gap(&[None, Some(bytes)], &names));
                return self.remark("g", &[base.unwrap_or_default(), value.unwrap_or_default()]);
            }
            Row::Base(line) if self.is_single() => ("e", Some(line), None),
            Row::Base(line) => ("b", Some(line), None),
            Row::Value(line) => ("v", None, Some(line)),
            Row::Both { base, value, same: true } => ("e", Some(base), Some(value)),
            Row::Both { base, value, same: false } => ("x", Some(base), Some(value)),
        };
        let differ = match (self.count(0, base), self.count(1, value)) {
            (Some(base), Some(value)) => base != value,
            _ => false,
        };
        let mut html = format!("<tr class=\"{class}\">{}", self.cells(0, base, false));
        if !self.is_single() {
            html += &self.cells(1, value, differ);
        }
        html + "</tr>\n"
    }

    fn count(&self, side: usize, line: Option<&Instruction>) -> Option<f64> {
        Some(self.sides[side]?.per_operation(line?.executions))
    }

    /// Count and code of one side.
    fn cells(&self, side: usize, line: Option<&Instruction>, bold: bool) -> String {
        let class = ["a", "c"][side];
        let (Some(listing), Some(line)) = (self.sides[side], line) else {
            return format!("<td class=\"n {class}\"></td><td class=\"{class} t\"></td>");
        };
        let place = words::place(listing, line.address);
        let bold = if bold { " d" } else { "" };
        // The first of several at one address is where links go.
        let first = listing.code.iter().find(|other| other.address == line.address);
        let id = if first.is_some_and(|first| std::ptr::eq(first, line)) {
            format!(" id=\"{}\"", anchor(side, &place))
        } else {
            String::new()
        };
        let mut code = safe(&line.text);
        if let Some(target) = line.target {
            code += &format!(" {}", link(side, listing, target));
        }
        let mut remarks: Vec<String> = words::steps(line).into_iter().collect();
        if line.rewritten {
            remarks.push("rewritten".to_owned());
        }
        if !remarks.is_empty() {
            code += &format!(" <span class=\"dim\"># {}</span>", safe(&remarks.join(", ")));
        }
        format!(
            "<td class=\"n {class}{bold}{}\"{id} title=\"{} executions\">{}</td>\
             <td class=\"{class} t\"><span class=\"o\">{place}</span>{code}</td>",
            heat(listing, line),
            line.executions,
            words::per_operation(listing, line.executions),
        )
    }

    /// A row that is no instruction.
    fn remark(&self, kind: &str, text: &[String; 2]) -> String {
        let cell = |class: &str, text: &String| {
            format!("<td class=\"n {class}\"></td><td class=\"{class} t\">{text}</td>")
        };
        let sides = text.iter().zip(["a", "c"]).take(self.names.len());
        let cells: String = sides.map(|(text, class)| cell(class, text)).collect();
        format!("<tr class=\"{kind}\">{cells}</tr>\n")
    }

    fn source<'b>(&self, row: &Row<'b>, last: &mut [Option<&'b str>; 2]) -> String {
        let now = match row {
            Row::Gap { .. } => return String::new(),
            Row::Base(line) => [line.source.as_deref(), None],
            Row::Value(line) => [None, line.source.as_deref()],
            Row::Both { base, value, .. } => [base.source.as_deref(), value.source.as_deref()],
        };
        let mut text = [String::new(), String::new()];
        for ((last, now), text) in last.iter_mut().zip(now).zip(&mut text) {
            if let Some(now) = now.filter(|now| *last != Some(*now)) {
                *last = Some(now);
                *text = safe(now);
            }
        }
        if text.iter().all(String::is_empty) { String::new() } else { self.remark("s", &text) }
    }
}

fn anchor(side: usize, place: &str) -> String {
    format!("{}{}", ["a", "c"][side], place.trim_start_matches('+'))
}

/// The place a branch goes to; a link if it was executed there.
fn link(side: usize, listing: &Listing, target: u64) -> String {
    let place = words::place(listing, target);
    if listing.code.iter().any(|line| line.address == target) {
        format!("<a href=\"#{}\">{place}</a>", anchor(side, &place))
    } else {
        place
    }
}

/// How often it is executed for each call of the function.
fn heat(listing: &Listing, line: &Instruction) -> &'static str {
    let calls = listing.per_operation(listing.calls.max(1));
    let each = listing.per_operation(line.executions) / calls;
    let level = LOOPS.iter().filter(|from| each > **from).count();
    ["", " w1", " w2", " w3"][level]
}
