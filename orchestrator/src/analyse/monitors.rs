use std::collections::BTreeMap;

use crate::collect::BootRecord;
use crate::plan::{PlannedExperiment, series_label};

use super::series::latest_results;
use super::spread::relative;

/// What a monitor counted beside one trial, per second of the guest's time: means over the boots.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorRow {
    /// The workload, as in [`super::SeriesName`].
    pub workload: String,
    /// The counter.
    pub name: String,
    /// On the base, and how far its boots lie apart, relative; absent where nothing was counted.
    pub base: Option<(f64, Option<f64>)>,
    /// On the side.
    pub value: Option<(f64, Option<f64>)>,
}

/// Every counter that either side has, trial by trial. A description, never a basis for a verdict.
pub fn monitor_rows(
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    side: &str,
) -> Vec<MonitorRow> {
    let mut rows = Vec::new();
    let Some(base) = experiment.sides.first() else { return rows };
    for trial in &experiment.trials {
        let of = |side: &str| rates(experiment, records, side, trial.id);
        let (base, value) = (of(&base.name), of(side));
        let mut names: Vec<&String> = base.keys().chain(value.keys()).collect();
        names.sort_unstable();
        names.dedup();
        rows.extend(names.into_iter().map(|name| MonitorRow {
            workload: series_label(trial),
            name: name.clone(),
            base: summary(base.get(name)),
            value: summary(value.get(name)),
        }));
    }
    rows
}

/// By counter: one rate for each boot.
fn rates(
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    side: &str,
    trial: u32,
) -> BTreeMap<String, Vec<f64>> {
    let mut rates: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let results = latest_results(records, &experiment.name, side);
    for seen in results.values().flat_map(|result| &result.monitored) {
        if seen.trial != trial || seen.elapsed_ns == 0 {
            continue;
        }
        let seconds = seen.elapsed_ns as f64 / 1e9;
        for (name, delta) in seen.deltas.iter().filter(|(_, delta)| delta.is_finite()) {
            rates.entry(name.clone()).or_default().push(delta / seconds);
        }
    }
    rates
}

fn summary(rates: Option<&Vec<f64>>) -> Option<(f64, Option<f64>)> {
    let rates = rates?;
    Some((kduel_stats::mean(rates).ok()?, relative(rates)))
}
