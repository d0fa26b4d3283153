//! Timed boots of different runs: two samples, no pairs.

use crate::analyse::monitors::{kernel_log, monitors};
use kduel_stats::{Finding, Reason, Samples, judge_samples};

use crate::analyse::decide::better;
use crate::analyse::distribution::distributions;
use crate::analyse::failures::{KernelBoots, fails};
use crate::analyse::reason::whatever_is_compared;
use crate::analyse::series::{Metric, Summaries, latest, latest_results, metrics};
use crate::analyse::sides::summarise;
use crate::analyse::warnings::warn;
use crate::analyse::{Analysis, Comparison, SeriesName, Verdict, timed_margin};
use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::plan::{Plan, PlannedExperiment, PlannedSide, series_label};
use crate::report::number;
use crate::text::count;

const BASIS: &str = "boots of different runs, no pairs, one look; value is the median of the boots, \
                     change the two-sample Hodges-Lehmann shift (so not quite a ratio of values), \
                     pairs counts the boots of the side that has fewer, interval exact rank sum, at least \
                     95 %";

/// Every side against the first, series by series.
pub(super) fn analyse_boots(plan: &Plan, records: &[BootRecord]) -> Analysis {
    let (mut sides, mut warnings, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for experiment in &plan.experiments {
        let own: Vec<_> =
            experiment.sides.iter().map(|side| summarise(experiment, side, records)).collect();
        warn(experiment, &own, records, &mut warnings);
        sides.extend(own);
        open.extend(compare(experiment, records));
    }
    let asked: Vec<Samples> = open.iter().filter_map(|(_, samples)| samples.clone()).collect();
    let mut findings = judge_samples(&asked).into_iter();
    let comparisons: Vec<Comparison> = open
        .into_iter()
        .map(|(mut comparison, samples)| {
            if let Some(finding) = samples.and_then(|_| findings.next()) {
                fill(&mut comparison, &finding);
            }
            comparison
        })
        .collect();
    let wider =
        if asked.len() > 1 { ", wider where several series are judged at once" } else { "" };
    Analysis {
        accel: records.first().map(|record| record.accel),
        basis: format!("{BASIS}{wider}"),
        distributions: distributions(plan, records),
        worst: super::worst(&comparisons),
        comparisons,
        sides,
        monitors: monitors(plan, records),
        kernel_log: kernel_log(plan, records),
        warnings,
    }
}

type Open = (Comparison, Option<Samples>);

fn compare(experiment: &PlannedExperiment, records: &[BootRecord]) -> Vec<Open> {
    let mut open = Vec::new();
    let Some((base, others)) = experiment.sides.split_first() else { return open };
    let results: Vec<_> = experiment
        .sides
        .iter()
        .flat_map(|side| latest_results(records, &experiment.name, &side.name).into_values())
        .collect();
    for trial in &experiment.trials {
        for metric in metrics(trial, &results) {
            let of = |side: &PlannedSide| {
                Summaries::of(&latest(records, &experiment.name, &side.name), trial, &metric)
            };
            let base_boots = of(base);
            for side in others {
                let series = SeriesName {
                    experiment: experiment.name.clone(),
                    workload: series_label(trial),
                    metric: metric.name.clone(),
                };
                let accel = records.first().map_or(Accel::Tcg, |record| record.accel);
                let names = (metric.name.as_str(), metric.unit.as_str());
                let margin = timed_margin(experiment, trial, names, accel);
                let margin = margin.of(base_boots.location().unwrap_or_default());
                let two = [(&base.name, &base_boots), (&side.name, &of(side))];
                let mut one = opened(series, &metric, margin, two.map(|(n, s)| (n.as_str(), s)));
                let kernel =
                    |side: &PlannedSide| KernelBoots::of(&experiment.name, &side.name, records);
                if let Some(why) = fails(&kernel(side), &kernel(base)) {
                    (one.0.verdict, one.0.reason, one.1) = (Verdict::Fails, why, None);
                }
                open.push(one);
            }
        }
    }
    open
}

fn opened(
    series: SeriesName,
    metric: &Metric,
    margin: f64,
    [(base_name, base), (side_name, side)]: [(&str, &Summaries); 2],
) -> Open {
    let lost = |boots: &Summaries| boots.boots.len() - boots.valid.len();
    let values = |boots: &Summaries| boots.valid.values().copied().collect::<Vec<f64>>();
    let mut comparison = Comparison {
        series,
        side: side_name.to_owned(),
        unit: metric.unit.clone(),
        better: metric.better,
        primary: metric.primary,
        base: base.location(),
        value: side.location(),
        change: None,
        low: None,
        high: None,
        confidence: None,
        margin,
        pairs: base.valid.len().min(side.valid.len()),
        dropped: lost(base).max(lost(side)),
        all_pairs: None,
        timed: None,
        verdict: Verdict::Invalid,
        reason: String::new(),
        exact: None,
    };
    for (name, boots) in [(base_name, base), (side_name, side)] {
        let causes: Vec<&str> = boots.reasons.keys().map(String::as_str).collect();
        let why = match (&boots.broken, boots.valid.is_empty()) {
            (Some(why), _) => why.clone(),
            (None, true) if causes.is_empty() => "no boot was finished".to_owned(),
            (None, true) => format!("no valid boot; {}", causes.join("; ")),
            (None, false) => continue,
        };
        comparison.reason = format!("{name}: {why}");
        if boots.contaminated > 0 {
            comparison.verdict = Verdict::Inconclusive;
        }
        return (comparison, None);
    }
    let samples = Samples {
        base: values(base),
        side: values(side),
        delta: margin.ln_1p(),
        better: better(metric.better),
        primary: metric.primary,
    };
    (comparison, Some(samples))
}

fn fill(comparison: &mut Comparison, finding: &Finding) {
    comparison.change = finding.estimate.map(f64::exp_m1);
    comparison.low = finding.interval.map(|interval| interval.low.exp_m1());
    comparison.high = finding.interval.map(|interval| interval.high.exp_m1());
    comparison.confidence = finding.interval.map(|interval| interval.confidence);
    comparison.verdict = crate::analyse::decide::verdict(finding.verdict);
    comparison.reason = words(finding, comparison.margin);
}

fn words(finding: &Finding, margin: f64) -> String {
    match &finding.reason {
        Reason::Open { smallest, needed } => format!(
            "smallest change that could have been seen: {}; boots a side needed for {}: about {needed}",
            number::percent(smallest.exp_m1()),
            number::margin(margin)
        ),
        Reason::TooFew { needed } => format!(
            "{} a side cannot give a 95 % interval; at least {needed} are needed",
            count(finding.pairs, "boot")
        ),
        reason => whatever_is_compared(reason, margin),
    }
}
