//! Which comparison is shown before which, how many, and under which name.

use super::super::{Report, text};
use crate::analyse::{Analysis, Comparison};

/// Series whose boots are drawn one by one.
const CHARTED: usize = 16;

/// Places among the comparisons of `analysis`: those that decide before the others, worst first.
pub(super) fn worst_first(analysis: &Analysis) -> Vec<usize> {
    let mut places: Vec<usize> = (0..analysis.comparisons.len()).collect();
    let size = |c: &Comparison| c.change.map_or(0.0, f64::abs);
    places.sort_by(|one, other| {
        let [one, other] = [one, other].map(|place| &analysis.comparisons[*place]);
        let by_kind = (!one.primary, one.verdict).cmp(&(!other.primary, other.verdict));
        by_kind.then(size(other).total_cmp(&size(one)))
    });
    places
}

/// Places of the comparisons whose points [`super::Beside`] should have.
pub fn charted(analysis: &Analysis) -> Vec<usize> {
    worst_first(analysis).into_iter().take(CHARTED).collect()
}

/// The series, with its experiment and its side where there are several to choose from.
pub(super) fn full_name(report: &Report<'_>, comparison: &Comparison) -> String {
    let experiments = &report.plan.experiments;
    let series = text::series_name(comparison, experiments.len() > 1);
    match experiments.iter().all(|one| one.sides.len() == 2) {
        true => series,
        false => format!("{series}, {}", comparison.side),
    }
}
