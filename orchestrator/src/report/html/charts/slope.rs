//! Pairs joined from base to value.

use kduel_protocol::Better;

use super::frame::{Frame, RIGHT, cut};
use super::{Asked, SHOWN, figure};
use crate::analyse::{Comparison, Fate, PairPoint};
use crate::text::count;

/// None where no pair has both ends.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let both = |pair: &PairPoint| pair.base.value.zip(pair.value.value);
    let ends = |pair: &PairPoint| both(pair).map(|ends| (ends, pair.fate.clone()));
    let all: Vec<_> = asked.points.pairs.iter().filter(|p| p.fate != Fate::Sentinel).collect();
    let pairs: Vec<((f64, f64), Fate)> = all.iter().filter_map(|pair| ends(pair)).collect();
    if pairs.is_empty() {
        return None;
    }
    let shown = &pairs[..pairs.len().min(SHOWN)];
    let [base, side] = asked.sides;
    let Comparison { series, unit, base: a, value: b, .. } = asked.comparison;
    let description = format!(
        "{} of {side} against {base}; median of the boots {} and {}",
        count(pairs.len(), "pair"),
        asked.show(*a),
        asked.show(*b)
    );
    let values = shown.iter().flat_map(|((base, value), _)| [*base, *value]);
    let says = [&*format!("{} of each pair, joined", series.metric), &*description];
    let mut frame = Frame::new(&format!("{}-pairs", asked.id), says, values, unit);
    let width = RIGHT - frame.left;
    let (from, to) = (frame.left + width * 0.17, RIGHT - width * 0.17);
    for ((base, value), fate) in shown {
        let (start, end) = (frame.y.at(*base), frame.y.at(*value));
        let class = format!("pair {}", direction(asked.comparison, *base, *value, fate));
        frame.svg.line(&class, (from.into(), start), (to.into(), end));
        frame.svg.dot("a", (from.into(), start), 2.5, "");
        frame.svg.dot("b", (to.into(), end), 2.5, "");
    }
    for (at, out, median) in [(from, -1.0, a), (to, 1.0, b)] {
        if let Some(median) = median {
            let y = frame.y.at(*median);
            frame.svg.line("median", ((at + out * 6.0).into(), y), ((at + out * 34.0).into(), y));
        }
    }
    for (at, name, median) in [(from, base, a), (to, side, b)] {
        frame.below(at, &format!("{} {}", cut(name, 12), asked.show(*median)));
    }
    let rest = pairs.len() - shown.len();
    let rest = if rest > 0 { format!(", {rest} more not drawn") } else { String::new() };
    let key = format!(
        "<span><i class=\"k-worse\"></i> worse</span> <span><i class=\"k-better\"></i> better</span> \
         <span><i class=\"k-same\"></i> within margin</span> <span><i class=\"k-median\"></i> median{rest}</span>"
    );
    Some(figure("pairs", &key, &frame.svg.finish()))
}

fn direction(comparison: &Comparison, base: f64, value: f64, fate: &Fate) -> &'static str {
    let change = value / base - 1.0;
    let more_is_worse = comparison.better == Better::Lower;
    match fate {
        Fate::Dropped(_) | Fate::Contaminated(_) | Fate::Sentinel => "lost",
        Fate::Valid if change.abs() < comparison.margin => "same",
        Fate::Valid if (change > 0.0) == more_is_worse => "worse",
        Fate::Valid => "better",
    }
}
