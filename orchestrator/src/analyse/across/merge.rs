//! Several runs as one, so that every report can show it.

use std::collections::BTreeMap;

use super::boots::common;
use super::obstacles::Obstacle;
use super::select::{Asked, Match};
use crate::analyse::series::latest_results;
use crate::analyse::sides_same;
use crate::collect::{BootOutcome, BootRecord, RUN_FORMAT, RunInfo, StoredRun};
use crate::id::{BootId, RunId};
use crate::plan::{Block, PLAN_FORMAT, Plan, PlannedExperiment, PlannedSide};
use crate::text::count;

/// One side of each run, as the sides of one run: the first run's is the base.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// Of the whole.
    pub info: RunInfo,
    /// An experiment of the first run each, with a side of each run.
    pub plan: Plan,
    /// The boots of these sides, under their new names.
    pub records: Vec<BootRecord>,
    /// The runs' own bases, where all are the same kernel with the same knobs.
    pub control: Option<(Plan, Vec<BootRecord>)>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What the user compares them despite, in words.
    pub despite: Vec<&'static str>,
    /// By a side's new name: the place of its run.
    pub runs: BTreeMap<String, usize>,
}

impl Merged {
    /// The run that a record came from, by its place, and what its boot was called there.
    pub fn origin(&self, record: &BootRecord) -> Option<(usize, BootId)> {
        let run = *self.runs.get(&record.side)?;
        let (_, boot) = record.boot.0.split_once(':')?;
        Some((run, BootId(boot.to_owned())))
    }
}

/// Makes one run of the sides that belong together. Takes the records out of `asked`.
pub fn merge(asked: &mut [Asked], matches: &[Match], despite: &[Obstacle]) -> Merged {
    let prefixes = prefixes(asked);
    let names = kernel_names(asked, &prefixes);
    let mut notes = legend(asked, matches, &prefixes);
    let is_base = |each: &Match| each.places.iter().any(|(_, side)| *side == 0);
    let controlled = !matches.iter().any(is_base);
    let bases: Vec<Match> = matches
        .iter()
        .map(|each| Match {
            places: each.places.iter().map(|(place, _)| (*place, 0)).collect(),
            ..each.clone()
        })
        .collect();
    let witnesses = witnesses(asked, matches, &prefixes);
    let mut part = |matches: &[Match], notes: &mut Vec<String>| {
        let records = witnesses.clone();
        let mut part = Part { asked, prefixes: &prefixes, names: &names, records };
        let plan = part.plan(matches, notes);
        (plan, part.records)
    };
    let (plan, records) = part(matches, &mut notes);
    let control = controlled.then(|| part(&bases, &mut Vec::new())).filter(|(plan, records)| {
        // What says nothing is no control either.
        plan.experiments.iter().all(|experiment| same_sides(experiment, records))
    });
    if plan.experiments.iter().all(|experiment| same_sides(experiment, &records)) {
        notes.push(
            "all sides are the same kernel with the same knobs: what differs is the runs".into(),
        );
    }
    let sides = plan.experiments.iter().flat_map(|experiment| {
        experiment.sides.iter().enumerate().map(|(run, side)| (side.name.clone(), run))
    });
    let runs = sides.collect();
    let info = info(asked, matches, &names, despite);
    let despite = despite.iter().map(|one| one.word()).collect();
    Merged { info, plan, records, control, notes, despite, runs }
}

/// The boots that were done twice to see whether the run is exact, whichever side's they were, under
/// a name that no side has: so that a run which does not repeat is called that in here, too.
fn witnesses(asked: &[Asked], matches: &[Match], prefixes: &[String]) -> Vec<BootRecord> {
    let mut found = Vec::new();
    for (run, one) in asked.iter().enumerate() {
        for each in matches {
            let name = &one.run.plan.experiments[each.places[run].0].name;
            let first = &asked[0].run.plan.experiments[each.places[0].0].name;
            let trials = renumbering(asked, each, run);
            let records = &one.run.records;
            for again in records.iter().filter(|record| record.is_again()) {
                let same = |other: &&BootRecord| {
                    other.experiment == again.experiment
                        && other.side == again.side
                        && other.block == again.block
                };
                let twice = records.iter().filter(|other| again.experiment == *name && same(other));
                found.extend(twice.cloned().map(|mut record| {
                    record.boot =
                        BootId(format!("{} of {}, self-test", record.boot, prefixes[run]));
                    record.experiment.clone_from(first);
                    record.side = format!("{} of run {}", record.side, one.run.info.id);
                    if let Some(exact) = &mut record.exact {
                        exact.lost.clear();
                    }
                    renumber(&mut record, &trials);
                    record
                }));
            }
        }
    }
    found
}

/// By trial of a run: the number of the first run's trial that it belongs to.
fn renumbering(asked: &[Asked], each: &Match, run: usize) -> BTreeMap<u32, u32> {
    let trials = |run: usize| &asked[run].run.plan.experiments[each.places[run].0].trials;
    let numbers = each.trials.iter().map(|row| (trials(run)[row[run]].id, trials(0)[row[0]].id));
    numbers.collect()
}

/// What stands before a side's name: the run's label where all have one, else its place.
fn prefixes(asked: &[Asked]) -> Vec<String> {
    let label = |one: &Asked| {
        let label = one.run.info.label.clone()?;
        (label.len() <= 12 && !label.contains(':') && !label.is_empty()).then_some(label)
    };
    let labels: Option<Vec<String>> = asked.iter().map(label).collect();
    let distinct = |labels: &Vec<String>| {
        labels.iter().enumerate().all(|(place, label)| !labels[..place].contains(label))
    };
    labels
        .filter(distinct)
        .unwrap_or_else(|| (1..=asked.len()).map(|place| place.to_string()).collect())
}

/// What a kernel is called: as in its run, unless two runs call different ones alike.
type KernelNames = BTreeMap<(usize, String), String>;

fn kernel_names(asked: &[Asked], prefixes: &[String]) -> KernelNames {
    let mut names = KernelNames::new();
    for (run, one) in asked.iter().enumerate() {
        for (name, kernel) in &one.run.info.kernels {
            let other = asked.iter().filter_map(|other| other.run.info.kernels.get(name));
            let unlike = other.into_iter().any(|other| other != kernel);
            let shown = if unlike { format!("{}:{name}", prefixes[run]) } else { name.clone() };
            names.insert((run, name.clone()), shown);
        }
    }
    names
}

fn legend(asked: &[Asked], matches: &[Match], prefixes: &[String]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for (run, one) in asked.iter().enumerate() {
        let StoredRun { info, plan, cut, .. } = &one.run;
        let sides = matches.iter().map(|each| {
            let (experiment, side) = each.places[run];
            let experiment = &plan.experiments[experiment];
            format!("{} of {}", experiment.sides[side].name, experiment.name)
        });
        let label = info.label.as_ref().map(|label| format!(" \"{label}\"")).unwrap_or_default();
        notes.push(format!(
            "{}: is run {}{label} of {}, {}",
            prefixes[run],
            info.id,
            info.started.strftime("%Y-%m-%d %H:%M UTC"),
            sides.collect::<Vec<_>>().join(", ")
        ));
        if let Some(cut) = cut {
            notes.push(format!(
                "journal.jsonl of run {} is used up to line {}: {}",
                info.id,
                cut.line - 1,
                cut.reason
            ));
        }
    }
    notes
}

fn info(asked: &[Asked], matches: &[Match], names: &KernelNames, despite: &[Obstacle]) -> RunInfo {
    let first = &asked[0].run.info;
    let mut command = vec!["kduel".to_owned(), "compare".to_owned()];
    let mut kernels = BTreeMap::new();
    for (run, one) in asked.iter().enumerate() {
        let (experiment, side) = matches[0].places[run];
        let side = &one.run.plan.experiments[experiment].sides[side].name;
        command.push(format!("{}:{side}", one.run.info.reference()));
        for (name, kernel) in &one.run.info.kernels {
            let shown = names.get(&(run, name.clone())).unwrap_or(name);
            kernels.insert(shown.clone(), kernel.clone());
        }
    }
    if !despite.is_empty() {
        let words: Vec<&str> = despite.iter().map(|one| one.word()).collect();
        command.extend(["--despite".to_owned(), words.join(",")]);
    }
    let ids: Vec<String> = asked.iter().map(|one| one.run.info.id.0.clone()).collect();
    RunInfo {
        format: RUN_FORMAT.to_owned(),
        id: RunId(ids.join("..")),
        started: asked.iter().map(|one| one.run.info.started).max().unwrap_or(first.started),
        label: None,
        out: None,
        case: None,
        kduel: first.kduel.clone(),
        command,
        accelerator: first.accelerator,
        qemu: first.qemu.clone(),
        host: first.host.clone(),
        ended: Vec::new(),
        kernels,
        // Each run has kept only what differs among its own kernels.
        configs: BTreeMap::new(),
        compared: ids,
        exported: None,
    }
}

/// Whether all sides ran the same thing, as far as their first boots can tell.
fn same_sides(experiment: &PlannedExperiment, records: &[BootRecord]) -> bool {
    let first = |side: &PlannedSide| {
        latest_results(records, &experiment.name, &side.name).into_values().next()
    };
    let results: Option<Vec<_>> = experiment.sides.iter().map(first).collect();
    results.is_some_and(|all| all.iter().all(|one| sides_same(all[0], one)))
}

/// The work of one merging.
struct Part<'a> {
    asked: &'a mut [Asked],
    prefixes: &'a [String],
    names: &'a KernelNames,
    records: Vec<BootRecord>,
}

impl Part<'_> {
    fn plan(&mut self, matches: &[Match], notes: &mut Vec<String>) -> Plan {
        let experiments = matches.iter().map(|each| self.experiment(each, notes)).collect();
        let first = &self.asked[0].run.plan;
        Plan { format: PLAN_FORMAT.to_owned(), aa: true, experiments, ..first.clone() }
    }

    fn experiment(&mut self, each: &Match, notes: &mut Vec<String>) -> PlannedExperiment {
        let first = self.asked[0].run.plan.experiments[each.places[0].0].clone();
        let mut merged = PlannedExperiment {
            sides: Vec::new(),
            trials: each.trials.iter().map(|row| first.trials[row[0]].clone()).collect(),
            blocks: Vec::new(),
            ..first.clone()
        };
        let all: Vec<PlannedExperiment> = (0..self.asked.len())
            .map(|run| self.asked[run].run.plan.experiments[each.places[run].0].clone())
            .collect();
        // Numbers of one run that are marked mark those that they are compared with.
        if let Some(marked) = all.iter().find(|one| one.is_overcommitted()) {
            merged.placements = marked.placements.clone();
        }
        let places = places(&all);
        let longest = places.iter().map(BTreeMap::len).max().unwrap_or(0);
        let known = all.iter().max_by_key(|one| one.blocks.len()).map_or(&first, |one| one);
        let source = if first.exact.is_some() { &first } else { known };
        for index in 0..longest {
            let then = places[0].iter().find(|(_, to)| **to == index).map(|(from, _)| *from);
            let from = then.filter(|_| first.exact.is_some()).unwrap_or(index);
            let block = source.blocks.iter().find(|block| block.index == from);
            let order = (0..all.len()).collect();
            merged.blocks.extend(block.map(|block| Block { index, order, ..block.clone() }));
        }
        for (run, (experiment, place)) in all.iter().zip(&places).enumerate() {
            if first.exact.is_some() && place.len() < experiment.blocks.len() {
                notes.push(format!(
                    "{} of run {} with a CPU model or layout seed that not all have: left out",
                    count(experiment.blocks.len() - place.len(), "block"),
                    self.asked[run].run.info.id
                ));
            }
            merged.sides.push(self.side(run, experiment, each, place));
        }
        merged
    }

    /// Takes the side's records out of its run.
    fn side(
        &mut self,
        run: usize,
        experiment: &PlannedExperiment,
        each: &Match,
        blocks: &BTreeMap<usize, usize>,
    ) -> PlannedSide {
        let prefix = &self.prefixes[run];
        let side = &experiment.sides[each.places[run].1];
        let first = &self.asked[0].run.plan.experiments[each.places[0].0];
        let trials = renumbering(self.asked, each, run);
        let name = format!("{prefix}:{}", side.name);
        let shown = self.names.get(&(run, side.kernel_name.clone()));
        let kernel_name = shown.unwrap_or(&side.kernel_name).clone();
        let first_name = first.name.clone();
        let records = &mut self.asked[run].run.records;
        let own = records
            .extract_if(.., |one| one.experiment == experiment.name && one.side == side.name);
        self.records.extend(own.filter(|record| !record.is_again()).filter_map(|mut record| {
            record.block = *blocks.get(&record.block)?;
            record.boot = BootId(format!("{prefix}:{}", record.boot));
            record.experiment.clone_from(&first_name);
            record.side.clone_from(&name);
            renumber(&mut record, &trials);
            Some(record)
        }));
        PlannedSide { name, kernel_name, ..side.clone() }
    }
}

/// By run: which block of it becomes which of the whole. Blocks of exact runs belong together by CPU
/// model and layout seed, or, where none do, by their order; those of timed runs not at all.
fn places(all: &[PlannedExperiment]) -> Vec<BTreeMap<usize, usize>> {
    let by_order = |one: &PlannedExperiment| -> BTreeMap<usize, usize> {
        one.blocks.iter().enumerate().map(|(place, block)| (block.index, place)).collect()
    };
    let first = &all[0];
    let shared: Vec<BTreeMap<usize, usize>> =
        all.iter().map(|one| common(first, one).into_iter().collect()).collect();
    let every: Vec<usize> = first
        .blocks
        .iter()
        .map(|block| block.index)
        .filter(|index| shared.iter().all(|one| one.contains_key(index)))
        .collect();
    if first.exact.is_none() || every.is_empty() {
        return all.iter().map(by_order).collect();
    }
    let of = |one: &BTreeMap<usize, usize>| {
        every.iter().enumerate().map(|(place, index)| (one[index], place)).collect()
    };
    shared.iter().map(of).collect()
}

/// Gives the trials of a record the first run's numbers; what is of no common trial goes.
fn renumber(record: &mut BootRecord, trials: &BTreeMap<u32, u32>) {
    let BootOutcome::Completed(result) = &mut record.outcome else { return };
    let to = |trial: &mut u32| trials.get(trial).map(|new| *trial = *new).is_some();
    result.samples.retain_mut(|one| to(&mut one.trial));
    result.windows.retain_mut(|one| to(&mut one.trial));
    result.distributions.retain_mut(|one| to(&mut one.trial));
    result.monitored.retain_mut(|one| to(&mut one.trial));
    result.rows.retain_mut(|one| to(&mut one.trial));
    result.stacks.retain_mut(|one| to(&mut one.trial));
    result.kernel_log.retain_mut(|one| to(&mut one.trial));
    result.failed_trials.retain_mut(|one| to(&mut one.trial));
}
