use crate::collect::BootRecord;
use crate::plan::{Plan, series_label};

use super::Comparison;
use super::series::latest_results;

/// How far what was measured of `side` lies apart for this series: the standard deviation, relative to
/// the mean. Over the boots' means where there are several boots; over the windows where an exact run
/// has one boot. None where there is nothing to compare.
pub fn relative_deviation(
    plan: &Plan,
    records: &[BootRecord],
    comparison: &Comparison,
    side: &str,
) -> Option<f64> {
    let series = &comparison.series;
    let experiment = plan.experiments.iter().find(|one| one.name == series.experiment)?;
    let cpu = comparison.exact.as_ref().map(|exact| exact.cpu.as_str());
    let trial = experiment.trials.iter().find(|trial| {
        let label = series_label(trial);
        let rest = series.workload.strip_prefix(&label);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" cpu="))
    })?;
    let boots = latest_results(records, &experiment.name, side);
    let blocks =
        experiment.blocks.iter().filter(|block| cpu.is_none() || block.cpu.as_deref() == cpu);
    let values: Vec<Vec<f64>> = blocks
        .filter_map(|block| boots.get(&block.index))
        .map(|boot| {
            let own = boot.samples.iter();
            let own = own.filter(|s| s.trial == trial.id && s.metric == series.metric);
            own.map(|sample| sample.value).collect()
        })
        .collect();
    match &values[..] {
        [windows] if cpu.is_some() => relative(windows),
        boots => {
            let means = boots.iter().filter_map(|values| kduel_stats::mean(values).ok());
            relative(&means.collect::<Vec<f64>>())
        }
    }
}

pub(super) fn relative(values: &[f64]) -> Option<f64> {
    let mean = kduel_stats::mean(values).ok()?;
    let deviation = kduel_stats::variance(values).ok()?.sqrt();
    (mean != 0.0).then(|| deviation / mean.abs())
}
