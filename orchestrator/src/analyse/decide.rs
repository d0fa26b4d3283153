use kduel_protocol::Better;
use kduel_stats::{Downgrade, Finding, Interval, Looks, Rule, Series, judge_each};

use crate::plan::{Plan, PlannedExperiment, Statistic};

use super::{Comparison, Verdict, reason};

/// A comparison that is still to be judged; `series` is absent where there is nothing to judge.
pub(super) struct Open {
    pub comparison: Comparison,
    pub series: Option<Series>,
    /// Of its experiment.
    pub rule: Rule,
    /// Why the numbers may not be believed.
    pub doubts: Vec<Downgrade>,
    /// What no number stands against.
    pub overruled: Option<(Verdict, String)>,
}

/// How the series of `experiment` are decided, fixed by its plan.
pub(super) fn rule(plan: &Plan, experiment: &PlannedExperiment) -> Rule {
    let pairs = experiment.blocks.len();
    let planned = |statistic| Rule { statistic, looks: Looks::up_to(pairs) };
    match plan.statistic {
        _ if plan.quick => Rule::quick(pairs),
        Statistic::SignedRank => planned(kduel_stats::Statistic::SignedRank),
        Statistic::T => planned(kduel_stats::Statistic::PairedT),
        Statistic::Welch => planned(kduel_stats::Statistic::Welch),
        Statistic::Anytime => Rule::anytime(pairs),
    }
}

/// Judges the comparisons of a run, all at once: the more there are, the more one of them has to show.
pub(super) fn judge_all(open: Vec<Open>) -> Vec<Comparison> {
    let asked: Vec<(&Series, &Rule)> =
        open.iter().filter_map(|open| Some((open.series.as_ref()?, &open.rule))).collect();
    let mut findings = judge_each(&asked, false).into_iter();
    let mut comparisons = Vec::with_capacity(open.len());
    for Open { mut comparison, series, rule, doubts, overruled } in open {
        if let Some(finding) = series.and_then(|_| findings.next()) {
            fill(&mut comparison, &finding.downgraded(doubts), &rule);
        }
        if let Some((verdict, why)) = overruled {
            (comparison.verdict, comparison.reason) = (verdict, why);
        }
        comparisons.push(comparison);
    }
    comparisons
}

fn fill(comparison: &mut Comparison, finding: &Finding, rule: &Rule) {
    comparison.change = finding.estimate.map(f64::exp_m1);
    let end = |of: fn(&Interval) -> f64| finding.interval.as_ref().map(|i| of(i).exp_m1());
    comparison.low = end(|interval| interval.low);
    comparison.high = end(|interval| interval.high);
    comparison.confidence = finding.interval.map(|interval| interval.confidence);
    if finding.look.is_some() {
        comparison.pairs = finding.pairs;
    }
    comparison.verdict = verdict(finding.verdict);
    comparison.reason = reason::words(finding, rule, comparison.margin);
}

pub(super) fn verdict(found: kduel_stats::Verdict) -> Verdict {
    match found {
        kduel_stats::Verdict::Regression => Verdict::Regression,
        kduel_stats::Verdict::Improvement => Verdict::Improvement,
        kduel_stats::Verdict::NoChange => Verdict::NoChange,
        kduel_stats::Verdict::Inconclusive => Verdict::Inconclusive,
        kduel_stats::Verdict::Invalid => Verdict::Invalid,
    }
}

/// In the words of the statistics.
pub(super) fn better(better: Better) -> kduel_stats::Better {
    match better {
        Better::Lower => kduel_stats::Better::Lower,
        Better::Higher => kduel_stats::Better::Higher,
    }
}
