//! Charts as SVG. What is drawn has classes and no colours: the page it stands in decides on these.

mod scale;

pub(super) use scale::Scale;

use std::fmt;

use super::markup::safe;

/// A place or a size: user units, or a part of the width of a picture that has no fixed one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Length {
    Units(f64),
    Percent(f64),
}

impl From<f64> for Length {
    fn from(units: f64) -> Self {
        Self::Units(units)
    }
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units(units) => f.write_str(&decimal(*units, 1)),
            Self::Percent(percent) => write!(f, "{}%", decimal(*percent, 2)),
        }
    }
}

/// Every number of a picture is written by this: so many decimals, without the zeros at their end.
fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", if value.is_finite() { value } else { 0.0 });
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if matches!(text, "-0" | "") { "0".to_owned() } else { text.to_owned() }
}

/// Where text lies to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
    /// All of it up to the body.
    head: String,
}

impl Svg {
    /// A picture of `size`, shown as large as its place is wide. `id` is no other's on the page.
    pub fn scaled(id: &str, size: [f64; 2], title: &str, description: &str) -> Self {
        let [width, height] = size.map(Length::Units);
        let frame = format!("class=\"chart\" viewBox=\"0 0 {width} {height}\"");
        Self::new(id, &frame, title, description)
    }

    /// A picture as wide as its place, so that text in it keeps its size; widths in it are in percent.
    pub fn wide(id: &str, height: f64, title: &str, description: &str) -> Self {
        let frame = format!("class=\"strip\" width=\"100%\" height=\"{}\"", Length::Units(height));
        Self::new(id, &frame, title, description)
    }

    fn new(id: &str, frame: &str, title: &str, description: &str) -> Self {
        let (title, description) = (safe(title), safe(description));
        let mut head = format!("<svg id=\"{id}\" {frame} role=\"img\" aria-labelledby=\"{id}-t");
        let described = !description.is_empty();
        head += &if described { format!(" {id}-d\">") } else { "\">".to_owned() };
        head += &format!("<title id=\"{id}-t\">{title}</title>");
        if described {
            head += &format!("<desc id=\"{id}-d\">{description}</desc>");
        }
        Self { head, body: "\n".to_owned() }
    }

    /// A line from one place to another.
    pub fn line(&mut self, class: &str, from: (Length, f64), to: (Length, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let [y1, y2] = [y1, y2].map(Length::Units);
        self.body +=
            &format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n");
    }

    /// A rectangle by its upper left corner and its size.
    pub fn rect(&mut self, class: &str, corner: (Length, f64), size: (Length, f64)) {
        let [y, height] = [corner.1, size.1].map(Length::Units);
        let (x, width) = (corner.0, size.0);
        self.body += &format!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n"
        );
    }

    /// A dot; what it says is shown to who points at it.
    pub fn dot(&mut self, class: &str, at: (Length, f64), radius: f64, says: &str) {
        let (x, y, radius) = (at.0, Length::Units(at.1), Length::Units(radius));
        self.body += &match says {
            "" => format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"),
            says => format!(
                "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{}</title></circle>\n",
                safe(says)
            ),
        };
    }

    /// A closed or open shape around a place, by the offsets of its corners; what it says as with dots.
    pub fn shape(
        &mut self,
        class: &str,
        at: (f64, f64),
        corners: &[(f64, f64)],
        closed: bool,
        says: &str,
    ) {
        let points: Vec<(f64, f64)> = corners.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
        let end = if closed { "z" } else { "" };
        let title = match says {
            "" => String::new(),
            says => format!("<title>{}</title>", safe(says)),
        };
        self.body +=
            &format!("<path class=\"{class}\" d=\"{}{end}\">{title}</path>\n", path(&points));
    }

    /// A line through all points.
    pub fn through(&mut self, class: &str, points: &[(f64, f64)]) {
        if !points.is_empty() {
            self.body += &format!("<path class=\"{class}\" d=\"{}\"/>\n", path(points));
        }
    }

    /// A line that goes right, then up or down, from point to point.
    pub fn stairs(&mut self, class: &str, points: &[(f64, f64)]) {
        let Some(((x, y), rest)) = points.split_first() else { return };
        let mut d = format!("M{} {}", Length::Units(*x), Length::Units(*y));
        for (x, y) in rest {
            d += &format!("H{}V{}", Length::Units(*x), Length::Units(*y));
        }
        self.body += &format!("<path class=\"{class}\" d=\"{d}\"/>\n");
    }

    /// A line of text.
    pub fn text(&mut self, class: &str, at: (Length, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y) = (at.0, Length::Units(at.1));
        self.body +=
            &format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}</text>\n", safe(text));
    }

    /// The whole picture.
    pub fn finish(self) -> String {
        format!("{}{}</svg>", self.head, self.body)
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        let command = if place == 0 { "M" } else { "L" };
        d += &format!("{command}{} {}", Length::Units(*x), Length::Units(*y));
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_always_numbers() {
        let shown = [1.0, -0.04, 0.05, 12.34, 100.0, f64::NAN, f64::INFINITY, -2.5]
            .map(|value| Length::Units(value).to_string());
        assert_eq!(shown, ["1", "0", "0.1", "12.3", "100", "0", "0", "-2.5"]);
        assert_eq!(Length::Percent(33.333).to_string(), "33.33%");
    }

    #[test]
    fn a_picture_says_what_it_is_and_text_in_it_stays_text() {
        let mut svg = Svg::scaled("c1", [380.0, 250.0], "<a>", "b & c\u{1b}[2J");
        svg.text("t", (Length::Units(1.0), 2.0), Anchor::End, "</svg><script>");
        svg.dot("d", (Length::Percent(50.0), 3.0), 4.0, "\"q\"");
        svg.stairs("s", &[(0.0, 1.0), (2.0, 3.0)]);
        assert_eq!(
            svg.finish(),
            "<svg id=\"c1\" class=\"chart\" viewBox=\"0 0 380 250\" role=\"img\" \
             aria-labelledby=\"c1-t c1-d\"><title id=\"c1-t\">&lt;a&gt;</title>\
             <desc id=\"c1-d\">b &amp; c\\x1b[2J</desc>\n\
             <text class=\"t\" x=\"1\" y=\"2\" text-anchor=\"end\">&lt;/svg&gt;&lt;script&gt;</text>\n\
             <circle class=\"d\" cx=\"50%\" cy=\"3\" r=\"4\"><title>&quot;q&quot;</title></circle>\n\
             <path class=\"s\" d=\"M0 1H2V3\"/>\n</svg>"
        );
    }
}
