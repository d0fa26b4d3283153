use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::plan::{Plan, PlannedExperiment, PlannedSide};
use crate::text::count;

use super::decide::{Answer, Question, decide};
use super::failures::{KernelBoots, fails};
use super::series::{Metric, Summaries, latest, latest_results, metrics};
use super::{Comparison, SeriesName, Verdict, default_margin};
use crate::plan::series_label;

/// Every candidate of `experiment` against its base, series by series. `mixed`: the run's boots did
/// not all use the same accelerator, so nothing may be compared.
pub(super) fn compare_experiment(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    mixed: bool,
) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    let Some((base, candidates)) = experiment.sides.split_first() else { return comparisons };
    let results: Vec<_> = experiment
        .sides
        .iter()
        .flat_map(|side| latest_results(records, &experiment.name, &side.name).into_values())
        .collect();
    let base_kernel = KernelBoots::of(&experiment.name, &base.name, records);
    for trial in &experiment.trials {
        for metric in metrics(trial, &results) {
            let summaries = |side: &PlannedSide| {
                Summaries::of(&latest(records, &experiment.name, &side.name), trial, &metric)
            };
            let base_summaries = summaries(base);
            for side in candidates {
                let accel = records.first().map_or(Accel::Tcg, |record| record.accel);
                let pairing = Pairing {
                    base_name: &base.name,
                    side_name: &side.name,
                    base: &base_summaries,
                    side: &summaries(side),
                    metric: &metric,
                    margin: default_margin(accel, &trial.workload, &metric.name),
                    quick: plan.quick,
                };
                let series = SeriesName {
                    experiment: experiment.name.clone(),
                    workload: series_label(trial),
                    metric: metric.name.clone(),
                };
                let mut comparison = pairing.compare(series);
                if mixed {
                    comparison.verdict = Verdict::Invalid;
                    comparison.reason = "accelerators were mixed".into();
                }
                let kernel = KernelBoots::of(&experiment.name, &side.name, records);
                if let Some(why) = fails(&kernel, &base_kernel) {
                    comparison.verdict = Verdict::Fails;
                    comparison.reason = why;
                }
                comparisons.push(comparison);
            }
        }
    }
    comparisons
}

/// One candidate and its base, for one series.
struct Pairing<'a> {
    base_name: &'a str,
    side_name: &'a str,
    base: &'a Summaries,
    side: &'a Summaries,
    metric: &'a Metric,
    margin: f64,
    quick: bool,
}

impl Pairing<'_> {
    fn compare(&self, series: SeriesName) -> Comparison {
        let differences: Vec<f64> = self
            .side
            .valid
            .iter()
            .filter_map(|(block, value)| Some(value - self.base.valid.get(block)?))
            .collect();
        let mut comparison = Comparison {
            series,
            side: self.side_name.to_owned(),
            unit: self.metric.unit.clone(),
            better: self.metric.better,
            primary: self.metric.primary,
            base: self.base.location(),
            value: self.side.location(),
            change: None,
            low: None,
            high: None,
            confidence: None,
            margin: self.margin,
            pairs: differences.len(),
            dropped: self.ended() - differences.len(),
            verdict: Verdict::Invalid,
            reason: String::new(),
            exact: None,
        };
        match self.obstacle(&differences) {
            Some(reason) => comparison.reason = reason,
            None => self.fill(&mut comparison, &differences),
        }
        comparison
    }

    /// Blocks whose pair is over: both boots ended, or one of them in a way that spoils the pair. A
    /// good boot that still waits for its other half is not lost.
    fn ended(&self) -> usize {
        let sides = [self.base, self.side];
        let blocks = self.base.boots.union(&self.side.boots);
        blocks
            .filter(|block| {
                sides.iter().all(|side| side.boots.contains(block))
                    || !sides.iter().any(|side| side.valid.contains_key(block))
            })
            .count()
    }

    fn fill(&self, comparison: &mut Comparison, differences: &[f64]) {
        let (better, margin, quick) = (self.metric.better, self.margin, self.quick);
        match decide(&Question { differences, better, margin, quick }) {
            Ok(Answer { estimate, interval, verdict, reason }) => {
                comparison.change = Some(estimate.exp_m1());
                comparison.low = interval.map(|interval| interval.low.exp_m1());
                comparison.high = interval.map(|interval| interval.high.exp_m1());
                comparison.confidence = interval.map(|interval| interval.confidence);
                comparison.verdict = verdict;
                comparison.reason = reason;
            }
            Err(error) => comparison.reason = error.to_string(),
        }
    }

    /// Why there is nothing to decide.
    fn obstacle(&self, differences: &[f64]) -> Option<String> {
        let sides = [(self.base_name, self.base), (self.side_name, self.side)];
        for (name, summaries) in sides {
            if let Some(why) = &summaries.broken {
                return Some(format!("{name}: {why}"));
            }
        }
        let lacking: Vec<&str> =
            sides.iter().filter(|(_, s)| s.lacks_metric()).map(|(name, _)| *name).collect();
        if !lacking.is_empty() {
            let boots = count(sides.iter().map(|(_, s)| s.missing).sum(), "boot");
            return Some(format!(
                "{} gave no {} in {boots}",
                lacking.join(" and "),
                self.metric.name
            ));
        }
        differences.is_empty().then(|| no_pair(&sides))
    }
}

fn no_pair(sides: &[(&str, &Summaries)]) -> String {
    let mut causes = Vec::new();
    for (name, summaries) in sides {
        for (why, boots) in &summaries.reasons {
            causes.push(format!("{name}: {why} ({})", count(*boots, "boot")));
        }
    }
    if causes.is_empty() {
        return "no pair was finished".into();
    }
    format!("no valid pair; {}", causes.join("; "))
}
