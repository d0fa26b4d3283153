//! Call chains of a stored run.

use std::collections::BTreeMap;

use kduel_counts::Counts;
use kduel_protocol::window_number;

use crate::analyse::{ChainSums, SampledWorkload, sampled};
use crate::collect::{BootOutcome, BootRecord, StoredRun};
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, PlannedExperiment, series_label};
use crate::report::WorkloadChains;

/// The chains of every workload and side.
///
/// # Errors
///
/// The run is timed, was made without chains, or its counts cannot be read.
pub fn of_run(stored: &StoredRun) -> Result<Vec<WorkloadChains>, Failure> {
    let several = stored.plan.experiments.len() > 1;
    if stored.plan.measure != Measure::Instructions {
        return of_samples(stored, several);
    }
    let mut workloads = Vec::new();
    for experiment in &stored.plan.experiments {
        let mut of_experiment = empty(experiment, several);
        for record in completed(stored, experiment) {
            let counts = counts(stored, record)?;
            for (trial, workload) in experiment.trials.iter().zip(&mut of_experiment) {
                let ops = operations(record, trial.id);
                let side = workload.sides.iter_mut().find(|(side, _)| *side == record.side);
                if let Some((_, sums)) = side
                    && !sums.add(&counts, &ops)
                {
                    return Err(none(&format!("{} was booted without --chains", record.side)));
                }
            }
        }
        workloads.append(&mut of_experiment);
    }
    Ok(workloads)
}

/// What the monitor `profile` sampled in a timed run.
fn of_samples(stored: &StoredRun, several: bool) -> Result<Vec<WorkloadChains>, Failure> {
    let found = sampled(&stored.plan, &stored.records);
    if found.is_empty() {
        let title = "this timed run has no sampled call chains";
        let hint =
            "run it again with --monitor profile, or exactly: --measure instructions --chains";
        return Err(Failure::new(FailureClass::Usage, title).hint(hint));
    }
    let chains = |one: SampledWorkload| WorkloadChains {
        workload: match several {
            true => format!("{}: {}", one.experiment, one.workload),
            false => one.workload,
        },
        counted: "ns",
        sides: one.sides,
    };
    Ok(found.into_iter().map(chains).collect())
}

fn empty(experiment: &PlannedExperiment, several: bool) -> Vec<WorkloadChains> {
    let name = if several { format!("{}: ", experiment.name) } else { String::new() };
    let sides = experiment.sides.iter().map(|side| (side.name.clone(), ChainSums::default()));
    let sides: Vec<_> = sides.collect();
    let of_trial = |trial| WorkloadChains {
        workload: format!("{name}{}", series_label(trial)),
        counted: "instructions",
        sides: sides.clone(),
    };
    experiment.trials.iter().map(of_trial).collect()
}

/// Boots of an experiment that gave something, those that only repeat another left out.
pub fn completed<'a>(
    stored: &'a StoredRun,
    experiment: &'a PlannedExperiment,
) -> impl Iterator<Item = &'a BootRecord> {
    stored.records.iter().filter(|record| {
        record.experiment == experiment.name
            && !record.is_again()
            && matches!(record.outcome, BootOutcome::Completed(_))
    })
}

/// Operations of each window of a trial, by the window's number.
pub fn operations(record: &BootRecord, trial: u32) -> BTreeMap<u64, u64> {
    let BootOutcome::Completed(result) = &record.outcome else { return BTreeMap::new() };
    let windows = result.windows.iter().filter(|window| window.trial == trial);
    windows.map(|w| (window_number(w.trial, w.iteration), w.ops)).collect()
}

/// What the plugin counted in a boot.
///
/// # Errors
///
/// The file is not there or cannot be read.
pub fn counts(stored: &StoredRun, record: &BootRecord) -> Result<Counts, Failure> {
    let broken = |why: &str| {
        let title = format!("the counts of {}: {why}", record.boot);
        Failure::new(FailureClass::OutputMalformed, title)
    };
    let bytes = stored.counts(&record.boot)?.ok_or_else(|| broken("they are not there"))?;
    kduel_counts::read(&bytes).map_err(|error| broken(&error.to_string()))
}

/// There are no chains.
pub fn none(why: &str) -> Failure {
    Failure::new(FailureClass::Usage, why).hint("run it again with --measure instructions --chains")
}
