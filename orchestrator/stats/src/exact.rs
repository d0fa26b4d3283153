use crate::error::{StatsError, check};
use crate::summary::{log_mean, mean, median, quantile};
use crate::{Interval, Margin, Shift};

/// What the values of an exact run come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Seed by seed the same numbers.
    Identical,
    /// Within the margin.
    Equivalent,
    /// More, by the margin or beyond it.
    More,
    /// Less, likewise.
    Fewer,
    /// Not to be told from these values.
    Open,
}

/// Why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExactReason {
    /// Every value of every seed is the same.
    Equal,
    /// The difference of two numbers lies below the margin, or not below it.
    Fixed,
    /// Windows of one side differ by more than the sides do.
    Overlap,
    /// The interval over sampled layouts lies within the margin, or excludes 0 with an estimate that
    /// is not below the margin.
    Sampled,
    /// Layouts differ by more than this margin can show.
    Spread {
        /// Half width of the interval, on the log scale.
        half: f64,
    },
    /// So few seeds have no interval.
    FewSeeds {
        /// Fewest that have one.
        needed: usize,
    },
}

/// The answer for one series of an exact run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exact {
    /// The change, relative.
    pub change: f64,
    /// On the log scale; absent where there is one layout, which has nothing to estimate.
    pub interval: Option<Interval>,
    /// What follows.
    pub work: Work,
    /// Why.
    pub reason: ExactReason,
}

/// Fewest seeds a side with an interval.
pub const FEWEST_SEEDS: usize = 6;

/// The error of the one look at sampled layouts, two-sided.
const ALPHA: f64 = 0.05;

/// Compares the windows of `base` and `side`, a list for each seed in the same order of seeds.
/// Equality comes first. One seed: two numbers. Several: two samples of layouts.
///
/// # Errors
///
/// `TooFew` without a window, `NotFinite`, `NotPositive` where several seeds need logarithms.
pub fn compare_exact(
    base: &[Vec<f64>],
    side: &[Vec<f64>],
    margin: Margin,
) -> Result<Exact, StatsError> {
    let means = |seeds: &[Vec<f64>]| -> Result<Vec<f64>, StatsError> {
        seeds.iter().map(|windows| mean(windows)).collect()
    };
    let (a, b) = (means(base)?, means(side)?);
    check(&a, 1)?;
    check(&b, 1)?;
    if base == side {
        return Ok(Exact {
            change: 0.0,
            interval: None,
            work: Work::Identical,
            reason: ExactReason::Equal,
        });
    }
    match (&a[..], &b[..]) {
        ([one], [other]) => Ok(fixed(*one, *other, overlap(&base[0], &side[0]), margin)),
        _ => sampled(&a, &b, margin),
    }
}

/// Whether a window of one side lies among those of the other.
fn overlap(a: &[f64], b: &[f64]) -> bool {
    let ends = |values: &[f64]| Some((quantile(values, 0.0).ok()?, quantile(values, 1.0).ok()?));
    let (Some(a), Some(b)) = (ends(a), ends(b)) else { return false };
    a.0 <= b.1 && b.0 <= a.1
}

fn fixed(base: f64, value: f64, overlap: bool, margin: Margin) -> Exact {
    let change = if base == value { 0.0 } else { value / base - 1.0 };
    let (work, reason) = if change.abs() < margin.of(base) {
        (Work::Equivalent, ExactReason::Fixed)
    } else if overlap {
        (Work::Open, ExactReason::Overlap)
    } else {
        (direction(change), ExactReason::Fixed)
    };
    Exact { change, interval: None, work, reason }
}

/// Two kernels draw different layouts from one seed, so the samples are independent.
fn sampled(a: &[f64], b: &[f64], margin: Margin) -> Result<Exact, StatsError> {
    let logs = |values: &[f64]| -> Result<Vec<f64>, StatsError> {
        values.iter().map(|value| log_mean(&[*value])).collect()
    };
    let shift = Shift::new(&logs(a)?, &logs(b)?)?;
    let delta = margin.delta(median(a)?);
    let (estimate, few) = (shift.estimate(), a.len().min(b.len()) < FEWEST_SEEDS);
    let interval = |alpha| if few { Ok(None) } else { shift.interval(alpha) };
    let outer = interval(ALPHA)?;
    let (work, reason) = match (outer, interval(2.0 * ALPHA)?) {
        (Some(outer), _) if outer.excludes_zero() && estimate.abs() >= delta => {
            (direction(estimate), ExactReason::Sampled)
        }
        (Some(_), Some(inner)) if inner.within(delta) => (Work::Equivalent, ExactReason::Sampled),
        (Some(outer), _) => (Work::Open, ExactReason::Spread { half: outer.half_width() }),
        (None, _) => (Work::Open, ExactReason::FewSeeds { needed: FEWEST_SEEDS }),
    };
    Ok(Exact { change: estimate.exp_m1(), interval: outer, work, reason })
}

fn direction(change: f64) -> Work {
    if change > 0.0 { Work::More } else { Work::Fewer }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: Margin = Margin { relative: 0.005, absolute: 3.0 };

    fn seeds(values: &[f64]) -> Vec<Vec<f64>> {
        values.iter().map(|value| vec![*value; 2]).collect()
    }

    fn of(base: &[f64], side: &[f64]) -> Exact {
        compare_exact(&seeds(base), &seeds(side), MARGIN).unwrap()
    }

    #[test]
    fn one_layout_has_no_interval_and_a_margin() {
        let work = |base, value| of(&[base], &[value]).work;
        assert_eq!(work(1000.0, 1000.0), Work::Identical);
        assert_eq!(work(1000.0, 1004.9), Work::Equivalent);
        assert_eq!(work(1000.0, 1005.1), Work::More);
        assert_eq!(work(1000.0, 994.0), Work::Fewer);
        // Two instructions in a hundred are nothing to talk about, four are.
        assert_eq!(work(100.0, 102.0), Work::Equivalent);
        assert_eq!(work(100.0, 104.0), Work::More);
        assert_eq!(of(&[1000.0], &[1010.0]).interval, None);
    }

    #[test]
    fn windows_that_drift_hide_a_difference() {
        let found = compare_exact(&[vec![100.0, 140.0]], &[vec![130.0, 170.0]], MARGIN).unwrap();
        assert_eq!((found.work, found.reason), (Work::Open, ExactReason::Overlap));
        let apart = compare_exact(&[vec![100.0, 120.0]], &[vec![130.0, 170.0]], MARGIN).unwrap();
        assert_eq!(apart.work, Work::More);
    }

    #[test]
    fn equality_per_seed_comes_before_any_statistics() {
        let base = [100.0, 900.0];
        assert_eq!(of(&base, &base).work, Work::Identical);
        // The same numbers in other seeds are no equality, and too few for more.
        let other = of(&base, &[900.0, 100.0]);
        assert_eq!(other.reason, ExactReason::FewSeeds { needed: 6 });
    }

    #[test]
    fn seeds_give_an_interval_from_six_on() {
        let base = [100.0, 101.0, 99.5, 100.2, 100.8, 99.9].map(|value| value * 1000.0);
        let more = base.map(|value| value * 1.2);
        let found = of(&base, &more);
        assert_eq!((found.work, found.reason), (Work::More, ExactReason::Sampled));
        assert!((found.change - 0.2).abs() < 0.01 && found.interval.unwrap().confidence >= 0.95);
        assert_eq!(of(&more, &base).work, Work::Fewer);
        assert_eq!(of(&base[..5], &more[..5]).work, Work::Open);
        let tight = base.map(|value| 100_000.0 + (value - 100_000.0) / 100.0);
        let mut shuffled = tight;
        shuffled.reverse();
        assert_eq!(of(&tight, &shuffled).work, Work::Equivalent);
        let mut wide = base;
        wide.reverse();
        assert!(matches!(of(&base, &wide).reason, ExactReason::Spread { half } if half > 0.005));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let none = StatsError::TooFew { needed: 1, found: 0 };
        assert_eq!(compare_exact(&[], &[], MARGIN), Err(none));
        assert_eq!(compare_exact(&[vec![]], &[vec![1.0]], MARGIN), Err(none));
        let bad = compare_exact(&[vec![f64::NAN]], &[vec![1.0]], MARGIN);
        assert_eq!(bad, Err(StatsError::NotFinite));
        let zeros = compare_exact(&seeds(&[0.0; 6]), &seeds(&[1.0; 6]), MARGIN);
        assert_eq!(zeros, Err(StatsError::NotPositive(0.0)));
        let from_zero = compare_exact(&[vec![0.0]], &[vec![1.0]], MARGIN).unwrap();
        assert_eq!(from_zero.work, Work::More);
    }
}
