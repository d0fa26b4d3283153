use crate::Pair;
use crate::error::StatsError;
use crate::fisher::fisher_difference;
use crate::pair::order_shift;
use crate::summary::median;

/// Why a verdict that the numbers alone would give is not given.
#[derive(Debug, Clone, PartialEq)]
pub enum Downgrade {
    /// The same side booted twice differs by more than it may.
    Sentinel {
        /// The largest difference, on the log scale.
        found: f64,
        /// What would have been allowed.
        allowed: f64,
    },
    /// More than a fifth of the pairs was dropped.
    ManyDropped {
        /// Dropped.
        dropped: usize,
        /// Of these.
        of: usize,
    },
    /// One side lost more boots than the other.
    UnevenDrops {
        /// Fisher's test, two-sided.
        p: f64,
    },
    /// Who goes first matters, and one side went first more often.
    Slot {
        /// How much going second adds, on the log scale; `None` if one side always went first.
        effect: Option<f64>,
    },
    /// The sides differ in QEMU, host or configuration beyond what was declared.
    Undeclared,
}

/// Boots of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boots {
    /// Lost: crashed, contaminated, invalid.
    pub lost: u64,
    /// All.
    pub all: u64,
}

/// What is known of a series' pairs besides their differences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditions<'a> {
    /// As in the series: `None` if dropped.
    pub pairs: &'a [Option<Pair>],
    /// The margin, on the log scale.
    pub delta: f64,
    /// Differences within pairs of the same side, on the log scale.
    pub sentinels: &'a [f64],
    /// Boots of the base.
    pub base: Boots,
    /// Boots of the other side.
    pub side: Boots,
    /// Whether the sides differ in QEMU, host or configuration beyond what was declared.
    pub undeclared: bool,
}

/// A larger part of dropped pairs makes what is left doubtful.
const MOST_DROPPED: f64 = 0.2;

/// The level of the tests whose finding is a doubt.
const LEVEL: f64 = 0.05;

/// A sentinel may differ by so many standard deviations of the pairs.
const SENTINEL_SDS: f64 = 4.0;

/// The median absolute deviation of normal numbers, times this, is their standard deviation.
const NORMAL_MAD: f64 = 1.4826;

/// All reasons to doubt a series.
///
/// # Errors
///
/// `NotFinite`, or `BadArgument` for more lost boots than boots.
pub fn doubts(conditions: &Conditions<'_>) -> Result<Vec<Downgrade>, StatsError> {
    let valid: Vec<Pair> = conditions.pairs.iter().copied().flatten().collect();
    let mut doubts = Vec::new();
    doubts.extend(sentinel(conditions, &valid)?);
    let (dropped, of) = (conditions.pairs.len() - valid.len(), conditions.pairs.len());
    if dropped as f64 > MOST_DROPPED * of as f64 {
        doubts.push(Downgrade::ManyDropped { dropped, of });
    }
    let (base, side) = (conditions.base, conditions.side);
    if base.all > 0 && side.all > 0 {
        let p = fisher_difference(base.lost, base.all, side.lost, side.all)?;
        if p < LEVEL {
            doubts.push(Downgrade::UnevenDrops { p });
        }
    }
    doubts.extend(slot(&valid)?);
    if conditions.undeclared {
        doubts.push(Downgrade::Undeclared);
    }
    Ok(doubts)
}

fn sentinel(conditions: &Conditions<'_>, valid: &[Pair]) -> Result<Option<Downgrade>, StatsError> {
    if conditions.sentinels.is_empty() || valid.is_empty() {
        return Ok(None);
    }
    let differences: Vec<f64> = valid.iter().map(Pair::difference).collect();
    let centre = median(&differences)?;
    let deviations: Vec<f64> = differences.iter().map(|d| (d - centre).abs()).collect();
    let allowed = conditions.delta.max(SENTINEL_SDS * NORMAL_MAD * median(&deviations)?);
    let largest = conditions.sentinels.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let beyond = largest.filter(|found| found.abs() > allowed || found.is_nan());
    Ok(beyond.map(|found| Downgrade::Sentinel { found, allowed }))
}

/// While both orders are equally frequent, what the second place adds cancels.
fn slot(valid: &[Pair]) -> Result<Option<Downgrade>, StatsError> {
    let base_first = valid.iter().filter(|pair| pair.base_first).count();
    if base_first.abs_diff(valid.len() - base_first) <= 1 {
        return Ok(None);
    }
    let Some(shift) = order_shift(valid)? else {
        return Ok(Some(Downgrade::Slot { effect: None }));
    };
    let excludes = shift.interval(LEVEL)?.is_some_and(|interval| interval.excludes_zero());
    Ok(excludes.then(|| Downgrade::Slot { effect: Some(shift.estimate() / 2.0) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(differences: &[f64], base_first: impl Fn(usize) -> bool) -> Vec<Option<Pair>> {
        let pair = |(index, side): (usize, &f64)| {
            Some(Pair { base: 0.0, side: *side, base_first: base_first(index) })
        };
        differences.iter().enumerate().map(pair).collect()
    }

    const FINE: Boots = Boots { lost: 0, all: 12 };
    const D: [f64; 12] =
        [0.01, -0.02, 0.015, -0.005, 0.02, 0.0, -0.01, 0.012, -0.012, 0.003, -0.018, 0.007];

    fn of(pairs: &[Option<Pair>], sentinels: &[f64]) -> Vec<Downgrade> {
        let conditions =
            Conditions { pairs, delta: 0.02, sentinels, base: FINE, side: FINE, undeclared: false };
        doubts(&conditions).unwrap()
    }

    #[test]
    fn nothing_to_doubt() {
        assert_eq!(of(&pairs(&D, |index| index % 2 == 0), &[0.01, -0.02]), []);
        assert_eq!(of(&[], &[]), []);
    }

    #[test]
    fn sentinels_beyond_margin_and_noise() {
        let even = pairs(&D, |index| index % 2 == 0);
        // Median .0015, absolute deviations' median .011: 4 × 1.4826 × .011 = .0652.
        let found = of(&even, &[0.01, -0.07]);
        let [Downgrade::Sentinel { found, allowed }] = found[..] else { panic!("{found:?}") };
        assert_eq!(found, -0.07);
        assert!((allowed - 4.0 * 1.4826 * 0.011).abs() < 1e-12, "{allowed}");
        assert_eq!(of(&even, &[0.06]), []);
        assert_eq!(of(&even, &[f64::NAN]).len(), 1);
    }

    #[test]
    fn dropped_pairs() {
        let mut some = pairs(&D, |index| index % 2 == 0);
        some[0] = None;
        some[1] = None;
        assert_eq!(of(&some, &[]), []);
        some[2] = None;
        assert_eq!(of(&some, &[]), [Downgrade::ManyDropped { dropped: 3, of: 12 }]);
        let even = pairs(&D, |index| index % 2 == 0);
        let conditions = |lost| Conditions {
            pairs: &even,
            delta: 0.02,
            sentinels: &[],
            base: FINE,
            side: Boots { lost, all: 12 },
            undeclared: true,
        };
        assert_eq!(doubts(&conditions(4)).unwrap(), [Downgrade::Undeclared]);
        let uneven = doubts(&conditions(6)).unwrap();
        assert!(matches!(uneven[0], Downgrade::UnevenDrops { p } if p < 0.02), "{uneven:?}");
        assert_eq!(doubts(&conditions(13)), Err(StatsError::BadArgument));
    }

    #[test]
    fn an_order_that_matters_counts_only_where_it_is_unbalanced() {
        let second_is_slow = |base_first: &dyn Fn(usize) -> bool| {
            let d: Vec<f64> = D
                .iter()
                .enumerate()
                .map(|(index, d)| d + if base_first(index) { 0.1 } else { -0.1 })
                .collect();
            of(&pairs(&d, base_first), &[])
        };
        assert_eq!(second_is_slow(&|index| index % 2 == 0), []);
        let [Downgrade::Slot { effect: Some(effect) }] =
            second_is_slow(&|index| index % 3 != 0)[..]
        else {
            panic!("an effect of .1 is beyond the noise")
        };
        assert!((effect - 0.1).abs() < 0.01, "{effect}");
        assert_eq!(of(&pairs(&D, |index| index % 3 != 0), &[]), []);
        assert_eq!(of(&pairs(&D, |_| true), &[]), [Downgrade::Slot { effect: None }]);
    }
}
