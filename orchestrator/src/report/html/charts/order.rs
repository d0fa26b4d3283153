//! Boots in the order in which they were started: what drifts shows here.

use super::frame::{BOTTOM, Frame, RIGHT};
use super::{Asked, SHOWN, figure, sides_key};
use crate::analyse::{Fate, Half, PairPoint};
use crate::report::svg::{Scale, Svg};
use crate::text::count;

const CROSS: [(f64, f64); 4] = [(-3.5, -3.5), (3.5, 3.5), (-3.5, 3.5), (3.5, -3.5)];
const SQUARE: [(f64, f64); 4] = [(-3.0, -3.0), (3.0, -3.0), (3.0, 3.0), (-3.0, 3.0)];
const DIAMOND: [(f64, f64); 4] = [(0.0, -4.5), (4.5, 0.0), (0.0, 4.5), (-4.5, 0.0)];

/// None where nothing was booted.
pub(super) fn chart(asked: &Asked<'_>) -> Option<String> {
    let pairs = &asked.points.pairs;
    let shown = &pairs[..pairs.len().min(SHOWN)];
    let clock = Clock::of(shown)?;
    let halves = shown.iter().flat_map(|pair| [&pair.base, &pair.value]);
    let values: Vec<f64> = halves.filter_map(|half| half.value).collect();
    if values.is_empty() {
        return None;
    }
    let lost = shown.iter().filter(|pair| pair.fate != Fate::Valid).count();
    let description = format!(
        "{} of {} and {}, {lost} of them marked as not counted; {}",
        count(pairs.len(), "pair"),
        asked.sides[0],
        asked.sides[1],
        clock.words()
    );
    let title =
        format!("{} of each boot, in the order of their starts", asked.comparison.series.metric);
    let id = format!("{}-order", asked.id);
    let mut frame =
        Frame::new(&id, [&title, &description], values.into_iter(), &asked.comparison.unit);
    let x = Scale::even((0.0, clock.last), (frame.left + 10.0, RIGHT - 6.0));
    frame.along(&clock.ticks(&x), &x);
    for (place, pair) in shown.iter().enumerate() {
        draw(
            &mut frame,
            asked,
            pair,
            [0, 1].map(|half| clock.at(place, pair, half).map(|t| x.at(t))),
        );
    }
    let rest = pairs.len() - shown.len();
    let rest = if rest > 0 { format!(", the first {SHOWN} pairs") } else { String::new() };
    let key = format!("{} {}{rest}", sides_key(asked), fates_key(shown));
    Some(figure("over time", &key, &frame.svg.finish()))
}

fn fates_key(pairs: &[PairPoint]) -> String {
    let has = |is: fn(&Fate) -> bool| pairs.iter().any(|pair| is(&pair.fate));
    let mut parts = Vec::new();
    if has(|fate| matches!(fate, Fate::Dropped(_))) {
        parts.push("<span><i class=\"k-x\">\u{d7}</i> dropped</span>");
    }
    if has(|fate| matches!(fate, Fate::Contaminated(_))) {
        parts.push("<span><i class=\"k-ring\"></i> contaminated</span>");
    }
    if has(|fate| *fate == Fate::Sentinel) {
        parts.push("<span><i class=\"k-x\">\u{25c7}</i> the same side twice</span>");
    }
    parts.join(" ")
}

fn draw(frame: &mut Frame, asked: &Asked<'_>, pair: &PairPoint, x: [Option<f64>; 2]) {
    let y = |frame: &Frame, half: &Half| half.value.map(|value| frame.y.at(value));
    let places: [Option<(f64, f64)>; 2] =
        [x[0].zip(y(frame, &pair.base)), x[1].zip(y(frame, &pair.value))];
    if let [Some((x1, y1)), Some((x2, y2))] = places {
        frame.svg.line("tie", (x1.into(), y1), (x2.into(), y2));
    }
    for (place, half) in [&pair.base, &pair.value].into_iter().enumerate() {
        // A boot that gave nothing has only a time.
        let Some(at) = places[place].or_else(|| x[place].map(|x| (x, BOTTOM - 6.0))) else {
            continue;
        };
        let fate = match &pair.fate {
            Fate::Valid => String::new(),
            Fate::Dropped(why) => format!(", dropped: {why}"),
            Fate::Contaminated(why) => format!(", contaminated: {why}"),
            Fate::Sentinel => ", the same side twice".to_owned(),
        };
        let side = asked.sides[place];
        let says = format!("pair {}, {side}: {}{fate}", pair.block + 1, asked.show(half.value));
        mark(&mut frame.svg, &pair.fate, place, at, &says);
    }
}

fn mark(svg: &mut Svg, fate: &Fate, place: usize, at: (f64, f64), says: &str) {
    let side = ["a", "b"][place];
    let circle = (at.0.into(), at.1);
    match fate {
        Fate::Dropped(_) => {
            let class = format!("cross {side}");
            svg.shape(&class, at, &CROSS[..2], false, says);
            svg.shape(&class, at, &CROSS[2..], false, "");
        }
        Fate::Sentinel => svg.shape(&format!("ring {side}"), at, &DIAMOND, true, says),
        Fate::Valid if place == 0 => svg.dot("a", circle, 3.4, says),
        Fate::Valid => svg.shape("b", at, &SQUARE, true, says),
        Fate::Contaminated(_) => {
            svg.dot(&format!("ring {side}"), circle, 5.0, says);
            svg.dot(side, circle, 1.5, "");
        }
    }
}

/// When boots were started: seconds after the first, or their order where clocks do not tell.
struct Clock {
    first: Option<jiff::Timestamp>,
    last: f64,
}

impl Clock {
    fn of(pairs: &[PairPoint]) -> Option<Self> {
        let halves = pairs.iter().flat_map(|pair| [&pair.base, &pair.value]);
        let started: Vec<jiff::Timestamp> = halves.filter_map(|half| half.started).collect();
        let (first, last) = (*started.iter().min()?, *started.iter().max()?);
        let span = seconds(first, last);
        Some(match span >= 5.0 {
            true => Self { first: Some(first), last: span },
            false => Self { first: None, last: (2 * pairs.len()) as f64 },
        })
    }

    /// Of the base's or the candidate's boot of the pair at `place`.
    fn at(&self, place: usize, pair: &PairPoint, half: usize) -> Option<f64> {
        let started = [&pair.base, &pair.value][half].started?;
        Some(match self.first {
            Some(first) => seconds(first, started),
            // Boots are counted from 1.
            None => (2 * place + 1 + usize::from((half == 0) != pair.base_first)) as f64,
        })
    }

    fn words(&self) -> &'static str {
        match self.first {
            Some(_) => "time since the first boot runs to the right",
            None => "the boots' order runs to the right",
        }
    }

    fn ticks(&self, scale: &Scale) -> Vec<(f64, String)> {
        let (divisor, unit) = match self.last {
            _ if self.first.is_none() => (1.0, ""),
            last if last >= 2.0 * 3600.0 => (3600.0, " h"),
            last if last >= 180.0 => (60.0, " min"),
            _ => (1.0, " s"),
        };
        let even = Scale::even((0.0, self.last / divisor), (0.0, 1.0));
        let ticks = even.ticks(5).into_iter();
        let label = |value: f64| match self.first {
            None if value == 0.0 => String::new(),
            None => format!("boot {value}"),
            Some(_) => format!("{value}{unit}"),
        };
        ticks
            .map(|value| (value * divisor, label(value)))
            .filter(|(value, label)| !label.is_empty() && scale.at(*value) <= RIGHT)
            .collect()
    }
}

fn seconds(from: jiff::Timestamp, to: jiff::Timestamp) -> f64 {
    (to.as_millisecond() - from.as_millisecond()) as f64 / 1000.0
}
