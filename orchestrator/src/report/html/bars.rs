//! A table whose lines have bars to the left and the right of zero.

use super::super::markup::safe;
use super::super::profile::signed;

/// A line of a table.
#[derive(Debug)]
pub(super) struct Bar {
    /// Markup.
    pub name: String,
    /// How long the bar is, and in which direction.
    pub difference: f64,
    /// How much of it comes from calls and from the cost of each, where that is known.
    pub parts: Option<[f64; 2]>,
    /// What stands behind the difference.
    pub cells: Vec<String>,
    /// Shown only if the reader asks for all.
    pub minor: bool,
}

/// A table of bars.
#[derive(Debug)]
pub(super) struct Bars<'a> {
    /// Differs from that of every other table of the page.
    pub id: String,
    /// What a line is about.
    pub what: &'a str,
    /// Names of the cells; those that begin with `-` are left out where there is little room.
    pub columns: &'a [&'a str],
    /// In the order in which they are shown.
    pub bars: Vec<Bar>,
    /// Shown above and below, without a bar.
    pub sums: [Option<Bar>; 2],
}

impl Bars<'_> {
    /// The whole table.
    pub fn render(&self) -> String {
        let minor = self.bars.iter().filter(|bar| bar.minor).count();
        let mut html = String::new();
        if minor > 0 {
            html += &format!(
                "<label class=\"all\"><input type=\"checkbox\"> all {} lines</label>\n",
                self.bars.len()
            );
        }
        html += &format!("<table class=\"bars\" id=\"{}\">\n<thead><tr>", self.id);
        html += &format!(
            "<th scope=\"col\" class=\"t\">{}</th><th scope=\"col\" class=\"bar\">size</th>\
             <th scope=\"col\">change</th>",
            self.what
        );
        for column in self.columns {
            let (class, name) = class(column);
            html += &format!("<th scope=\"col\"{class}>{name}</th>");
        }
        html += "</tr></thead>\n";
        if let Some(sum) = &self.sums[0] {
            html += &format!("<tbody class=\"sum\">\n{}</tbody>\n", self.line(sum, ""));
        }
        html += "<tbody>\n";
        let scale = Scale::of(&self.bars);
        html.extend(self.bars.iter().map(|bar| self.line(bar, &scale.draw(bar))));
        html += "</tbody>\n";
        if let Some(sum) = self.sums[1].as_ref().filter(|_| minor > 0) {
            html += &format!("<tbody class=\"sum rest\">\n{}</tbody>\n", self.line(sum, ""));
        }
        html + "</table>\n"
    }

    fn line(&self, bar: &Bar, drawn: &str) -> String {
        let minor = if bar.minor { " class=\"minor\"" } else { "" };
        let mut html = format!(
            "<tr{minor}><td class=\"t\">{}</td><td class=\"bar\">{drawn}</td><td>{}</td>",
            bar.name,
            signed(bar.difference)
        );
        for (column, cell) in self.columns.iter().zip(&bar.cells) {
            html += &format!("<td{}>{}</td>", class(column).0, safe(cell));
        }
        html + "</tr>\n"
    }
}

fn class(column: &str) -> (&'static str, &str) {
    column.strip_prefix('-').map_or(("", column), |name| (" class=\"w\"", name))
}

/// How long the longest bars are in either direction.
struct Scale {
    less: f64,
    more: f64,
}

impl Scale {
    fn of(bars: &[Bar]) -> Self {
        let longest = |sign: f64| bars.iter().map(|bar| bar.difference * sign).fold(0.0, f64::max);
        Self { less: longest(-1.0), more: longest(1.0) }
    }

    /// In percent of the cell's width.
    fn width(&self, size: f64) -> f64 {
        let whole = self.less + self.more;
        if whole > 0.0 { 100.0 * size.abs() / whole } else { 0.0 }
    }

    fn draw(&self, bar: &Bar) -> String {
        let sign = if bar.difference < 0.0 { "l" } else { "m" };
        let zero = self.width(self.less);
        let parts = match bar.parts {
            // Parts that work against each other are no parts of the bar: what won is shown.
            Some([calls, cost]) if calls * cost < 0.0 => {
                if calls * bar.difference > 0.0 {
                    [bar.difference, 0.0]
                } else {
                    [0.0, bar.difference]
                }
            }
            Some(parts) => parts,
            None => [0.0, bar.difference],
        };
        let mut drawn = String::new();
        let mut done = 0.0;
        for (part, class) in parts.into_iter().zip(["k", "e"]) {
            let width = self.width(part);
            if width >= 0.05 {
                let left = if bar.difference < 0.0 { zero - done - width } else { zero + done };
                drawn += &format!(
                    "<i class=\"{sign}{class}\" style=\"left:{left:.2}%;width:{width:.2}%\"></i>"
                );
            }
            done += width;
        }
        drawn
    }
}
