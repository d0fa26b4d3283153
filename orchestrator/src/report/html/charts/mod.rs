//! What single comparisons are made of: boots, windows and operations.

mod changes;
mod data;
mod ecdf;
pub(super) mod frame;
mod order;
mod slope;
mod windows;

use super::super::markup::{safe, spans};
use super::super::number::quantity;
use super::super::{Report, exact, outcome, text, words};
use super::Beside;
use super::rank::charted;
use crate::analyse::{Comparison, Points};
use crate::plan::Measure;

/// Pairs that are drawn of one comparison, and windows of one boot.
const SHOWN: usize = 120;

/// What every chart of a comparison knows.
struct Asked<'a> {
    comparison: &'a Comparison,
    points: &'a Points,
    /// Names of the base and of the candidate.
    sides: [&'a str; 2],
    /// Stands before numbers of emulated guests.
    mark: &'static str,
    /// Begins every id.
    id: String,
}

impl Asked<'_> {
    fn show(&self, value: Option<f64>) -> String {
        let unit = &self.comparison.unit;
        value.map_or_else(
            || "-".to_owned(),
            |value| format!("{}{}", self.mark, quantity(value, unit)),
        )
    }
}

/// All comparisons whose points are at hand.
pub(super) fn section(report: &Report<'_>, beside: &Beside) -> String {
    let places = charted(report.analysis).into_iter();
    let places = places.filter(|place| beside.points.contains_key(place));
    let series: String = places.map(|place| one(report, beside, place)).collect();
    if series.is_empty() {
        return String::new();
    }
    let (what, all) = match report.plan.measure {
        Measure::Time => ("Boot by boot", report.analysis.comparisons.len()),
        Measure::Instructions => ("Window by window", report.analysis.comparisons.len()),
    };
    let rest = all - beside.points.len().min(all);
    let rest = match rest {
        0 => String::new(),
        rest => {
            format!("<p>{rest} of {all} comparisons, none worse than these, are not drawn</p>\n")
        }
    };
    format!("<section class=\"each\">\n<h2>{what}</h2>\n{series}{rest}</section>\n")
}

fn one(report: &Report<'_>, beside: &Beside, place: usize) -> String {
    let Some(points) = beside.points.get(&place) else { return String::new() };
    let comparison = &report.analysis.comparisons[place];
    let experiment =
        report.plan.experiments.iter().find(|one| one.name == comparison.series.experiment);
    let base = experiment.and_then(|one| one.sides.first()).map_or("base", |side| &side.name);
    let asked = Asked {
        comparison,
        points,
        sides: [base, &comparison.side],
        mark: outcome::mark(report),
        id: format!("c{place}"),
    };
    let name = text::series_name(comparison, report.plan.experiments.len() > 1);
    let sentence = match report.plan.measure {
        Measure::Time => words::sentence(comparison, outcome::mark(report)),
        Measure::Instructions => exact::sentence(comparison, report.profiles),
    };
    let charts = [
        slope::chart(&asked),
        changes::chart(&asked),
        order::chart(&asked),
        windows::chart(&asked),
        windows::spread(&asked),
        ecdf::chart(&asked),
    ];
    let figures: String = charts.into_iter().flatten().collect();
    let figures = match figures.is_empty() {
        true => "<p class=\"dim\">nothing to draw</p>\n".to_owned(),
        false => format!("<div class=\"charts\">\n{figures}</div>\n"),
    };
    let tables = data::tables(&asked);
    format!(
        "<article id=\"c{place}\">\n<h3 class=\"series\">{}: {} against {}</h3>\n<p>{}</p>\n{figures}{tables}</article>\n",
        safe(&name),
        safe(&comparison.side),
        safe(base),
        spans(sentence)
    )
}

/// A picture with its heading and what its marks mean.
fn figure(title: &str, key: &str, svg: &str) -> String {
    format!("<figure><figcaption><b>{title}</b> {key}</figcaption>\n{svg}\n</figure>\n")
}

/// The marks of both sides.
fn sides_key(asked: &Asked<'_>) -> String {
    format!(
        "<span><i class=\"k-a\"></i> {}</span> <span><i class=\"k-b\"></i> {}</span>",
        safe(asked.sides[0]),
        safe(asked.sides[1])
    )
}
