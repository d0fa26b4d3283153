//! What was watched beside trials, side by side. A description, never a basis for a verdict.

use std::collections::{BTreeMap, BTreeSet};

use kduel_protocol::{LogKind, Monitor, TrialSpec};
use serde::{Deserialize, Serialize};

use crate::collect::{BootRecord, BootResult, Monitored};
use crate::plan::{Plan, PlannedExperiment, series_label};

use super::series::latest_results;
use super::spread::relative;

/// What a table's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MonitorKind {
    /// Columns of rows that were taken at an interval: means over the steady part.
    Steady,
    /// Growth per second of the guest's time over the kept iterations.
    PerSecond,
    /// Growth per operation over the kept iterations.
    PerOperation,
}

/// One monitor beside one workload, a column for each side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MonitorTable {
    /// The experiment's name.
    pub experiment: String,
    /// The workload, as in [`super::SeriesName`].
    pub workload: String,
    /// Which monitor.
    pub monitor: Monitor,
    /// What its numbers are.
    pub kind: MonitorKind,
    /// Names of the sides, base first.
    pub sides: Vec<String>,
    /// In the order in which the monitor has them.
    pub rows: Vec<MonitorRow>,
    /// What a side's kernel lacks: side, counter, reason.
    pub absent: Vec<(String, String, String)>,
    /// Of each side's first boot, the rows themselves: milliseconds, then a value for each of `rows`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub traces: Vec<Vec<Vec<f64>>>,
}

/// One counter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MonitorRow {
    /// The counter.
    pub name: String,
    /// For each side; absent where nothing was counted.
    pub values: Vec<Option<MonitorMean>>,
}

/// Over the boots of a side.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct MonitorMean {
    /// Their mean.
    pub mean: f64,
    /// How far they lie apart, relative; absent of a single one.
    pub spread: Option<f64>,
}

/// A complaint of a guest's kernel during a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogFinding {
    /// The experiment's name.
    pub experiment: String,
    /// The side's name.
    pub side: String,
    /// The workload, as in [`super::SeriesName`].
    pub workload: String,
    /// What.
    pub kind: LogKind,
    /// The kernel's words. Raw.
    pub title: String,
    /// What followed. Raw.
    pub lines: Vec<String>,
    /// In how many boots.
    pub boots: usize,
}

/// Values of each boot, by counter.
type Values = BTreeMap<String, Vec<f64>>;

/// Every monitor of every trial.
pub(super) fn monitors(plan: &Plan, records: &[BootRecord]) -> Vec<MonitorTable> {
    let mut tables = Vec::new();
    for experiment in &plan.experiments {
        for trial in &experiment.trials {
            for monitor in Monitor::ALL {
                let of = |kind| table(experiment, records, trial, monitor, kind);
                let growth = match monitor.is_per_operation() {
                    true => MonitorKind::PerOperation,
                    false => MonitorKind::PerSecond,
                };
                tables.extend(of(MonitorKind::Steady));
                tables.extend(of(growth));
            }
        }
    }
    tables
}

fn table(
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    trial: &TrialSpec,
    monitor: Monitor,
    kind: MonitorKind,
) -> Option<MonitorTable> {
    let (mut order, mut absent) = (Vec::new(), BTreeSet::new());
    let (mut sides, mut traces) = (Vec::new(), Vec::new());
    for side in &experiment.sides {
        let results = latest_results(records, &experiment.name, &side.name);
        let mut values = Values::new();
        for result in results.values() {
            let found = match kind {
                MonitorKind::Steady => steady(result, trial.id, monitor),
                _ => growth(result, trial.id, monitor, &side.name, &mut absent),
            };
            for (name, value) in found.into_iter().filter(|(_, value)| value.is_finite()) {
                if !order.contains(&name) {
                    order.push(name.clone());
                }
                values.entry(name).or_default().push(value);
            }
        }
        if kind == MonitorKind::Steady {
            let first = results.values().next();
            traces.push(first.map(|result| rows(result, trial.id, monitor)).unwrap_or_default());
        }
        sides.push(values);
    }
    let row = |name: String| {
        let values = sides.iter().map(|values| mean(values.get(&name))).collect();
        MonitorRow { name, values }
    };
    let rows: Vec<MonitorRow> = order.into_iter().map(row).collect();
    (!rows.is_empty() || !absent.is_empty()).then(|| MonitorTable {
        experiment: experiment.name.clone(),
        workload: series_label(trial),
        monitor,
        kind,
        sides: experiment.sides.iter().map(|side| side.name.clone()).collect(),
        rows,
        absent: absent.into_iter().collect(),
        traces,
    })
}

fn mean(values: Option<&Vec<f64>>) -> Option<MonitorMean> {
    let values = values?;
    Some(MonitorMean { mean: kduel_stats::mean(values).ok()?, spread: relative(values) })
}

fn rows(result: &BootResult, trial: u32, monitor: Monitor) -> Vec<Vec<f64>> {
    let own = result.rows.iter().filter(|rows| rows.trial == trial && rows.monitor == monitor);
    own.flat_map(|rows| rows.rows.iter().cloned()).collect()
}

/// The rows behind the first third of the time; all of them where there are fewer than three.
pub fn steady_part(rows: &[Vec<f64>]) -> &[Vec<f64>] {
    let at = |row: &Vec<f64>| row.first().copied().unwrap_or_default();
    let last = rows.last().map(at).unwrap_or_default();
    let first = rows.iter().position(|row| at(row) > last / 3.0).unwrap_or(0);
    if rows.len() < 3 { rows } else { &rows[first..] }
}

/// The mean of every column over the steady part.
fn steady(result: &BootResult, trial: u32, monitor: Monitor) -> Vec<(String, f64)> {
    let all = rows(result, trial, monitor);
    let kept = steady_part(&all);
    let own = result.rows.iter().find(|rows| rows.trial == trial && rows.monitor == monitor);
    let columns = own.map(|rows| &rows.columns[..]).unwrap_or_default();
    let mean = |at: usize| {
        let values: Vec<f64> = kept.iter().filter_map(|row| row.get(at + 1).copied()).collect();
        kduel_stats::mean(&values).unwrap_or(f64::NAN)
    };
    columns.iter().enumerate().map(|(at, name)| (name.clone(), mean(at))).collect()
}

/// What counters grew by, per second or per operation.
fn growth(
    result: &BootResult,
    trial: u32,
    monitor: Monitor,
    side: &str,
    absent: &mut BTreeSet<(String, String, String)>,
) -> Vec<(String, f64)> {
    // Before there were others, vmstat had no name.
    let is_this = |seen: &&Monitored| seen.monitor.unwrap_or(Monitor::Vmstat) == monitor;
    let own = result.monitored.iter().filter(|seen| seen.trial == trial).filter(is_this);
    let mut found = Vec::new();
    for seen in own {
        let missing = seen.absent.iter();
        absent.extend(missing.map(|(name, why)| (side.to_owned(), name.clone(), why.clone())));
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53")]
        let per = match monitor.is_per_operation() {
            true => seen.ops as f64,
            false => seen.elapsed_ns as f64 / 1e9,
        };
        if per > 0.0 {
            found.extend(seen.deltas.iter().map(|(name, delta)| (name.clone(), delta / per)));
        }
    }
    found
}

/// What kernels complained of, each once for a side and a workload.
pub(super) fn kernel_log(plan: &Plan, records: &[BootRecord]) -> Vec<LogFinding> {
    let mut found: Vec<LogFinding> = Vec::new();
    for experiment in &plan.experiments {
        for side in &experiment.sides {
            let results = latest_results(records, &experiment.name, &side.name);
            for entry in results.values().flat_map(|result| &result.kernel_log) {
                let trial = experiment.trials.iter().find(|trial| trial.id == entry.trial);
                let Some(workload) = trial.map(series_label) else { continue };
                let same = found.iter_mut().find(|other| {
                    other.experiment == experiment.name
                        && other.side == side.name
                        && other.workload == workload
                        && (other.kind, &other.title) == (entry.kind, &entry.title)
                });
                if let Some(same) = same {
                    same.boots += 1;
                    continue;
                }
                found.push(LogFinding {
                    experiment: experiment.name.clone(),
                    side: side.name.clone(),
                    workload,
                    kind: entry.kind,
                    title: entry.title.clone(),
                    lines: entry.lines.clone(),
                    boots: 1,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_part_begins_behind_the_first_third() {
        let rows: Vec<Vec<f64>> = (1..=6).map(|at| vec![f64::from(at) * 1000.0]).collect();
        assert_eq!(steady_part(&rows)[0], [3000.0]);
        assert_eq!(steady_part(&rows[..2]).len(), 2, "of two nothing can be dropped");
        assert!(steady_part(&[]).is_empty());
    }
}
