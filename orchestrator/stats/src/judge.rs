use crate::error::StatsError;
use crate::family::benjamini_hochberg;
use crate::looks::{ALPHA, Look, Looks};
use crate::statistic::View;
use crate::verdict::{Better, Finding, Reason, Verdict};
use crate::{Pair, Statistic};

/// One series of one side against the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// One per block that is over, in schedule order; `None` if it was dropped, for a reason that is
    /// not in its values.
    pub pairs: Vec<Option<Pair>>,
    /// The change that matters, on the log scale.
    pub delta: f64,
    /// Which direction is better.
    pub better: Better,
    /// Whether it belongs to the family that decides the run.
    pub primary: bool,
}

/// How a run is decided, fixed before it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// What estimate, interval and p-value are.
    pub statistic: Statistic,
    /// When.
    pub looks: Looks,
}

impl Rule {
    /// Ranks, at up to `pairs` pairs.
    pub fn planned(pairs: usize) -> Self {
        Self { statistic: Statistic::SignedRank, looks: Looks::up_to(pairs) }
    }

    /// One look at `pairs` pairs, usually [`crate::QUICK_PAIRS`], with Student's t.
    pub fn quick(pairs: usize) -> Self {
        Self { statistic: Statistic::PairedT, looks: Looks::once(pairs) }
    }

    /// A confidence sequence, looked at after every pair up to `pairs`.
    pub fn anytime(pairs: usize) -> Self {
        Self { statistic: Statistic::Anytime, looks: Looks::every(pairs) }
    }

    /// Whether a run under this rule is over: every primary series is decided or had its last look.
    pub fn is_over(&self, series: &[Series], findings: &[Finding]) -> bool {
        let primary = series.iter().zip(findings).filter(|(series, _)| series.primary);
        primary.into_iter().all(|(series, finding)| {
            finding.verdict.is_decided() || series.pairs.len() >= self.looks.pairs()
        })
    }
}

/// Judges all series of a run by the looks taken so far, one finding for each, in order. Primary and
/// secondary series are two families, differences and equivalences are judged apart.
///
/// `ended`: no more blocks will come, for a reason that is not in the values.
pub fn judge(series: &[Series], rule: &Rule, ended: bool) -> Vec<Finding> {
    judge_each(&series.iter().map(|series| (series, rule)).collect::<Vec<_>>(), ended)
}

/// As [`judge`], where the rules differ: one experiment of the run has more pairs than another.
pub fn judge_each(series: &[(&Series, &Rule)], ended: bool) -> Vec<Finding> {
    let seen: Vec<Result<Seen, StatsError>> =
        series.iter().map(|(series, rule)| Seen::of(series, rule, ended)).collect();
    let mut findings: Vec<Option<Finding>> = vec![None; series.len()];
    for primary in [true, false] {
        let members: Vec<usize> =
            (0..series.len()).filter(|index| series[*index].0.primary == primary).collect();
        let p = |of: fn(&Seen) -> f64| -> Vec<f64> {
            members.iter().map(|index| seen[*index].as_ref().map_or(1.0, of)).collect()
        };
        let differences = Family::of(&p(|seen| seen.difference.over_looks));
        let equivalences = Family::of(&p(|seen| seen.equivalence.over_looks));
        for (place, index) in members.iter().enumerate() {
            let shares = (differences.share(place), equivalences.share(place));
            let (series, rule) = series[*index];
            findings[*index] = Some(match &seen[*index] {
                Ok(seen) => seen
                    .finding(series, rule, shares, members.len())
                    .unwrap_or_else(|error| Finding::invalid(error, seen.pairs, seen.look)),
                Err(error) => {
                    let look = rule.looks.taken(series.pairs.len(), ended).last().copied();
                    Finding::invalid(*error, series.pairs.iter().flatten().count(), look)
                }
            });
        }
    }
    findings.into_iter().flatten().collect()
}

/// What Benjamini and Hochberg's procedure leaves of a family.
pub(crate) struct Family {
    selected: Vec<bool>,
    /// R/m: the part of the error that a selected one may use.
    share: f64,
}

impl Family {
    pub(crate) fn of(p: &[f64]) -> Self {
        let selected = benjamini_hochberg(p, ALPHA).unwrap_or_else(|_| vec![false; p.len()]);
        let count = selected.iter().filter(|selected| **selected).count();
        Self { share: count as f64 / p.len().max(1) as f64, selected }
    }

    pub(crate) fn share(&self, place: usize) -> Option<f64> {
        self.selected[place].then_some(self.share)
    }
}

/// p-values of one question.
#[derive(Clone, Copy)]
struct Evidence {
    /// At the last look.
    now: f64,
    /// The smallest of all looks, each multiplied by how little of the error it may spend.
    over_looks: f64,
}

impl Evidence {
    const NONE: Self = Self { now: 1.0, over_looks: 1.0 };

    fn and(self, look: &Look, p: f64) -> Self {
        Self { now: p, over_looks: self.over_looks.min(look.spent(p)) }
    }

    /// Whether it still stands at the last look at the part of the error it was given. Then, and
    /// only then, the interval widened to that part says the same.
    fn holds(self, alpha: f64, share: Option<f64>) -> bool {
        share.is_some_and(|share| self.now <= alpha * share * (1.0 + 1e-12))
    }
}

/// One series at all looks taken.
struct Seen {
    look: Option<Look>,
    view: Option<View>,
    pairs: usize,
    difference: Evidence,
    equivalence: Evidence,
}

impl Seen {
    fn of(series: &Series, rule: &Rule, ended: bool) -> Result<Self, StatsError> {
        let mut seen = Self {
            look: None,
            view: None,
            pairs: 0,
            difference: Evidence::NONE,
            equivalence: Evidence::NONE,
        };
        for look in rule.looks.taken(series.pairs.len(), ended) {
            let valid: Vec<Pair> = series.pairs[..look.pairs].iter().copied().flatten().collect();
            seen.look = Some(look);
            seen.pairs = valid.len();
            let view = match rule.statistic.view(&valid) {
                // Too few at an early look may be enough at a later one.
                Err(StatsError::TooFew { .. }) if !valid.is_empty() => continue,
                view => view?,
            };
            seen.difference = seen.difference.and(&look, view.p_difference()?);
            seen.equivalence = seen.equivalence.and(&look, view.p_equivalence(series.delta)?);
            seen.view = Some(view);
        }
        if seen.look.is_none() {
            let valid: Vec<Pair> = series.pairs.iter().copied().flatten().collect();
            seen.pairs = valid.len();
            seen.view = rule.statistic.view(&valid).ok();
        }
        Ok(seen)
    }

    /// `shares`: of difference and equivalence, where they were selected.
    fn finding(
        &self,
        series: &Series,
        rule: &Rule,
        shares: (Option<f64>, Option<f64>),
        family: usize,
    ) -> Result<Finding, StatsError> {
        let estimate = self.view.as_ref().map(View::estimate);
        let first = rule.looks.all().first().map_or(0, |look| look.pairs);
        let mut finding = Finding {
            estimate,
            interval: None,
            p: self.difference.over_looks,
            pairs: self.pairs,
            look: self.look,
            verdict: Verdict::Inconclusive,
            reason: Reason::BeforeFirstLook { first },
        };
        let Some(Look { alpha, .. }) = self.look else { return Ok(finding) };
        let (Some(view), Some(estimate)) = (&self.view, estimate) else {
            finding.reason = Reason::TooFew { needed: rule.statistic.fewest(alpha)? };
            return Ok(finding);
        };
        let beyond = estimate.abs() >= series.delta;
        let differs = self.difference.holds(alpha, shares.0);
        let mut level = alpha;
        if differs && beyond {
            level *= shares.0.unwrap_or(1.0);
            finding.verdict = Verdict::of_change(estimate, series.better);
            finding.reason = Reason::Beyond;
        } else if self.equivalence.holds(alpha, shares.1) {
            level *= shares.1.unwrap_or(1.0);
            finding.verdict = Verdict::NoChange;
            finding.reason = Reason::Within { detectable: differs };
        }
        // A selected equivalence may be too far widened for so few pairs to have an interval.
        finding.interval = match view.interval(level)? {
            None => view.interval(alpha)?,
            interval => interval,
        };
        if finding.verdict == Verdict::Inconclusive {
            let alone = (beyond && self.difference.now <= alpha) || self.equivalence.now <= alpha;
            finding.reason = match finding.interval {
                _ if alone => Reason::Family { series: family },
                None => Reason::TooFew { needed: rule.statistic.fewest(alpha)? },
                Some(interval) => open(interval.half_width(), series.delta, self.pairs),
            };
        }
        Ok(finding)
    }
}

pub(crate) fn open(half: f64, delta: f64, pairs: usize) -> Reason {
    if half < delta {
        return Reason::NearMargin;
    }
    Reason::Open { smallest: half, needed: (pairs as f64 * (half / delta).powi(2)).ceil() }
}
