//! Every comparison on one axis: how much it changed, how sure that is, and how much would matter.

use super::super::markup::{colour, safe};
use super::super::number::{interval, margin, percent, quantity, signed_percent, tick};
use super::super::svg::{Anchor, Length, Scale, Svg};
use super::super::{Report, exact, outcome};
use super::Beside;
use super::cards::linked;
use super::rank::{full_name, worst_first};
use crate::analyse::Comparison;
use crate::plan::Measure;
use crate::text::count;

/// Rows before the rest is left to other formats.
const ROWS: usize = 150;

const HEIGHT: f64 = 26.0;
const MIDDLE: f64 = HEIGHT / 2.0;

/// A cell beside the picture.
struct Column {
    name: &'static str,
    /// Where there is little room it is left out: `m` on phones, `w` on small screens as well.
    class: &'static str,
    cell: fn(&Report<'_>, &Comparison) -> String,
}

const CHANGE: Column = Column { name: "change", class: "", cell: change };
const INTERVAL: Column = Column { name: "interval, %", class: "m", cell: ends };
const BASE: Column = Column { name: "base", class: "w", cell: |r, c| value(r, c, c.base) };
const VALUE: Column = Column { name: "value", class: "w", cell: |r, c| value(r, c, c.value) };
const MARGIN: Column = Column { name: "margin", class: "w", cell: |_, c| rounded(c.margin) };
const PAIRS: Column = Column { name: "pairs", class: "w", cell: |_, c| pairs(c) };
const STEAL: Column = Column { name: "steal", class: "w", cell: |_, c| steal(c) };
const VERDICT: Column = Column { name: "verdict", class: "v", cell: verdict };

/// Those that this report has something for.
fn columns(report: &Report<'_>) -> Vec<Column> {
    let has_interval = report.analysis.comparisons.iter().any(|c| c.low.is_some());
    match report.plan.measure {
        Measure::Instructions if !has_interval => vec![CHANGE, BASE, VALUE, MARGIN, VERDICT],
        Measure::Time if report.analysis.comparisons.iter().any(|c| !steal(c).is_empty()) => {
            vec![CHANGE, INTERVAL, BASE, VALUE, MARGIN, PAIRS, STEAL, VERDICT]
        }
        _ => vec![CHANGE, INTERVAL, BASE, VALUE, MARGIN, PAIRS, VERDICT],
    }
}

/// A table, one line for each comparison, worst first.
pub(super) fn section(report: &Report<'_>, beside: &Beside) -> String {
    let all = &report.analysis.comparisons;
    if all.is_empty() {
        return String::new();
    }
    let mut places = worst_first(report.analysis);
    let rest = places.split_off(places.len().min(ROWS)).len();
    let axis = Axis::of(places.iter().map(|place| &all[*place]));
    let columns = columns(report);
    let row = |place: &usize| row(report, beside, &axis, &columns, *place);
    let rows: String = places.iter().map(row).collect();
    let heading = |Column { name, class, .. }: &Column| {
        format!("<th scope=\"col\" class=\"{class}\">{name}</th>").replace(" class=\"\"", "")
    };
    let headings: String = columns.iter().map(heading).collect();
    let rest = match rest {
        0 => String::new(),
        rest => format!(
            "<p>{} not shown, none worse than these; --format csv has all</p>\n",
            count(rest, "more comparison")
        ),
    };
    format!(
        "<section>\n<h2>All series</h2>\n{}<table class=\"forest\">\n<thead><tr><th scope=\"col\" class=\"t\">series</th>\
         <th scope=\"col\" class=\"plot\">{}</th>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n{rest}</section>\n",
        key(report, axis.log),
        axis.picture()
    )
}

fn key(report: &Report<'_>, log: bool) -> String {
    let exact = report.analysis.comparisons.iter().any(|c| c.exact.is_some());
    let interval = report.analysis.comparisons.iter().any(|c| c.low.is_some());
    let mut html = "<p class=\"key dim\"><span><i class=\"k-dot\"></i> change, hollow where it decides nothing</span> \
                    <span><i class=\"k-band\"></i> margin: less does not matter</span>"
        .to_owned();
    if interval {
        html += " <span><i class=\"k-ci\"></i> interval</span>";
    }
    if exact {
        html +=
            " <span><i class=\"k-spread\"></i> how far the candidate's windows lie apart</span>";
    }
    if log {
        html += " <span>equal ratios are equally far</span>";
    }
    html + "</p>\n"
}

fn row(
    report: &Report<'_>,
    beside: &Beside,
    axis: &Axis,
    columns: &[Column],
    place: usize,
) -> String {
    let comparison = &report.analysis.comparisons[place];
    let name = full_name(report, comparison);
    let rank = if comparison.primary { "" } else { " <small>secondary</small>" };
    let cell = |column: &Column| {
        let colour = if column.class == "v" { colour(comparison.verdict) } else { "" };
        let class = format!(" class=\"{} {colour}\"", column.class).replace(" \"", "\"");
        let class = if class == " class=\"\"" { "" } else { &class };
        format!("<td{class}>{}</td>", safe(&(column.cell)(report, comparison)))
    };
    format!(
        "<tr><th scope=\"row\" class=\"t\">{}{rank}</th><td class=\"plot\">{}</td>{}</tr>\n",
        linked(report, beside, place, &name),
        axis.draw(comparison, &format!("r{place}"), &name),
        columns.iter().map(cell).collect::<String>()
    )
}

fn none() -> String {
    "-".to_owned()
}

fn change(report: &Report<'_>, comparison: &Comparison) -> String {
    let mark = outcome::mark(report);
    comparison.change.map_or_else(none, |change| format!("{mark}{}", signed_percent(change)))
}

fn ends(_: &Report<'_>, comparison: &Comparison) -> String {
    let ends = comparison.low.zip(comparison.high);
    ends.map_or_else(none, |(low, high)| interval(low, high))
}

fn value(report: &Report<'_>, comparison: &Comparison, value: Option<f64>) -> String {
    let mark = outcome::mark(report);
    value.map_or_else(none, |value| format!("{mark}{}", quantity(value, &comparison.unit)))
}

fn rounded(part: f64) -> String {
    margin((part * 1e4).round() / 1e4)
}

fn pairs(comparison: &Comparison) -> String {
    match comparison.dropped {
        0 => comparison.pairs.to_string(),
        dropped => format!("{} of {}", comparison.pairs, comparison.pairs + dropped),
    }
}

/// What the host took of the vCPUs' time: from the side that it took more from.
fn steal(comparison: &Comparison) -> String {
    let of_both = comparison.timed.iter().flat_map(|timed| [timed.steal_base, timed.steal]);
    of_both.flatten().reduce(f64::max).map_or_else(String::new, percent)
}

fn verdict(report: &Report<'_>, comparison: &Comparison) -> String {
    match comparison.exact {
        Some(_) => exact::word_of(comparison, report.profiles),
        None => comparison.verdict.words().to_owned(),
    }
}

/// Changes along the width, in percent of it.
struct Axis {
    scale: Scale,
    log: bool,
}

/// Changes that may be marked where equal ratios are equally far, finest first.
const LOG_TICKS: [&[f64]; 5] = [
    &[-0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0],
    &[-0.9, -0.75, -0.5, 0.0, 1.0, 3.0, 9.0],
    &[-0.99, -0.9, -0.5, 0.0, 1.0, 9.0, 99.0],
    &[-0.999, -0.99, -0.9, 0.0, 9.0, 99.0, 999.0],
    &[-0.999, 0.0, 999.0, 999_999.0],
];

/// Intervals may reach so many times further than any change or margin, then they are cut.
const REACH: f64 = 2.5;

impl Axis {
    fn of<'a>(comparisons: impl Iterator<Item = &'a Comparison> + Clone) -> Self {
        let points =
            comparisons.clone().flat_map(|c| [c.change.unwrap_or(0.0), c.margin, -c.margin]);
        let wide = |change: f64| !(-0.5..=1.0).contains(&change);
        let log = points.clone().any(wide);
        let place = |change: f64| transformed(change, log);
        let reach = points.clone().map(|change| place(change).abs()).fold(0.0, f64::max) * REACH;
        let ends = comparisons.flat_map(|c| [c.low, c.high]).flatten();
        let ends = ends.map(|end| place(end).clamp(-reach, reach));
        let (low, high) = points
            .map(place)
            .chain(ends)
            .fold((0.0, 0.0), |(low, high), place| (f64::min(low, place), f64::max(high, place)));
        let room = (high - low) * 0.04;
        Self { scale: Scale::even((low - room, high + room), (0.0, 100.0)), log }
    }

    fn at(&self, change: f64) -> f64 {
        self.scale.at(transformed(change, self.log))
    }

    fn is_beyond(&self, change: f64) -> bool {
        let place = self.at(change);
        place <= 0.0 || place >= 100.0
    }

    /// Round changes, ascending.
    fn ticks(&self) -> Vec<f64> {
        if !self.log {
            return self.scale.ticks(5);
        }
        let within = |changes: &&[f64]| -> Vec<f64> {
            changes.iter().copied().filter(|change| !self.is_beyond(*change)).collect()
        };
        let has_room = |changes: &Vec<f64>| {
            changes.windows(2).all(|pair| self.at(pair[1]) - self.at(pair[0]) > 14.0)
        };
        LOG_TICKS.iter().map(within).find(has_room).unwrap_or_else(|| vec![0.0])
    }

    fn picture(&self) -> String {
        let mut svg = Svg::wide("axis", 20.0, "change of the candidate against the base", "");
        for change in self.ticks() {
            let place = self.at(change);
            let anchor = match place {
                place if place < 6.0 => Anchor::Start,
                place if place > 94.0 => Anchor::End,
                _ => Anchor::Middle,
            };
            svg.text("tick", (Length::Percent(place), 14.0), anchor, &tick(change));
        }
        svg.finish()
    }

    fn draw(&self, comparison: &Comparison, id: &str, name: &str) -> String {
        let said = comparison.change.map_or_else(|| "no estimate".to_owned(), signed_percent);
        let ends = comparison.low.zip(comparison.high);
        let range = ends.map(|(low, high)| format!(" {}", interval(low, high))).unwrap_or_default();
        let mut svg = Svg::wide(id, HEIGHT, &format!("{name}: {said}{range}"), "");
        let band = [-comparison.margin, comparison.margin].map(|change| self.at(change));
        let across = |at: f64| ((Length::Percent(at), 0.0), (Length::Percent(at), HEIGHT));
        let width = Length::Percent(band[1] - band[0]);
        svg.rect("band", (Length::Percent(band[0]), 0.0), (width, HEIGHT));
        for change in self.ticks().into_iter().filter(|change| *change != 0.0) {
            let (from, to) = across(self.at(change));
            svg.line("grid", from, to);
        }
        let (from, to) = across(self.at(0.0));
        svg.line("zero", from, to);
        let colour = colour(comparison.verdict);
        if let Some((low, high)) = ends {
            self.whisker(&mut svg, &format!("ci {colour}"), low, high);
        }
        if let (Some(change), Some(exact)) = (comparison.change, &comparison.exact) {
            let half = (1.0 + change) * exact.spread[1] / 2.0;
            self.whisker(&mut svg, "spread", change - half, change + half);
        }
        if let Some(change) = comparison.change {
            let kind = if comparison.primary { "" } else { " hollow" };
            let at = (Length::Percent(self.at(change)), MIDDLE);
            svg.dot(&format!("dot {colour}{kind}"), at, 4.5, "");
        }
        svg.finish()
    }

    /// A line with an end at either side, or an arrow where it goes on.
    fn whisker(&self, svg: &mut Svg, class: &str, low: f64, high: f64) {
        let at = |change: f64| Length::Percent(self.at(change));
        svg.line(class, (at(low), MIDDLE), (at(high), MIDDLE));
        for (end, arrow, anchor) in
            [(low, "\u{25c2}", Anchor::Start), (high, "\u{25b8}", Anchor::End)]
        {
            if self.is_beyond(end) {
                svg.text(&format!("more {class}"), (at(end), MIDDLE + 4.5), anchor, arrow);
            } else {
                svg.line(class, (at(end), MIDDLE - 4.0), (at(end), MIDDLE + 4.0));
            }
        }
    }
}

/// What is evenly spread along the axis.
fn transformed(change: f64, log: bool) -> f64 {
    if log { change.max(-0.9999).ln_1p() } else { change }
}
