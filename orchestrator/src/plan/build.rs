use super::{
    Measure, PLAN_FORMAT, Pairing, Patience, Plan, PlannedExperiment, exact, matrix, schedule,
};
use crate::config::{Experiment, Loaded};

/// Most boots of every side if nothing is written: those of the last planned look.
pub const DEFAULT_PAIRS: usize = 30;

/// Boots of every side with `quick`.
pub const QUICK_PAIRS: usize = kduel_stats::QUICK_PAIRS;

/// Decides everything that a run will do.
pub fn build(loaded: &Loaded, seed: u64) -> Plan {
    Plan {
        format: PLAN_FORMAT.to_owned(),
        measure: loaded.measure(),
        seed,
        quick: loaded.quick(),
        statistic: loaded.statistic(),
        aa: loaded.aa(),
        calibrate: loaded.calibrate,
        experiments: loaded.experiments.iter().map(|each| experiment(each, seed)).collect(),
    }
}

fn experiment(from: &Experiment, seed: u64) -> PlannedExperiment {
    let default = if from.terms.quick { QUICK_PAIRS } else { DEFAULT_PAIRS };
    let pairs = from.terms.pairs.unwrap_or(default);
    let mut files: Vec<super::UserFile> = Vec::new();
    for file in from.workloads.iter().flat_map(|workload| &workload.files) {
        if !files.contains(file) {
            files.push(file.clone());
        }
    }
    let planned = PlannedExperiment {
        name: from.name.clone(),
        sides: from.sides.clone(),
        topology: from.topology.clone(),
        topology_name: from.topology_name.clone(),
        trials: matrix::trials(&from.workloads, &from.terms),
        files,
        image: from.terms.image.clone(),
        monitors: from.monitors.clone(),
        monitor_terms: from.monitor_terms,
        settle_s: from.terms.settle_s,
        patience: Patience {
            boot_s: from.terms.boot_deadline_s,
            progress_s: from.terms.progress_deadline_s,
        },
        grants: from.terms.grants,
        blocks: schedule::blocks(seed, &from.name, from.sides.len(), pairs),
        margin: from.terms.margin.clone(),
        calibrated: Vec::new(),
        exact: None,
        pairing: from.terms.pairing.unwrap_or(Pairing::Auto),
        placements: Vec::new(),
        claims: from.claims.clone(),
    };
    match from.terms.measure {
        // Sides that are the same are sentinels of each other.
        Measure::Time if from.terms.aa => planned,
        Measure::Time => PlannedExperiment {
            blocks: schedule::with_sentinels(planned.blocks, from.sides.len()),
            ..planned
        },
        Measure::Instructions => {
            let planned = PlannedExperiment { pairing: Pairing::Interleave, ..planned };
            exact::planned(planned, &from.terms, seed)
        }
    }
}
