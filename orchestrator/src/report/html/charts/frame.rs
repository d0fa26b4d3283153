//! Where things lie in a chart, and its axes.

use super::super::super::number::{marks, quantity};
use super::super::super::svg::{Anchor, Length, Scale, Svg};

/// As wide as a phone, so that text is as large there as anywhere.
pub(super) const SIZE: [f64; 2] = [380.0, 230.0];

pub(super) const TOP: f64 = 8.0;
pub(super) const BOTTOM: f64 = SIZE[1] - 24.0;
pub(in crate::report::html) const RIGHT: f64 = SIZE[0] - 10.0;

/// About as wide as a digit.
const DIGIT: f64 = 6.7;

/// An upright axis and the room right of it.
pub(in crate::report::html) struct Frame {
    pub svg: Svg,
    pub y: Scale,
    pub left: f64,
}

impl Frame {
    /// With an axis that has room for all `values`.
    pub fn new(id: &str, says: [&str; 2], values: impl Iterator<Item = f64>, unit: &str) -> Self {
        let y = Scale::fitting(values, (BOTTOM, TOP));
        let ticks = y.ticks(5);
        let labels = labels(&ticks, unit, y.log);
        Self::with_axis(id, says, y, ticks.into_iter().zip(labels).collect())
    }

    /// With this axis.
    pub fn with_axis(id: &str, says: [&str; 2], y: Scale, ticks: Vec<(f64, String)>) -> Self {
        let mut svg = Svg::scaled(id, SIZE, says[0], says[1]);
        let widest = ticks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
        let left = (widest as f64 * DIGIT + 13.0).clamp(30.0, 110.0);
        for (value, label) in &ticks {
            let at = y.at(*value);
            svg.line("grid", (left.into(), at), (RIGHT.into(), at));
            svg.text("tick", ((left - 6.0).into(), at + 4.0), Anchor::End, label);
        }
        Self { svg, y, left }
    }

    /// A mark below the chart.
    pub fn below(&mut self, x: f64, label: &str) {
        let half = label.chars().count() as f64 * DIGIT / 2.0;
        let (x, anchor) = match x {
            x if x + half > SIZE[0] => (SIZE[0] - 1.0, Anchor::End),
            x if x < half => (1.0, Anchor::Start),
            x => (x, Anchor::Middle),
        };
        self.svg.text("tick", (Length::Units(x), BOTTOM + 17.0), anchor, label);
    }

    /// Marks of a scale below the chart, with lines up from them.
    pub fn along(&mut self, ticks: &[(f64, String)], scale: &Scale) {
        for (value, label) in ticks {
            let at = scale.at(*value);
            self.svg.line("grid", (at.into(), TOP), (at.into(), BOTTOM));
            self.below(at, label);
        }
    }
}

/// What stands at ticks.
pub(super) fn labels(ticks: &[f64], unit: &str, log: bool) -> Vec<String> {
    if log {
        return ticks.iter().map(|value| quantity(*value, unit)).collect();
    }
    marks(ticks, unit)
}

/// A name that fits below a chart.
pub(super) fn cut(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}
