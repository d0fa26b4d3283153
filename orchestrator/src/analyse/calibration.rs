//! What a run of one kernel against itself says about the host.

use kduel_protocol::TrialSpec;
use kduel_stats::{Calibration, Levels, Margin, Pair, Statistic, StatsError, calibrate};

use super::default_margin;
use super::series::{Metric, Summaries, latest, latest_results, metrics};
use crate::collect::BootRecord;
use crate::plan::{CalibratedSeries, Plan, PlannedExperiment, series_label};

/// Of one series.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesCalibration {
    /// The experiment.
    pub experiment: String,
    /// The workload with its parameters.
    pub workload: String,
    /// The metric.
    pub metric: String,
    /// What was found, and the variances of iterations and boots.
    pub found: Result<(Calibration, Levels), StatsError>,
}

impl SeriesCalibration {
    /// What later runs take, if this host may be believed.
    pub fn kept(&self, run: &str) -> Option<CalibratedSeries> {
        let (calibration, levels) = self.found.as_ref().ok()?;
        calibration.passes.then(|| CalibratedSeries {
            workload: self.workload.clone(),
            metric: self.metric.clone(),
            // Whole thousandths, upwards: more digits would feign knowledge.
            margin: (calibration.margin.relative * 1e3).ceil() / 1e3,
            iteration_variance: levels.iteration,
            boot_variance: levels.boot,
            run: run.to_owned(),
        })
    }
}

/// Every series of a run that compared each base with itself.
pub fn calibrations(plan: &Plan, records: &[BootRecord]) -> Vec<SeriesCalibration> {
    let mut found = Vec::new();
    for experiment in &plan.experiments {
        let [base, again] = &experiment.sides[..] else { continue };
        let results: Vec<_> = [base, again]
            .iter()
            .flat_map(|side| latest_results(records, &experiment.name, &side.name).into_values())
            .collect();
        for trial in &experiment.trials {
            for metric in metrics(trial, &results) {
                found.push(SeriesCalibration {
                    experiment: experiment.name.clone(),
                    workload: series_label(trial),
                    metric: metric.name.clone(),
                    found: of_series(plan, experiment, records, trial, &metric),
                });
            }
        }
    }
    found
}

fn of_series(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    trial: &TrialSpec,
    metric: &Metric,
) -> Result<(Calibration, Levels), StatsError> {
    let sides = [0, 1].map(|side| latest(records, &experiment.name, &experiment.sides[side].name));
    let [base, again] = sides.each_ref().map(|boots| Summaries::of(boots, trial, metric));
    let of_block = |(block, base): (&usize, &f64)| {
        let base_first = experiment.blocks.get(*block)?.order.first() == Some(&0);
        Some(Pair { base: *base, side: *again.valid.get(block)?, base_first })
    };
    let pairs: Vec<Pair> = base.valid.iter().filter_map(of_block).collect();
    let accel = records.first().map_or(crate::boot::Accel::Tcg, |record| record.accel);
    let class = Margin::relative(default_margin(accel, &trial.workload, &metric.name));
    let calibration = calibrate(&pairs, class, Statistic::SignedRank, plan.seed)?;
    let logs = |record: &&BootRecord| -> Vec<f64> {
        let samples = super::sides::result(record).into_iter().flat_map(|result| &result.samples);
        let own = samples.filter(|s| s.trial == trial.id && s.metric == metric.name);
        own.map(|sample| sample.value.ln()).collect()
    };
    let boots: Vec<Vec<f64>> = sides.iter().flat_map(|side| side.values()).map(logs).collect();
    let several: Vec<Vec<f64>> = boots.into_iter().filter(|logs| logs.len() > 1).collect();
    Ok((calibration, Levels::of(&several)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::{pairs, plan};

    fn run(factors: &[f64]) -> SeriesCalibration {
        let mut plan = plan(&["base", "again"], factors.len());
        plan.calibrate = true;
        calibrations(&plan, &pairs("again", factors)).remove(0)
    }

    /// Alternating, none of the same size.
    fn noise(pairs: usize, size: f64) -> Vec<f64> {
        (0..pairs)
            .map(|i| {
                let part = size * (1.0 + i as f64 / pairs as f64);
                1.0 + if i % 4 < 2 { part } else { -part }
            })
            .collect()
    }

    #[test]
    fn a_host_that_is_even_is_kept_with_its_margin() {
        let found = run(&noise(20, 0.05));
        let kept = found.kept("r").unwrap();
        assert_eq!((kept.workload.as_str(), kept.metric.as_str()), ("fork-exit", "time"));
        assert!(kept.margin > 0.1, "{kept:?}");
        assert!((kept.margin * 1e3).fract().abs() < 1e-9, "{kept:?}");
        assert!(kept.boot_variance > 0.0, "{kept:?}");
    }

    #[test]
    fn few_pairs_and_uneven_hosts_are_not() {
        assert_eq!(run(&noise(19, 0.05)).found, Err(StatsError::TooFew { needed: 20, found: 19 }));
        let uneven: Vec<f64> = noise(20, 0.02).iter().map(|factor| factor * 1.1).collect();
        let uneven = run(&uneven);
        assert!(!uneven.found.as_ref().unwrap().0.passes, "{uneven:?}");
        assert_eq!(uneven.kept("r"), None);
    }
}
