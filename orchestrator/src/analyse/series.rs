use std::collections::{BTreeMap, BTreeSet};

use kduel_protocol::{Better, COMMAND, TrialSpec, workload};
use kduel_stats::StatsError;

use crate::collect::{BootOutcome, BootRecord, BootResult};
use crate::fault::FailureClass;

use super::contamination::contamination;
use super::sides::result;

/// A metric that a trial gives or should give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Metric {
    pub name: String,
    pub unit: String,
    pub better: Better,
    pub primary: bool,
}

/// A boot's kept iterations of one metric may lack this part before the boot is invalid for it.
const ITERATIONS_NEEDED: f64 = 0.8;

/// The last attempt of each block's boot of `side`, if it completed.
pub(super) fn latest_results<'a>(
    records: &'a [BootRecord],
    experiment: &str,
    side: &str,
) -> BTreeMap<usize, &'a BootResult> {
    let latest = latest(records, experiment, side);
    latest.into_iter().filter_map(|(block, record)| Some((block, result(record)?))).collect()
}

/// The last attempt of each block's boot of `side`.
pub(in crate::analyse) fn latest<'a>(
    records: &'a [BootRecord],
    experiment: &str,
    side: &str,
) -> BTreeMap<usize, &'a BootRecord> {
    let mut latest: BTreeMap<usize, &BootRecord> = BTreeMap::new();
    let own = records.iter().filter(|r| r.experiment == experiment && r.side == side);
    let own = own.filter(|record| happened(record));
    for record in own {
        let kept = latest.entry(record.block).or_insert(record);
        if record.attempt >= kept.attempt {
            *kept = record;
        }
    }
    latest
}

/// The first completed attempt of each block's boot of `side`, whatever the host did to it.
pub(super) fn first<'a>(
    records: &'a [BootRecord],
    experiment: &str,
    side: &str,
) -> BTreeMap<usize, &'a BootRecord> {
    let mut first: BTreeMap<usize, &BootRecord> = BTreeMap::new();
    let own = records.iter().filter(|r| r.experiment == experiment && r.side == side);
    for record in own.filter(|record| happened(record) && result(record).is_some()) {
        let kept = first.entry(record.block).or_insert(record);
        if record.attempt < kept.attempt {
            *kept = record;
        }
    }
    first
}

/// A boot that the user stopped says nothing, not even that it failed; one that only repeats another's
/// first trial speaks in the self-test alone, a sentinel only about its own side.
pub(super) fn happened(record: &BootRecord) -> bool {
    !record.is_again()
        && !record.sentinel
        && !matches!(&record.outcome, BootOutcome::Failed(f) if f.class == FailureClass::Interrupted)
}

/// The metrics of `trial`, primary ones first: what its definition promises, and what else came.
/// A primary metric is listed even if no boot gave it; a secondary one is not.
pub(super) fn metrics(trial: &TrialSpec, results: &[&BootResult]) -> Vec<Metric> {
    let samples = || results.iter().flat_map(|r| &r.samples).filter(|s| s.trial == trial.id);
    let seen: BTreeSet<&str> = samples().map(|sample| sample.metric.as_str()).collect();
    let mut metrics = promised(trial);
    metrics.retain(|metric| metric.primary || seen.contains(metric.name.as_str()));
    for name in seen {
        let known = metrics.iter().any(|metric| metric.name == name);
        if let (false, Some(sample)) = (known, samples().find(|sample| sample.metric == name)) {
            metrics.push(Metric {
                name: name.to_owned(),
                unit: sample.unit.clone(),
                better: sample.better,
                primary: false,
            });
        }
    }
    metrics.sort_by_key(|metric| !metric.primary);
    metrics
}

pub(super) fn promised(trial: &TrialSpec) -> Vec<Metric> {
    let own = trial.command.iter().flat_map(|command| &command.metrics);
    let mut metrics: Vec<Metric> = own
        .map(|metric| Metric {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            better: metric.better,
            primary: true,
        })
        .collect();
    if metrics.is_empty() || trial.workload != COMMAND {
        let infos = workload(&trial.workload).map_or(&[][..], |info| info.metrics);
        metrics.extend(infos.iter().map(|info| Metric {
            name: info.name.to_owned(),
            unit: info.unit.to_owned(),
            better: info.better,
            primary: info.primary,
        }));
    }
    metrics
}

/// Why a boot has no summary for a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The boot gave nothing for this metric.
    Missing,
    /// The boot is invalid for this series; its pair is dropped.
    Boot(String),
    /// The series as a whole cannot be compared.
    Series(String),
}

/// The boot summary: the mean of the logarithms of the kept iterations.
pub(super) fn boot_summary(
    result: &BootResult,
    trial: &TrialSpec,
    metric: &Metric,
) -> Result<f64, Unusable> {
    if let Some(failed) = result.failed_trials.iter().find(|failed| failed.trial == trial.id) {
        let words = failed.failure.class.words();
        return Err(Unusable::Boot(format!("{words}: {}", failed.failure.title)));
    }
    let samples: Vec<_> = result
        .samples
        .iter()
        .filter(|sample| sample.trial == trial.id && sample.metric == metric.name)
        .collect();
    if let Some(odd) = samples.iter().find(|s| s.unit != metric.unit || s.better != metric.better) {
        let (found, wanted) = (&odd.unit, &metric.unit);
        return Err(Unusable::Series(format!(
            "a sample's unit or direction is not the metric's: {found}, wanted {wanted}"
        )));
    }
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    if values.is_empty() {
        return Err(Unusable::Missing);
    }
    if (values.len() as f64) < ITERATIONS_NEEDED * f64::from(trial.iterations) {
        let (found, of) = (values.len(), trial.iterations);
        return Err(Unusable::Boot(format!("only {found} of {of} iterations")));
    }
    kduel_stats::log_mean(&values).map_err(|error: StatsError| Unusable::Series(error.to_string()))
}

/// The differences between boots of one side in the same blocks, on the log scale: from the first slot
/// to the other.
pub(super) fn sentinel_differences(
    own: &BTreeMap<usize, &BootRecord>,
    records: &[BootRecord],
    trial: &TrialSpec,
    metric: &Metric,
) -> Vec<f64> {
    let summary = |record: &BootRecord| boot_summary(result(record)?, trial, metric).ok();
    let clean = |record: &BootRecord| contamination(record, trial.id).is_none();
    let pairs = own.values().filter_map(|own| sentinel_pair(own, records));
    let clean = pairs.filter(|pair| pair.iter().all(|record| clean(record)));
    clean.filter_map(|[first, second]| Some(summary(second)? - summary(first)?)).collect()
}

/// The two boots of one side that are compared with each other in the block of its boot `own`, by
/// their slots: that one and the sentinel, or, in a duet, the two sentinels.
pub(super) fn sentinel_pair<'a>(
    own: &'a BootRecord,
    records: &'a [BootRecord],
) -> Option<[&'a BootRecord; 2]> {
    let of_block = |record: &&BootRecord| {
        record.sentinel
            && record.experiment == own.experiment
            && record.side == own.side
            && record.block == own.block
    };
    let last = records.iter().filter(of_block).map(|record| record.attempt).max()?;
    let last = |record: &&BootRecord| record.attempt == last;
    let mut pair: Vec<&BootRecord> = records.iter().filter(of_block).filter(last).collect();
    if pair.len() == 1 {
        pair.push(own);
    }
    pair.sort_by_key(|record| record.slot);
    pair.try_into().ok()
}

/// One side's boot summaries for one series.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Summaries {
    /// By block.
    pub valid: BTreeMap<usize, f64>,
    /// Why boots are invalid, and how many for each reason.
    pub reasons: BTreeMap<String, usize>,
    /// Why the series cannot be compared at all.
    pub broken: Option<String>,
    /// Boots that ended.
    pub boots: BTreeSet<usize>,
    /// Completed boots without a single sample of the metric.
    pub missing: usize,
    /// Completed boots.
    pub completed: usize,
    /// Boots that the host spoilt.
    pub contaminated: usize,
}

impl Summaries {
    /// Of one boot for each block, without what the host spoilt.
    pub fn of(boots: &BTreeMap<usize, &BootRecord>, trial: &TrialSpec, metric: &Metric) -> Self {
        let mut summaries = Self::of_all(boots, trial, metric);
        for (block, record) in boots {
            let Some(why) = contamination(record, trial.id) else { continue };
            if summaries.valid.remove(block).is_some() {
                summaries.contaminated += 1;
                summaries.drop_boot(why);
            }
        }
        summaries
    }

    /// As [`Summaries::of`], with what the host spoilt.
    pub fn of_all(
        boots: &BTreeMap<usize, &BootRecord>,
        trial: &TrialSpec,
        metric: &Metric,
    ) -> Self {
        let mut summaries = Self { boots: boots.keys().copied().collect(), ..Self::default() };
        for (block, record) in boots {
            let Some(result) = result(record) else {
                if let BootOutcome::Failed(failure) = &record.outcome {
                    summaries.drop_boot(failure.class.words().to_owned());
                }
                continue;
            };
            summaries.completed += 1;
            match boot_summary(result, trial, metric) {
                Ok(value) => _ = summaries.valid.insert(*block, value),
                Err(Unusable::Missing) => {
                    summaries.missing += 1;
                    summaries.drop_boot(format!("no {} was measured", metric.name));
                }
                Err(Unusable::Boot(why)) => summaries.drop_boot(why),
                Err(Unusable::Series(why)) => summaries.broken = Some(why),
            }
        }
        summaries
    }

    fn drop_boot(&mut self, why: String) {
        *self.reasons.entry(why).or_default() += 1;
    }

    /// Whether every completed boot lacks the metric.
    pub fn lacks_metric(&self) -> bool {
        self.completed > 0 && self.missing == self.completed
    }

    /// exp of the median of the valid boots' summaries.
    pub fn location(&self) -> Option<f64> {
        let values: Vec<f64> = self.valid.values().copied().collect();
        kduel_stats::median(&values).ok().map(f64::exp)
    }
}
