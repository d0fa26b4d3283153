//! The windows of exact runs, one after the other.

use super::frame::{Frame, RIGHT};
use super::{Asked, SHOWN, figure, sides_key};
use crate::report::svg::Scale;
use crate::text::count;

/// Boots of one side that are drawn, each with another layout of memory.
const SEEDS: usize = 12;

/// Windows that get a dot each.
const DOTS: usize = 40;

/// None where no window was counted.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let sides = asked.points.windows.each_ref();
    let shown = sides.map(|seeds| &seeds[..seeds.len().min(SEEDS)]);
    let all = || shown.iter().flat_map(|seeds| seeds.iter());
    let longest = all().map(Vec::len).max()?;
    let description = format!(
        "{} of {} and {} of {}",
        count(sides[0].iter().map(Vec::len).sum(), "window"),
        asked.sides[0],
        count(sides[1].iter().map(Vec::len).sum(), "window"),
        asked.sides[1]
    );
    let metric = &asked.comparison.series.metric;
    let title = format!("{metric} of each window, per operation");
    let values = all().flat_map(|windows| thinned(windows)).map(|(_, value)| value);
    let id = format!("{}-windows", asked.id);
    let mut frame = Frame::new(&id, [&title, &description], values, &asked.comparison.unit);
    let x = Scale::even((0.5, longest as f64 + 0.5), (frame.left + 6.0, RIGHT));
    for tick in x.ticks(6).into_iter().filter(|tick| *tick >= 1.0 && tick.fract() == 0.0) {
        frame.below(x.at(tick), &tick.to_string());
    }
    for (class, seeds) in ["a", "b"].into_iter().zip(shown) {
        for windows in seeds {
            let points: Vec<(f64, f64)> = thinned(windows)
                .into_iter()
                .map(|(place, value)| (x.at(place as f64 + 1.0), frame.y.at(value)))
                .collect();
            frame.svg.through(&format!("line {class}"), &points);
            for (x, y) in points.iter().take(if points.len() <= DOTS { DOTS } else { 0 }) {
                frame.svg.dot(class, ((*x).into(), *y), if class == "a" { 4.0 } else { 2.6 }, "");
            }
        }
    }
    let seeds = shown.iter().map(|seeds| seeds.len()).max().unwrap_or(0);
    let seeds =
        if seeds > 1 { format!(", a line for each of {seeds} seeds") } else { String::new() };
    let key = format!("{}{seeds}", sides_key(asked));
    Some(figure(&format!("windows, {}", metric_words(metric)), &key, &frame.svg.finish()))
}

fn metric_words(metric: &str) -> String {
    format!("{} per operation", crate::report::markup::safe(metric))
}

/// Every so many windows where there are many, the last among them.
fn thinned(windows: &[f64]) -> Vec<(usize, f64)> {
    let every = windows.len().div_ceil(SHOWN).max(1);
    let last = windows.len().saturating_sub(1);
    let shown = |place: &usize| (last - place).is_multiple_of(every);
    (0..windows.len()).filter(shown).map(|place| (place, windows[place])).collect()
}
