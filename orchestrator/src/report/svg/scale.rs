//! From values to places in a picture.

/// Values that lie so far apart, largest to smallest, are told by their orders of magnitude.
const WIDE: f64 = 20.0;

/// Room beside the outermost values, as a part of all.
const ROOM: f64 = 0.05;

/// Values along a line, evenly or by their logarithms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::report) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    /// Whether equal ratios are equally far.
    pub log: bool,
}

impl Scale {
    /// Evenly; `low` lies at `from` and `high` at `to`.
    pub fn even((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let (low, high) = if high > low {
            (low, high)
        } else {
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.01 };
            (low - room, low + room)
        };
        Self { low, high, from, to, log: false }
    }

    /// All values and some room, by logarithms if they lie far apart.
    pub fn fitting(values: impl IntoIterator<Item = f64>, place: (f64, f64)) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        if low > high {
            return Self::even((0.0, 1.0), place);
        }
        if low > 0.0 && high / low > WIDE {
            let room = (high / low).powf(ROOM);
            return Self {
                low: low / room,
                high: high * room,
                from: place.0,
                to: place.1,
                log: true,
            };
        }
        let room = (high - low) * ROOM;
        Self::even((low - room, high + room), place)
    }

    /// Where a value lies; those beyond an end lie at it.
    pub fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let part = if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + (self.to - self.from) * part
    }

    /// Round values along it, ascending: about `wanted` of them.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        let by_magnitude = if self.log { self.magnitudes(wanted) } else { Vec::new() };
        if by_magnitude.len() >= 2 { by_magnitude } else { self.even_ticks(wanted) }
    }

    fn even_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_up((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step).ceil();
        let places = (0..=2 * wanted).map(|place| (first + place as f64) * step);
        // So that 3 * 0.1 is 0.3, and nothing is -0.
        let tidy = |value: f64| if value.abs() < step / 2.0 { 0.0 } else { value };
        places.map(tidy).take_while(|value| *value <= self.high).collect()
    }

    /// Powers of ten, with 2 and 5 between them where there is room.
    fn magnitudes(&self, wanted: usize) -> Vec<f64> {
        let lowest = magnitude(self.low);
        let highest = magnitude(self.high) + 1;
        let within = |digits: &[f64], every: usize| -> Vec<f64> {
            let powers = (lowest..=highest).step_by(every);
            let all = powers.flat_map(|power| digits.iter().map(move |d| d * 10_f64.powi(power)));
            all.filter(|value| (self.low..=self.high).contains(value)).collect()
        };
        let tries: [(&[f64], usize); 4] =
            [(&[1.0, 2.0, 5.0], 1), (&[1.0, 3.0], 1), (&[1.0], 1), (&[1.0], 2)];
        let mut found = Vec::new();
        for (digits, every) in tries {
            found = within(digits, every);
            if found.len() <= wanted + 1 {
                return found;
            }
        }
        let every = found.len().div_ceil(wanted.max(1));
        found.into_iter().step_by(every).collect()
    }
}

/// The power of ten that is not above a positive value.
#[expect(clippy::cast_possible_truncation, reason = "between -324 and 308")]
fn magnitude(value: f64) -> i32 {
    value.log10().floor() as i32
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(step: f64) -> f64 {
    let power = 10_f64.powi(magnitude(step));
    let fits = |digit: &f64| digit * power >= step * 0.999_999;
    let digit = [1.0, 2.0, 5.0, 10.0].into_iter().find(|digit| fits(digit)).unwrap_or(10.0);
    digit * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_values_lie_evenly_and_far_ones_by_magnitude() {
        let near = Scale::fitting([100.0, 110.0, f64::NAN], (0.0, 110.0));
        assert_eq!((near.log, near.at(105.0)), (false, 55.0));
        assert_eq!(near.ticks(4), [100.0, 105.0, 110.0]);
        let far = Scale::fitting([10.0, 100_000.0], (0.0, 100.0));
        assert!(far.log && (far.at(1000.0) - 50.0).abs() < 1e-9);
        assert_eq!(far.ticks(5), [10.0, 100.0, 1000.0, 10_000.0, 100_000.0]);
        assert!(!Scale::fitting([-10.0, 100_000.0], (0.0, 1.0)).log);
        assert_eq!(far.at(1e9), far.at(1e12));
    }

    #[test]
    fn one_value_and_none_have_a_place_too() {
        let one = Scale::fitting([42.0, 42.0], (0.0, 10.0));
        assert_eq!(one.at(42.0), 5.0);
        assert!(one.ticks(3).contains(&42.0));
        assert_eq!(Scale::fitting([0.0], (0.0, 2.0)).at(0.0), 1.0);
        assert_eq!(Scale::fitting([], (0.0, 2.0)).at(0.5), 1.0);
    }

    #[test]
    fn ticks_are_few_and_inside() {
        for (low, high) in
            [(0.0, 1.0), (-0.3, 0.17), (1e-9, 3.7e-9), (146_475.9, 146_476.2), (1.0, 1e30)]
        {
            let scale = Scale::fitting([low, high], (0.0, 1.0));
            let ticks = scale.ticks(5);
            assert!((2..=11).contains(&ticks.len()), "{low} {high}: {ticks:?}");
            assert!(
                ticks.is_sorted() && ticks.iter().all(|t| (scale.low..=scale.high).contains(t))
            );
        }
        assert_eq!(Scale::even((-0.25, 0.25), (0.0, 1.0)).ticks(5), [-0.2, -0.1, 0.0, 0.1, 0.2]);
    }
}
