//! The change of each pair, sorted: what estimate and interval are made of.

use super::frame::{BOTTOM, Frame, RIGHT};
use super::{Asked, SHOWN, figure};
use crate::analyse::{Comparison, Fate, PairPoint};
use crate::report::number::{interval, signed_percent, tick};
use crate::report::svg::Scale;
use crate::text::count;

/// None where no pair counts.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let counts = asked.points.pairs.iter().filter(|pair| pair.fate == Fate::Valid);
    let mut changes: Vec<(f64, usize)> = counts.filter_map(change).take(SHOWN).collect();
    changes.retain(|(change, _)| change.is_finite());
    changes.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (low, high) = (changes.first()?.0, changes.last()?.0);
    let Comparison { change: found, low: from, high: to, margin, .. } = asked.comparison;
    let ends = from.zip(*to);
    let (low, high) = (low.min(-margin), high.max(*margin));
    let y = Scale::even(roomy(low, high), (BOTTOM, 8.0));
    let ticks = y.ticks(5).into_iter().map(|change| (change, tick(change))).collect();
    let said = found.map_or_else(|| "no estimate".to_owned(), signed_percent);
    let range = ends.map(|(low, high)| format!(" {}", interval(low, high))).unwrap_or_default();
    let description = format!("{}, estimate {said}{range}", count(changes.len(), "pair"));
    let says = ["change of each pair, sorted", &*description];
    let mut frame = Frame::with_axis(&format!("{}-changes", asked.id), says, y, ticks);
    let width = RIGHT - frame.left;
    let mut across = |class: &str, low: f64, high: f64| {
        let (top, bottom) = (frame.y.at(high), frame.y.at(low));
        frame.svg.rect(class, (frame.left.into(), top), (width.into(), bottom - top));
    };
    across("band", -margin, *margin);
    if let Some((low, high)) = ends {
        across("sure", low, high);
    }
    for (class, at) in [("zero", Some(0.0)), ("found", *found)] {
        if let Some(at) = at.map(|change| frame.y.at(change)) {
            frame.svg.line(class, (frame.left.into(), at), (RIGHT.into(), at));
        }
    }
    let x = Scale::even((0.0, changes.len() as f64 + 1.0), (frame.left, RIGHT));
    for (place, (change, block)) in changes.iter().enumerate() {
        let at = (x.at(place as f64 + 1.0).into(), frame.y.at(*change));
        let says = format!("pair {}: {}{}", block + 1, asked.mark, signed_percent(*change));
        frame.svg.dot("each", at, 3.4, &says);
    }
    frame.below(f64::midpoint(frame.left, RIGHT), "pairs, sorted by their change");
    let key = "<span><i class=\"k-found\"></i> estimate</span> <span><i class=\"k-sure\"></i> interval</span> \
               <span><i class=\"k-band\"></i> margin</span>";
    Some(figure("change", key, &frame.svg.finish()))
}

fn change(pair: &PairPoint) -> Option<(f64, usize)> {
    let (base, value) = pair.base.value.zip(pair.value.value)?;
    Some((value / base - 1.0, pair.block))
}

fn roomy(low: f64, high: f64) -> (f64, f64) {
    let room = (high - low) * 0.05;
    (low - room, high + room)
}
