//! The windows of exact runs, one after the other.

use super::frame::{BOTTOM, Frame, RIGHT, TOP};
use super::{Asked, SHOWN, figure, sides_key};
use crate::report::markup::safe;
use crate::report::number::tick;
use crate::report::svg::Scale;
use crate::text::count;

/// Boots of one side that are drawn, each with another layout of memory.
const SEEDS: usize = 12;

/// Windows that get a dot each.
const DOTS: usize = 40;

/// One boot's windows: their places and what is drawn of them.
type Line = Vec<(usize, f64)>;

/// What was counted in each. None where no window was.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let lines = lines(asked, |windows| windows.to_vec());
    let metric = &asked.comparison.series.metric;
    let title = format!("{metric} of each window, per operation");
    let values = lines.iter().flatten().flatten().map(|(_, value)| *value);
    let id = format!("{}-windows", asked.id);
    let says = [&*title, &*description(asked)];
    let mut frame = Frame::new(&id, says, values, &asked.comparison.unit);
    draw(&mut frame, &lines)?;
    let heading = format!("windows, {} per operation", safe(metric));
    Some(figure(&heading, &key(asked, &lines), &frame.svg.finish()))
}

/// How far each lies from the mean of its boot: too little to be seen where the sides lie apart. None
/// where all are the same.
pub(super) fn spread(asked: &Asked<'_>) -> Option<String> {
    let from_mean = |windows: &[f64]| -> Vec<f64> {
        let mean = kduel_stats::mean(windows).unwrap_or_default();
        let part = |value: &f64| if mean == 0.0 { 0.0 } else { value / mean - 1.0 };
        windows.iter().map(part).collect()
    };
    let lines = lines(asked, from_mean);
    let sizes = lines.iter().flatten().flatten().map(|(_, part)| part.abs());
    let largest = sizes.fold(0.0, f64::max);
    // What is only rounding is nothing.
    if largest < 1e-9 {
        return None;
    }
    let y = Scale::even((-largest * 1.1, largest * 1.1), (BOTTOM, TOP));
    let ticks = y.ticks(5).into_iter().map(|part| (part, tick(part))).collect();
    let says = ["each window against the mean of its boot", &*description(asked)];
    let mut frame = Frame::with_axis(&format!("{}-apart", asked.id), says, y, ticks);
    draw(&mut frame, &lines)?;
    Some(figure("windows against their mean", &key(asked, &lines), &frame.svg.finish()))
}

fn lines(asked: &Asked<'_>, of: impl Fn(&[f64]) -> Vec<f64>) -> [Vec<Line>; 2] {
    asked.points.windows.each_ref().map(|seeds| {
        let seeds = seeds.iter().take(SEEDS);
        seeds.map(|windows| thinned(&of(windows))).collect()
    })
}

fn description(asked: &Asked<'_>) -> String {
    let windows =
        |side: usize| count(asked.points.windows[side].iter().map(Vec::len).sum(), "window");
    format!("{} of {} and {} of {}", windows(0), asked.sides[0], windows(1), asked.sides[1])
}

fn key(asked: &Asked<'_>, lines: &[Vec<Line>; 2]) -> String {
    let seeds = lines.iter().map(Vec::len).max().unwrap_or(0);
    let seeds =
        if seeds > 1 { format!(", a line for each of {seeds} seeds") } else { String::new() };
    format!("{}{seeds}", sides_key(asked))
}

fn draw(frame: &mut Frame, lines: &[Vec<Line>; 2]) -> Option<()> {
    let last = lines.iter().flatten().flatten().map(|(place, _)| place + 1).max()?;
    let x = Scale::even((0.5, last as f64 + 0.5), (frame.left + 6.0, RIGHT));
    for tick in x.ticks(6).into_iter().filter(|tick| *tick >= 1.0 && tick.fract() == 0.0) {
        frame.below(x.at(tick), &tick.to_string());
    }
    for ((side, radius), lines) in [("a", 4.0), ("b", 2.6)].into_iter().zip(lines) {
        for line in lines {
            let at =
                |(place, value): &(usize, f64)| (x.at(*place as f64 + 1.0), frame.y.at(*value));
            let points: Vec<(f64, f64)> = line.iter().map(at).collect();
            frame.svg.through(&format!("line {side}"), &points);
            if points.len() <= DOTS {
                points.iter().for_each(|(x, y)| frame.svg.dot(side, ((*x).into(), *y), radius, ""));
            }
        }
    }
    Some(())
}

/// Every so many windows where there are many, the last among them.
fn thinned(windows: &[f64]) -> Line {
    let every = windows.len().div_ceil(SHOWN).max(1);
    let last = windows.len().saturating_sub(1);
    let shown = |place: &usize| (last - place).is_multiple_of(every);
    (0..windows.len()).filter(shown).map(|place| (place, windows[place])).collect()
}
