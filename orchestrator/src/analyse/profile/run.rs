//! The profiles of a whole run, comparison by comparison.

use std::collections::BTreeMap;
use std::sync::Arc;

use kduel_counts::Counts;

use super::code::Functions;
use super::count::{BootProfile, Profile};
use super::difference::{DiffProfile, compare_profiles};
use super::groups::Groups;
use crate::analyse::series::latest;
use crate::collect::{BootOutcome, BootRecord};
use crate::fault::Failure;
use crate::plan::{Plan, PlannedExperiment, series_label};

/// What a boot left behind for profiles.
#[derive(Debug)]
pub struct BootCode {
    /// Executions by block.
    pub counts: Counts,
    /// The kernel's functions; none if its symbols were not kept.
    pub functions: Arc<Functions>,
}

/// How profiles are compared.
#[derive(Debug, Clone)]
pub struct Terms {
    /// Groups of functions.
    pub groups: Groups,
    /// Whether functions that are plainly the same are one row.
    pub fold: bool,
}

/// The profiles of a candidate and its base for one trial on one CPU model.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesProfile {
    /// The experiment.
    pub experiment: String,
    /// As in [`SeriesName`](crate::analyse::SeriesName).
    pub workload: String,
    /// The base's name.
    pub base: String,
    /// The candidate's name.
    pub side: String,
    /// What differs.
    pub profile: DiffProfile,
}

/// All profiles of a run, and what there are none of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunProfiles {
    /// In the order of the comparisons.
    pub series: Vec<SeriesProfile>,
    /// Why some are missing or lack names, in sentences.
    pub notes: Vec<String>,
}

/// By trial: the windows of all boots of a side on one CPU model.
type SideProfiles = BTreeMap<u32, Profile>;

/// Makes the profiles of a run. `load` fetches what a boot left, from several threads.
///
/// # Errors
///
/// What `load` says: files that cannot be read. What was never kept is a note.
pub fn run_profiles(
    plan: &Plan,
    records: &[BootRecord],
    terms: &Terms,
    load: &(impl Fn(&BootRecord) -> Result<Option<BootCode>, Failure> + Sync),
) -> Result<RunProfiles, Failure> {
    let mut found = RunProfiles::default();
    for experiment in &plan.experiments {
        let mut cpus: Vec<&str> =
            experiment.blocks.iter().filter_map(|block| block.cpu.as_deref()).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in &cpus {
            let loading = Loading { experiment, cpu, records, load };
            let sides = loading.sides(&mut found.notes)?;
            let dimension = if cpus.len() > 1 { format!(" cpu={cpu}") } else { String::new() };
            found.series.extend(compare(experiment, &dimension, &sides, terms));
        }
    }
    found.series.sort_by_key(|series| {
        let place = plan.experiments.iter().position(|e| e.name == series.experiment);
        let trial = place.and_then(|place| {
            let trials = &plan.experiments[place].trials;
            trials.iter().position(|trial| series.workload.starts_with(&series_label(trial)))
        });
        (place, trial)
    });
    Ok(found)
}

fn compare(
    experiment: &PlannedExperiment,
    dimension: &str,
    sides: &[SideProfiles],
    terms: &Terms,
) -> Vec<SeriesProfile> {
    let mut series = Vec::new();
    let mut named = experiment.sides.iter().zip(sides);
    let Some((base, base_profiles)) = named.next() else { return series };
    for (side, profiles) in named {
        for trial in &experiment.trials {
            let (Some(one), Some(other)) = (base_profiles.get(&trial.id), profiles.get(&trial.id))
            else {
                continue;
            };
            series.push(SeriesProfile {
                experiment: experiment.name.clone(),
                workload: format!("{}{dimension}", series_label(trial)),
                base: base.name.clone(),
                side: side.name.clone(),
                profile: compare_profiles(one, other, &terms.groups, terms.fold),
            });
        }
    }
    series
}

struct Loading<'a, L> {
    experiment: &'a PlannedExperiment,
    cpu: &'a str,
    records: &'a [BootRecord],
    load: &'a L,
}

impl<L: Fn(&BootRecord) -> Result<Option<BootCode>, Failure> + Sync> Loading<'_, L> {
    /// In the order of the experiment's sides, each in a thread of its own.
    fn sides(&self, notes: &mut Vec<String>) -> Result<Vec<SideProfiles>, Failure> {
        let names = self.experiment.sides.iter().map(|side| side.name.as_str());
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = names.map(|name| scope.spawn(move || self.side(name))).collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut sides = Vec::new();
        for result in results {
            let (profiles, note) =
                result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            sides.push(profiles);
            notes.extend(note.filter(|note| !notes.contains(note)));
        }
        Ok(sides)
    }

    fn side(&self, side: &str) -> Result<(SideProfiles, Option<String>), Failure> {
        let boots = latest(self.records, &self.experiment.name, side);
        let blocks =
            self.experiment.blocks.iter().filter(|block| block.cpu.as_deref() == Some(self.cpu));
        let mut profiles = SideProfiles::new();
        let mut note = None;
        for record in blocks.filter_map(|block| boots.get(&block.index)) {
            let BootOutcome::Completed(result) = &record.outcome else { continue };
            let Some(code) = (self.load)(record)? else {
                note = Some(format!(
                    "no profile of {side}: this run has no counts by block; run it again for them"
                ));
                continue;
            };
            if code.functions.is_empty() {
                note = Some(format!(
                    "functions of {side} have no names: the kernel's symbols are not in the run's \
                     folder"
                ));
            }
            let boot = BootProfile::new(&code.counts, &code.functions);
            for trial in &self.experiment.trials {
                let windows: Vec<_> =
                    result.windows.iter().filter(|window| window.trial == trial.id).collect();
                if !windows.is_empty() {
                    profiles.entry(trial.id).or_default().add(&boot.trial(&windows));
                }
            }
        }
        Ok((profiles, note))
    }
}
