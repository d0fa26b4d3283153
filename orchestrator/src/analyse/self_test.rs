use std::collections::BTreeMap;

use crate::collect::{BootOutcome, BootRecord, BootResult};
use crate::id::BootId;
use crate::plan::Plan;

use crate::plan::series_label;

/// Whether what was done twice in an exact run came out the same, bit for bit.
///
/// # Errors
///
/// Where it differs, or why that is not known, in words that read after "not exact: ".
pub fn self_test(plan: &Plan, records: &[BootRecord]) -> Result<(), String> {
    let latest = latest(records);
    for again in latest.values().filter(|record| record.is_again()) {
        let first = latest.values().find(|record| {
            !record.is_again()
                && record.experiment == again.experiment
                && record.side == again.side
                && record.block == again.block
        });
        let Some(first) = first else { continue };
        match (&first.outcome, &again.outcome) {
            (BootOutcome::Completed(first), BootOutcome::Completed(second)) => {
                let experiment = plan.experiments.iter().find(|e| e.name == again.experiment);
                let trial = experiment.and_then(|experiment| experiment.trials.first());
                let Some(trial) = trial else { continue };
                if let Some(place) = first_difference(first, second, trial.id) {
                    let (side, label) = (&again.side, series_label(trial));
                    return Err(format!("{label} on {side}, done twice, differs at {place}"));
                }
            }
            (BootOutcome::Failed(first), BootOutcome::Failed(second))
                if first.class == second.class => {}
            (BootOutcome::Completed(_), BootOutcome::Failed(failure))
            | (BootOutcome::Failed(failure), _) => {
                return Err(format!(
                    "of two equal boots of {} one failed: {}",
                    again.side, failure.title
                ));
            }
        }
    }
    let booted = |record: &&BootRecord| {
        !record.is_again() && record.exact.as_ref().is_some_and(|exact| exact.cached.is_none())
    };
    if records.iter().any(|record| booted(&record)) && !records.iter().any(BootRecord::is_again) {
        return Err("the self-test, a trial done twice, was not finished".to_owned());
    }
    Ok(())
}

/// By boot: one that the rig spoiled is done again when the run goes on.
fn latest(records: &[BootRecord]) -> BTreeMap<(&BootId, bool), &BootRecord> {
    records.iter().map(|record| ((&record.boot, record.is_again()), record)).collect()
}

/// Where a record and the same boot done again differ first, over every trial of `plan`: every sample
/// and every count.
pub fn record_difference(plan: &Plan, stored: &BootRecord, again: &BootRecord) -> Option<String> {
    let (one, other) = match (&stored.outcome, &again.outcome) {
        (BootOutcome::Completed(one), BootOutcome::Completed(other)) => (one, other),
        (BootOutcome::Failed(one), BootOutcome::Failed(other)) if one.class == other.class => {
            return None;
        }
        (one, other) => {
            let words = |outcome: &BootOutcome| match outcome {
                BootOutcome::Completed(_) => "completed".to_owned(),
                BootOutcome::Failed(failure) => failure.to_string(),
            };
            return Some(format!("the end of the boot: {}, now {}", words(one), words(other)));
        }
    };
    let experiment = plan.experiments.iter().find(|e| e.name == stored.experiment)?;
    experiment.trials.iter().find_map(|trial| {
        let place = first_difference(one, other, trial.id)?;
        Some(format!("{}: {place}", series_label(trial)))
    })
}

/// Where two results of one trial differ first: every sample and every count is compared.
fn first_difference(a: &BootResult, b: &BootResult, trial: u32) -> Option<String> {
    let samples = |result: &BootResult| -> Vec<(u32, String, u64, u64)> {
        let own = result.samples.iter().filter(|sample| sample.trial == trial);
        own.map(|s| (s.iteration, s.metric.clone(), s.value.to_bits(), s.ops)).collect()
    };
    let (one, other) = (samples(a), samples(b));
    for (one, other) in one.iter().zip(&other) {
        if one != other {
            let value = |bits| f64::from_bits(bits);
            return Some(format!(
                "iteration {} of {}: {} and {}",
                one.0,
                one.1,
                value(one.2),
                value(other.2)
            ));
        }
    }
    if one.len() != other.len() {
        return Some(format!("the number of samples: {} and {}", one.len(), other.len()));
    }
    let windows = |result: &'_ BootResult| -> Vec<_> {
        result.windows.iter().filter(|window| window.trial == trial).cloned().collect()
    };
    let (one, other) = (windows(a), windows(b));
    for (one, other) in one.iter().zip(&other) {
        for (what, one, other) in [
            ("class", &one.own, &other.own),
            ("context", &one.contexts, &other.contexts),
            ("event", &one.events, &other.events),
        ] {
            let names = one.keys().chain(other.keys());
            if let Some(name) = names.into_iter().find(|name| one.get(*name) != other.get(*name)) {
                let shown = |number: Option<&u64>| number.copied().unwrap_or_default();
                let (one, other) = (shown(one.get(name)), shown(other.get(name)));
                return Some(format!("the count of {what} {name}: {one} and {other}"));
            }
        }
        if one != other {
            return Some(format!("the counts of iteration {}", one.iteration));
        }
    }
    (one.len() != other.len())
        .then(|| format!("the number of windows: {} and {}", one.len(), other.len()))
}
