use kduel_protocol::Better;
use kduel_stats::{Downgrade, Finding, Interval, Looks, Rule, Series, judge_each};

use crate::plan::{Plan, PlannedExperiment, Statistic};

use super::{AllPairs, Comparison, Verdict, reason};
use crate::text::count;

/// A comparison that is still to be judged; `series` is absent where there is nothing to judge.
pub(super) struct Open {
    pub comparison: Comparison,
    pub series: Option<Series>,
    /// With the pairs that the host spoilt, if it spoilt any.
    pub all: Option<Series>,
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
        _ if plan.calibrate => {
            Rule { statistic: kduel_stats::Statistic::SignedRank, looks: Looks::once(pairs) }
        }
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
    let mut with_spoilt = judge_all_pairs(&open).into_iter();
    let mut comparisons = Vec::with_capacity(open.len());
    for Open { mut comparison, series, all, rule, doubts, overruled } in open {
        if let Some(finding) = series.as_ref().and_then(|_| findings.next()) {
            fill(&mut comparison, &finding.downgraded(doubts), &rule);
        }
        let finding = all.as_ref().or(series.as_ref()).and_then(|_| with_spoilt.next());
        if let (Some(finding), Some(_)) = (finding, all) {
            tell_all_pairs(&mut comparison, &finding);
        }
        if let Some((verdict, why)) = overruled {
            (comparison.verdict, comparison.reason) = (verdict, why);
        }
        comparisons.push(comparison);
    }
    comparisons
}

/// As if no pair had been dropped for what the host did; nothing is judged if none was.
fn judge_all_pairs(open: &[Open]) -> Vec<Finding> {
    if open.iter().all(|open| open.all.is_none()) {
        return Vec::new();
    }
    let asked: Vec<(&Series, &Rule)> = open
        .iter()
        .filter_map(|each| Some((each.all.as_ref().or(each.series.as_ref())?, &each.rule)))
        .collect();
    judge_each(&asked, false)
}

/// Both ways, and where they differ in words.
fn tell_all_pairs(comparison: &mut Comparison, finding: &Finding) {
    let all = AllPairs {
        pairs: finding.pairs,
        change: finding.estimate.map(f64::exp_m1),
        low: finding.interval.map(|interval| interval.low.exp_m1()),
        high: finding.interval.map(|interval| interval.high.exp_m1()),
        verdict: verdict(finding.verdict),
    };
    if all.verdict != comparison.verdict {
        let (words, pairs) = (all.verdict.words(), count(all.pairs, "pair"));
        comparison.reason += &format!("; with what the host spoilt it would be {words}, {pairs}");
    }
    comparison.all_pairs = Some(all);
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
