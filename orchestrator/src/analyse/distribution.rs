use serde::{Deserialize, Serialize};

use crate::collect::BootRecord;
use crate::plan::Plan;

use super::SeriesName;
use super::series::latest_results;
use crate::plan::series_label;

/// Single operations of one side, over all its boots: a description, never a basis for a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DistributionSummary {
    /// Of which series.
    pub series: SeriesName,
    /// Of which side.
    pub side: String,
    /// The unit of the quantiles.
    pub unit: String,
    /// How many.
    pub operations: usize,
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// One summary per series and side for which single operations were kept.
pub(super) fn distributions(plan: &Plan, records: &[BootRecord]) -> Vec<DistributionSummary> {
    let mut summaries = Vec::new();
    for experiment in &plan.experiments {
        for trial in &experiment.trials {
            for side in &experiment.sides {
                let kept: Vec<_> = latest_results(records, &experiment.name, &side.name)
                    .into_values()
                    .flat_map(|result| &result.distributions)
                    .filter(|kept| kept.trial == trial.id)
                    .collect();
                let mut metrics: Vec<&str> = kept.iter().map(|kept| kept.metric.as_str()).collect();
                metrics.sort_unstable();
                metrics.dedup();
                for metric in metrics {
                    let series = SeriesName {
                        experiment: experiment.name.clone(),
                        workload: series_label(trial),
                        metric: metric.to_owned(),
                    };
                    let own: Vec<_> = kept.iter().filter(|kept| kept.metric == metric).collect();
                    let values: Vec<f64> =
                        own.iter().flat_map(|kept| kept.values.iter().copied()).collect();
                    let unit = own.first().map(|kept| kept.unit.clone()).unwrap_or_default();
                    summaries.extend(summary(series, &side.name, unit, &values));
                }
            }
        }
    }
    summaries
}

fn summary(
    series: SeriesName,
    side: &str,
    unit: String,
    values: &[f64],
) -> Option<DistributionSummary> {
    let quantile = |p| kduel_stats::quantile(values, p).ok();
    Some(DistributionSummary {
        series,
        side: side.to_owned(),
        unit,
        operations: values.len(),
        p50: quantile(0.5)?,
        p99: quantile(0.99)?,
        max: quantile(1.0)?,
    })
}
