use std::collections::BTreeSet;

use kduel_protocol::{Better, ExactMetric, TrialSpec};
use kduel_stats::Margin;

use super::counts::{per_operation, risen, total};
use super::decide::{Answer, MARGIN, decide};
use super::series::{SideValues, not_exact};
use super::{ExactFinding, ExactWord};
use crate::analyse::failures::{KernelBoots, fails};
use crate::analyse::{Comparison, SeriesName, Verdict};
use crate::collect::BootRecord;
use crate::plan::series_label;
use crate::plan::{Plan, PlannedExperiment, PlannedSide, exact_metric};

/// Every candidate of `experiment` against its base, series by series, CPU model by CPU model.
pub(in crate::analyse) fn compare_exact(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
) -> Vec<Comparison> {
    let broken = not_exact(plan, records);
    let mut comparisons = Vec::new();
    for trial in &experiment.trials {
        let primary = exact_metric(trial);
        let other = match primary {
            ExactMetric::Instructions => ExactMetric::GuestTime,
            ExactMetric::GuestTime => ExactMetric::Instructions,
        };
        for metric in [primary, other] {
            let asked = Asked { experiment, records, trial, metric, primary: metric == primary };
            comparisons.extend(asked.comparisons(broken.as_deref()));
        }
    }
    comparisons
}

/// One metric of one trial.
struct Asked<'a> {
    experiment: &'a PlannedExperiment,
    records: &'a [BootRecord],
    trial: &'a TrialSpec,
    metric: ExactMetric,
    primary: bool,
}

impl Asked<'_> {
    fn comparisons(&self, broken: Option<&str>) -> Vec<Comparison> {
        let Some((base, candidates)) = self.experiment.sides.split_first() else {
            return Vec::new();
        };
        let cpus: Vec<&str> = distinct(self.experiment);
        let mut all = Vec::new();
        for side in candidates {
            let mut own: Vec<Comparison> = cpus
                .iter()
                .filter_map(|cpu| self.compare(base, side, cpu, cpus.len() > 1))
                .collect();
            tell_disagreement(&mut own);
            for comparison in &mut own {
                self.overrule(comparison, base, side, broken);
            }
            all.extend(own);
        }
        all
    }

    /// None for a secondary metric that neither side gave.
    fn compare(
        &self,
        base: &PlannedSide,
        side: &PlannedSide,
        cpu: &str,
        several: bool,
    ) -> Option<Comparison> {
        let of = |side| {
            let name = self.metric.name();
            SideValues::of(self.records, self.experiment, side, cpu, self.trial, name)
        };
        let (a, b) = (of(base), of(side));
        if !self.primary && (a.seeds.is_empty() || b.seeds.is_empty()) {
            return None;
        }
        let dimension = if several { format!(" cpu={cpu}") } else { String::new() };
        let mut comparison = Comparison {
            series: SeriesName {
                experiment: self.experiment.name.clone(),
                workload: format!("{}{dimension}", series_label(self.trial)),
                metric: self.metric.name().to_owned(),
            },
            side: side.name.clone(),
            unit: if a.unit.is_empty() { b.unit.clone() } else { a.unit.clone() },
            better: Better::Lower,
            primary: self.primary,
            base: kduel_stats::mean(&a.means()).ok(),
            value: kduel_stats::mean(&b.means()).ok(),
            change: None,
            low: None,
            high: None,
            confidence: None,
            margin: self.margin(&a).of(kduel_stats::mean(&a.means()).unwrap_or_default()),
            pairs: a.seeds.len().min(b.seeds.len()),
            dropped: 0,
            all_pairs: None,
            timed: None,
            verdict: Verdict::Invalid,
            reason: String::new(),
            exact: Some(Box::new(self.finding(&a, &b, cpu))),
        };
        self.fill(&mut comparison, &a, &b, (&base.name, &side.name));
        Some(comparison)
    }

    fn margin(&self, base: &SideValues<'_>) -> Margin {
        self.experiment.margin.of(&base.unit, MARGIN)
    }

    fn finding(&self, a: &SideValues<'_>, b: &SideValues<'_>, cpu: &str) -> ExactFinding {
        let mut finding = ExactFinding {
            word: None,
            cpu: cpu.to_owned(),
            spread: [a.spread(), b.spread()],
            classes: Vec::new(),
            contexts: Vec::new(),
            events: Vec::new(),
            mixed: Vec::new(),
        };
        if self.primary && !a.windows.is_empty() && !b.windows.is_empty() {
            finding.classes = per_operation(&a.windows, &b.windows, |window| &window.own);
            finding.contexts = per_operation(&a.windows, &b.windows, |window| &window.contexts);
            finding.contexts.push(total(&a.windows, &b.windows));
            finding.events = per_operation(&a.windows, &b.windows, |window| &window.events);
        }
        finding
    }

    fn fill(
        &self,
        comparison: &mut Comparison,
        a: &SideValues<'_>,
        b: &SideValues<'_>,
        (base, side): (&str, &str),
    ) {
        for (name, values) in [(base, a), (side, b)] {
            if let Some(why) = &values.obstacle {
                comparison.reason = format!("{name} {why}");
                return;
            }
        }
        match decide(&a.seeds, &b.seeds, self.margin(a), comparison.margin) {
            Err(error) => comparison.reason = error.to_string(),
            Ok(Answer { change, interval, word, reason }) => {
                comparison.change = Some(change);
                comparison.low = interval.map(|interval| interval.low.exp_m1());
                comparison.high = interval.map(|interval| interval.high.exp_m1());
                comparison.confidence = interval.map(|interval| interval.confidence);
                comparison.verdict = word.map_or(Verdict::Inconclusive, ExactWord::verdict);
                comparison.reason = reason;
                let Some(finding) = &mut comparison.exact else { return };
                finding.word = word;
                let work = self.metric == ExactMetric::Instructions;
                if work && word == Some(ExactWord::FewerInstructions) {
                    finding.mixed = risen(&finding.classes);
                }
            }
        }
    }

    /// What no number stands against: a self-test that failed, a kernel that does not run.
    fn overrule(
        &self,
        comparison: &mut Comparison,
        base: &PlannedSide,
        side: &PlannedSide,
        broken: Option<&str>,
    ) {
        if let (Some(why), Some(finding)) = (broken, &mut comparison.exact) {
            finding.word = Some(ExactWord::NotExact);
            comparison.verdict = ExactWord::NotExact.verdict();
            comparison.reason = why.to_owned();
        }
        let kernel =
            |side: &PlannedSide| KernelBoots::of(&self.experiment.name, &side.name, self.records);
        if let Some(why) = fails(&kernel(side), &kernel(base)) {
            comparison.verdict = Verdict::Fails;
            comparison.reason = why;
            if let Some(finding) = &mut comparison.exact {
                finding.word = None;
            }
        }
    }
}

/// The CPU models of an experiment, in order.
fn distinct(experiment: &PlannedExperiment) -> Vec<&str> {
    let mut seen = BTreeSet::new();
    let models = experiment.blocks.iter().filter_map(|block| block.cpu.as_deref());
    models.filter(|cpu| seen.insert(*cpu)).collect()
}

/// More on one model and less on another is an answer of its own.
fn tell_disagreement(comparisons: &mut [Comparison]) {
    let has = |word| {
        comparisons.iter().any(|c| c.exact.as_ref().is_some_and(|exact| exact.word == Some(word)))
    };
    if !(has(ExactWord::MoreInstructions) && has(ExactWord::FewerInstructions)) {
        return;
    }
    for comparison in comparisons {
        comparison.verdict = ExactWord::DependsOnCpu.verdict();
        "more on one CPU model, less on another".clone_into(&mut comparison.reason);
        if let Some(finding) = &mut comparison.exact {
            finding.word = Some(ExactWord::DependsOnCpu);
        }
    }
}
