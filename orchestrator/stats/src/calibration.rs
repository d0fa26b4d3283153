use crate::error::StatsError;
use crate::judge::{Rule, Series, judge};
use crate::looks::{ALPHA, Looks};
use crate::pair::order_shift;
use crate::summary::{quantile, variance};
use crate::verdict::{Better, Verdict};
use crate::{Interval, Margin, Pair, Random, Shift, SignedRank, Statistic, Walsh};

/// What pairs of the same kernel on both sides say about a host.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// Pairs.
    pub pairs: usize,
    /// Standard deviation of their differences, on the log scale.
    pub pair_sd: f64,
    /// Of the difference between the sides, which is none; on the log scale.
    pub interval: Interval,
    /// What going second, or the second set of CPUs, adds; on the log scale. `None` without both
    /// orders.
    pub slot: Option<Interval>,
    /// From the first half of the run to the second, in the boots of both sides; on the log scale.
    pub drift: Interval,
    /// Part of resampled runs that raise a false alarm.
    pub false_alarms: f64,
    /// The change that this host can be trusted with.
    pub margin: Margin,
    /// Whether runs on this host may be believed.
    pub passes: bool,
}

/// Fewest pairs that calibrate.
pub const FEWEST_PAIRS: usize = 20;

/// Resampled runs may raise this part of false alarms: the promised error, and half of it again.
pub const MOST_FALSE_ALARMS: f64 = 0.075;

/// Runs that are resampled.
const RESAMPLED: usize = 2000;

/// From differences of a kernel against itself, in schedule order. `class` is the margin that this
/// kind of host and metric has by default.
///
/// # Errors
///
/// `TooFew` below twenty pairs, `NotFinite`.
pub fn calibrate(
    pairs: &[Pair],
    class: Margin,
    statistic: Statistic,
    seed: u64,
) -> Result<Calibration, StatsError> {
    let too_few = StatsError::TooFew { needed: FEWEST_PAIRS, found: pairs.len() };
    if pairs.len() < FEWEST_PAIRS {
        return Err(too_few);
    }
    let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
    let interval = Walsh::new(&differences)?.interval(ALPHA)?.ok_or(too_few)?;
    let false_alarms = false_alarms(pairs, statistic, seed);
    Ok(Calibration {
        pairs: pairs.len(),
        pair_sd: variance(&differences)?.sqrt(),
        interval,
        slot: slot(pairs)?,
        drift: drift(pairs)?,
        false_alarms,
        margin: Margin { relative: class.relative.max(fence(&differences)?), ..class },
        passes: !interval.excludes_zero() && false_alarms <= MOST_FALSE_ALARMS,
    })
}

/// Tukey's outer fence of the changes' size: Q3 + 3 IQR of |log ratio|, as a relative change.
fn fence(differences: &[f64]) -> Result<f64, StatsError> {
    let sizes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let (first, third) = (quantile(&sizes, 0.25)?, quantile(&sizes, 0.75)?);
    Ok((third + 3.0 * (third - first)).exp_m1())
}

/// What the second place adds.
fn slot(pairs: &[Pair]) -> Result<Option<Interval>, StatsError> {
    let Some(shift) = order_shift(pairs)? else { return Ok(None) };
    Ok(shift.interval(ALPHA)?.map(|Interval { low, high, confidence }| Interval {
        low: low / 2.0,
        high: high / 2.0,
        confidence,
    }))
}

/// The shift of the pairs' levels from the first half to the second.
fn drift(pairs: &[Pair]) -> Result<Interval, StatsError> {
    let levels: Vec<f64> = pairs.iter().map(|pair| pair.base / 2.0 + pair.side / 2.0).collect();
    let (early, late) = levels.split_at(levels.len() / 2);
    let shift = Shift::new(early, late)?.interval(ALPHA)?;
    shift.ok_or(StatsError::TooFew { needed: FEWEST_PAIRS, found: pairs.len() })
}

/// The part of runs over the planned looks that find a difference, of whatever size, among pairs
/// drawn from these with a random sign each, which is to say with random sides.
fn false_alarms(pairs: &[Pair], statistic: Statistic, seed: u64) -> f64 {
    let mut random = Random::new(seed);
    let rule = Rule { statistic, looks: Looks::planned() };
    let alarms = (0..RESAMPLED).filter(|_| {
        let draw = |random: &mut Random| {
            let Pair { base, side, base_first } = pairs[random.below(pairs.len())];
            match random.chance(0.5) {
                true => Pair { base, side, base_first },
                false => Pair { base: side, side: base, base_first: !base_first },
            }
        };
        let drawn: Vec<Option<Pair>> =
            (0..rule.looks.pairs()).map(|_| Some(draw(&mut random))).collect();
        rule.looks.all().iter().any(|look| {
            let pairs = drawn[..look.pairs].to_vec();
            let series = Series { pairs, delta: 0.0, better: Better::Lower, primary: true };
            let found = judge(&[series], &rule, false);
            let alarm = |verdict| matches!(verdict, Verdict::Regression | Verdict::Improvement);
            found.iter().any(|finding| alarm(finding.verdict))
        })
    });
    alarms.count() as f64 / RESAMPLED as f64
}

/// Whether the ranks of `pairs` pairs can ever be rare enough to stand out among `series` series at
/// `alpha`: the smallest two-sided p is 2/2^pairs.
///
/// # Errors
///
/// `BadArgument` unless 0 < alpha < 1.
pub fn can_stand_out(pairs: usize, series: usize, alpha: f64) -> Result<bool, StatsError> {
    Ok(pairs >= SignedRank::fewest(alpha / series.max(1) as f64)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::{Mode, Noise, World};

    const CLASS: Margin = Margin { relative: 0.01, absolute: 0.0 };

    fn of(world: World, pairs: usize) -> Calibration {
        let pairs = world.pairs(pairs, &mut Random::new(5));
        calibrate(&pairs, CLASS, Statistic::SignedRank, 1).unwrap()
    }

    #[test]
    fn a_quiet_host_passes_and_its_margin_is_that_of_its_class() {
        let found = of(World::plain(0.0, Noise::Normal(0.001)), 24);
        assert!(found.passes, "{found:?}");
        assert_eq!(found.margin, CLASS);
        assert!((found.pair_sd - 0.001_41).abs() < 0.000_4, "{found:?}");
        assert!(found.false_alarms <= 0.06, "{found:?}");
        assert!(!found.slot.unwrap().excludes_zero() && !found.drift.excludes_zero());
    }

    #[test]
    fn a_noisy_host_has_a_margin_of_its_own() {
        let found = of(World::plain(0.0, Noise::Normal(0.02)), 24);
        assert!(found.margin.relative > 0.05, "{found:?}");
    }

    #[test]
    fn a_host_that_favours_a_side_fails() {
        let found = of(World::plain(0.02, Noise::Normal(0.005)), 20);
        assert!(!found.passes && found.interval.excludes_zero(), "{found:?}");
    }

    #[test]
    fn drift_and_slot_are_seen() {
        let mode = Mode::Interleave { drift: 0.01 };
        let found = of(World { effect: 0.0, noise: Noise::Normal(0.002), mode }, 20);
        // Ten pairs of two boots from half to half; going second is one boot later.
        assert!((found.drift.low..=found.drift.high).contains(&0.2), "{found:?}");
        let slot = found.slot.unwrap();
        assert!((slot.low..=slot.high).contains(&0.01) && slot.low > 0.0, "{found:?}");
    }

    #[test]
    fn nothing_comes_of_too_few_pairs() {
        let pairs = World::plain(0.0, Noise::Normal(0.01)).pairs(19, &mut Random::new(5));
        let found = calibrate(&pairs, CLASS, Statistic::SignedRank, 1);
        assert_eq!(found, Err(StatsError::TooFew { needed: 20, found: 19 }));
    }

    #[test]
    fn few_pairs_cannot_stand_out_among_many_series() {
        assert_eq!(can_stand_out(8, 1, 0.008), Ok(true));
        assert_eq!(can_stand_out(8, 5, 0.008), Ok(false));
        assert_eq!(can_stand_out(12, 20, 0.012), Ok(true));
    }
}
