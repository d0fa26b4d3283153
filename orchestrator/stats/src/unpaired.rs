use crate::error::StatsError;
use crate::judge::{Family, open};
use crate::looks::{ALPHA, Look};
use crate::verdict::{Better, Finding, Reason, Verdict};
use crate::{Interval, Shift};

/// One series of two sides that were not booted in pairs: boots of different runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    /// One logarithm per boot.
    pub base: Vec<f64>,
    /// Likewise; the counts may differ.
    pub side: Vec<f64>,
    /// The change that matters, on the log scale.
    pub delta: f64,
    /// Which direction is better.
    pub better: Better,
    /// Whether it belongs to the family that decides.
    pub primary: bool,
}

/// Fewest boots a side, as many on both, that have an interval at 1 - `alpha`.
///
/// # Errors
///
/// `BadArgument` unless 0 < alpha < 1.
pub fn fewest_a_side(alpha: f64) -> Result<usize, StatsError> {
    for n in 1..40 {
        let ranks: Vec<f64> = (0_u8..n).map(f64::from).collect();
        if Shift::new(&ranks, &ranks)?.interval(alpha)?.is_some() {
            return Ok(usize::from(n));
        }
    }
    Err(StatsError::BadArgument)
}

/// Judges series of boots that are not paired, all at once, in one look: the two-sample
/// Hodges-Lehmann shift with its exact rank-sum interval. Primary and secondary series are two
/// families, differences and equivalences are judged apart, as in [`crate::judge`].
pub fn judge_samples(series: &[Samples]) -> Vec<Finding> {
    let shifts: Vec<Result<Shift, StatsError>> =
        series.iter().map(|one| Shift::new(&one.base, &one.side)).collect();
    let mut findings: Vec<Option<Finding>> = vec![None; series.len()];
    for primary in [true, false] {
        let members: Vec<usize> =
            (0..series.len()).filter(|index| series[*index].primary == primary).collect();
        let p = |of: fn(&Shift, f64) -> f64| -> Family {
            let each = members.iter().map(|index| {
                shifts[*index].as_ref().map_or(1.0, |shift| of(shift, series[*index].delta))
            });
            Family::of(&each.collect::<Vec<f64>>())
        };
        let (differences, equivalences) = (p(|shift, _| p_difference(shift)), p(p_equivalence));
        for (place, index) in members.iter().enumerate() {
            let shares = (differences.share(place), equivalences.share(place));
            let boots = series[*index].base.len().min(series[*index].side.len());
            let found = shifts[*index].as_ref().map_err(|error| *error);
            let found = found.and_then(|s| finding(s, &series[*index], shares, members.len()));
            findings[*index] =
                Some(found.unwrap_or_else(|e| Finding::invalid(e, boots, Some(look(boots)))));
        }
    }
    findings.into_iter().flatten().collect()
}

fn look(boots: usize) -> Look {
    Look { pairs: boots, alpha: ALPHA, total: ALPHA }
}

fn p_difference(shift: &Shift) -> f64 {
    (2.0 * shift.p_above(0.0).min(shift.p_below(0.0))).min(1.0)
}

fn p_equivalence(shift: &Shift, delta: f64) -> f64 {
    shift.p_above(-delta).max(shift.p_below(delta))
}

fn finding(
    shift: &Shift,
    series: &Samples,
    shares: (Option<f64>, Option<f64>),
    family: usize,
) -> Result<Finding, StatsError> {
    let estimate = shift.estimate();
    let boots = series.base.len().min(series.side.len());
    let (differ, equal) = (p_difference(shift), p_equivalence(shift, series.delta));
    let beyond = estimate.abs() >= series.delta;
    let holds = |p: f64, share: Option<f64>| share.is_some_and(|share| p <= ALPHA * share);
    let (verdict, level, reason) = match (holds(differ, shares.0), holds(equal, shares.1)) {
        (true, _) if beyond => {
            (Verdict::of_change(estimate, series.better), shares.0, Some(Reason::Beyond))
        }
        (detectable, true) => (Verdict::NoChange, shares.1, Some(Reason::Within { detectable })),
        _ => (Verdict::Inconclusive, None, None),
    };
    let interval = match shift.interval(ALPHA * level.unwrap_or(1.0))? {
        None => shift.interval(ALPHA)?,
        interval => interval,
    };
    let alone = (beyond && differ <= ALPHA) || equal <= ALPHA;
    let reason = match (reason, interval) {
        (Some(reason), _) => reason,
        (None, _) if alone => Reason::Family { series: family },
        (None, None) => Reason::TooFew { needed: fewest_a_side(ALPHA)? },
        (None, Some(interval)) => open(Interval::half_width(&interval), series.delta, boots),
    };
    let look = Some(look(boots));
    Ok(Finding {
        estimate: Some(estimate),
        interval,
        p: differ,
        pairs: boots,
        look,
        verdict,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn samples(base: &[f64], side: &[f64], primary: bool) -> Samples {
        let (base, side) = (base.to_vec(), side.to_vec());
        Samples { base, side, delta: 0.1_f64.ln_1p(), better: Better::Lower, primary }
    }

    fn around(level: f64) -> Vec<f64> {
        [0.01, -0.02, 0.005, -0.004, 0.012, -0.011, 0.003, 0.0].map(|n| level + n).to_vec()
    }

    #[test]
    fn a_shift_between_runs_is_judged_like_one_between_boots() {
        let judged = |side: f64| judge_samples(&[samples(&around(1.0), &around(side), true)]);
        let worse = &judged(1.2)[0];
        assert_eq!((worse.verdict, &worse.reason), (Verdict::Regression, &Reason::Beyond));
        assert!((worse.estimate.unwrap() - 0.2).abs() < 1e-9);
        assert!(worse.interval.unwrap().confidence >= 0.95);
        assert_eq!(judged(0.8)[0].verdict, Verdict::Improvement);
        assert_eq!(judged(1.0)[0].reason, Reason::Within { detectable: false });
        assert_eq!(judged(1.05)[0].reason, Reason::Within { detectable: true });
    }

    #[test]
    fn few_boots_have_no_interval_and_sizes_may_differ() {
        let few = judge_samples(&[samples(&around(1.0)[..3], &around(1.2)[..3], true)]);
        assert_eq!(few[0].reason, Reason::TooFew { needed: 4 });
        let uneven = judge_samples(&[samples(&around(1.0)[..3], &around(1.2), true)]);
        assert_eq!(uneven[0].verdict, Verdict::Regression);
        let none = judge_samples(&[samples(&[], &around(1.2), true)]);
        assert_eq!(none[0].verdict, Verdict::Invalid);
        let bad = judge_samples(&[samples(&[f64::NAN], &around(1.2), true)]);
        assert_eq!(bad[0].reason, Reason::Unusable(StatsError::NotFinite));
    }

    #[test]
    fn one_of_many_series_has_to_stand_out_further() {
        // Four boots a side: the smallest p there is, 2/70, does for one series, not for one of ten.
        let one = samples(&around(1.0)[..4], &around(1.3)[..4], true);
        assert_eq!(judge_samples(std::slice::from_ref(&one))[0].verdict, Verdict::Regression);
        let mut many = vec![samples(&around(1.0)[..4], &around(1.0)[..4], true); 9];
        many.push(one);
        assert_eq!(judge_samples(&many)[9].reason, Reason::Family { series: 10 });
    }

    #[test]
    fn false_alarms_stay_below_the_level() {
        let mut random = Random::new(20);
        let mut boots = || (0..8).map(|_| 0.04 * random.normal()).collect::<Vec<f64>>();
        let alarms = (0..4000).filter(|_| {
            let one = Samples { delta: 0.0, ..samples(&boots(), &boots(), true) };
            judge_samples(&[one])[0].verdict != Verdict::Inconclusive
        });
        let rate = alarms.count() as f64 / 4000.0;
        // The largest size of the exact test below 5 % at eight and eight is .0499.
        assert!((0.035..=0.062).contains(&rate), "{rate}");
    }
}
