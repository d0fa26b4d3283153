//! Sources of kernels that are built here: asked for before a run, kept in its record.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::collect::{KernelIdentity, RunFolder};
use crate::config::{Environment, KernelSpec, Loaded};
use crate::fault::Failure;
use crate::plan::Plan;
use crate::provision::source::{Record, settled};

/// Puts in the commits that only a repository elsewhere knows.
pub(super) fn settle(loaded: &mut Loaded) -> Result<(), Failure> {
    let sides = loaded.experiments.iter_mut().flat_map(|experiment| &mut experiment.sides);
    for side in sides {
        if let KernelSpec::Source(spec) = &mut side.kernel {
            **spec = settled(spec)?;
        }
    }
    Ok(())
}

/// By kernel, what the run keeps of its source.
pub(super) fn records(
    plan: &Plan,
    environment: &Environment,
) -> Result<BTreeMap<String, Record>, Failure> {
    let mut records = BTreeMap::new();
    for experiment in &plan.experiments {
        for side in &experiment.sides {
            let KernelSpec::Source(spec) = &side.kernel else { continue };
            if records.contains_key(&side.kernel_name) {
                continue;
            }
            let mut record = Record::of(spec, &environment.git_store)?;
            if !record.patches.is_empty() {
                let name = format!("{}-{}.patch", experiment.name, side.name);
                record.identity.changes = Some(PathBuf::from("source").join(name));
            }
            records.insert(side.kernel_name.clone(), record);
        }
    }
    Ok(records)
}

/// Notes the sources of kernels.
pub(super) fn enter(
    records: &BTreeMap<String, Record>,
    kernels: &mut BTreeMap<String, KernelIdentity>,
) {
    for (name, kernel) in kernels {
        kernel.source = records.get(name).map(|record| record.identity.clone());
    }
}

/// Writes the changes into the run's folder.
pub(super) fn write(records: &BTreeMap<String, Record>, folder: &RunFolder) -> Result<(), Failure> {
    for record in records.values() {
        if let Some(place) = &record.identity.changes {
            folder.write_changes(place, &record.patches)?;
        }
    }
    Ok(())
}
