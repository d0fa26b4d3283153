//! How single operations spread: the share of them that is not above a value.

use super::frame::{BOTTOM, Frame, RIGHT, labels};
use super::{Asked, figure, sides_key};
use crate::analyse::Ecdf;
use crate::report::svg::Scale;
use crate::text::count;

/// None where no single operations were kept.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let sides = asked.points.operations.each_ref();
    let kept: Vec<&Ecdf> = sides.iter().filter_map(|side| side.as_ref()).collect();
    let unit = &kept.first()?.unit;
    let counted = |(name, side): (&&str, &&Option<Ecdf>)| {
        let operations = side.as_ref().map_or(0, |side| side.operations);
        format!("{} of {name}", count(operations, "operation"))
    };
    let described: Vec<String> = asked.sides.iter().zip(&sides).map(counted).collect();
    let title = "share of operations that take no more than a value";
    let y = Scale::even((0.0, 1.0), (BOTTOM, 10.0));
    let shares =
        [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| (share, format!("{:.0} %", share * 100.0)));
    let says = [title, &*described.join(", ")];
    let mut frame = Frame::with_axis(&format!("{}-spread", asked.id), says, y, shares.to_vec());
    let values = kept.iter().flat_map(|side| side.steps.iter().map(|(value, _)| *value));
    let x = Scale::fitting(values, (frame.left, RIGHT));
    let ticks = x.ticks(4);
    let labels = labels(&ticks, unit, x.log);
    frame.along(&ticks.into_iter().zip(labels).collect::<Vec<_>>(), &x);
    for (class, side) in ["line a", "line b"].into_iter().zip(&sides) {
        let Some(side) = side else { continue };
        let first = side.steps.first().map(|(value, _)| (x.at(*value), BOTTOM));
        let steps = side.steps.iter().map(|(value, share)| (x.at(*value), y.at(*share)));
        frame.svg.stairs(class, &first.into_iter().chain(steps).collect::<Vec<_>>());
    }
    Some(figure("single operations", &sides_key(asked), &frame.svg.finish()))
}
