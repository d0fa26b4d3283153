//! Which sides of which runs belong together.

use std::collections::BTreeSet;

use kduel_protocol::TrialSpec;

use crate::collect::StoredRun;
use crate::fault::{Failure, FailureClass};
use crate::plan::{PlannedExperiment, series_label};
use crate::text::{escape, nearest};

/// A run, and which of its sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The run.
    pub run: StoredRun,
    /// The side by name; if absent the one called as in the first run, else the last.
    pub side: Option<String>,
}

/// One experiment of the first run and what it is compared with: places in each run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// By run: the place of the experiment and of its side.
    pub places: Vec<(usize, usize)>,
    /// By trial of the first run's experiment that all have: its place in each run.
    pub trials: Vec<Vec<usize>>,
    /// Labels of trials that not all have.
    pub alone: Vec<String>,
}

/// The experiments that all runs have, and their sides. Experiments belong together by name, or
/// because each run has only one.
///
/// # Errors
///
/// `Usage`: fewer than two runs, a side that is nowhere, or nothing that belongs together.
pub fn matches(asked: &[Asked]) -> Result<(Vec<Match>, Vec<String>), Failure> {
    let Some((first, others)) = asked.split_first() else { return Err(usage("no run is named")) };
    let single = asked.iter().all(|one| one.run.plan.experiments.len() == 1);
    let (mut found, mut alone) = (Vec::new(), Vec::new());
    let mut missing = BTreeSet::new();
    for (place, experiment) in first.run.plan.experiments.iter().enumerate() {
        let Some(side) = side(experiment, first.side.as_deref(), None) else {
            missing.extend(first.side.clone());
            continue;
        };
        let name = &experiment.sides[side].name;
        let mut places = vec![(place, side)];
        for other in others {
            let mut all = other.run.plan.experiments.iter();
            let own = all.position(|one| single || one.name == experiment.name);
            let Some(own) = own else { break };
            let experiment = &other.run.plan.experiments[own];
            match self::side(experiment, other.side.as_deref(), Some(name)) {
                Some(side) => places.push((own, side)),
                None => missing.extend(other.side.clone()),
            }
        }
        if places.len() < asked.len() {
            alone.push(format!(
                "experiment {} is not in every run and was left out",
                experiment.name
            ));
            continue;
        }
        found.extend(trials(asked, places, &mut alone));
    }
    if found.is_empty() {
        return Err(nothing(asked, &missing));
    }
    Ok((found, alone))
}

/// The place of the side that is wanted.
fn side(experiment: &PlannedExperiment, wanted: Option<&str>, like: Option<&str>) -> Option<usize> {
    let named = |name: &str| experiment.sides.iter().position(|side| side.name == name);
    match (wanted, like) {
        (Some(wanted), _) => named(wanted),
        (None, like) => like.and_then(named).or_else(|| experiment.sides.len().checked_sub(1)),
    }
}

/// Trials belong together by what is measured with which parameters; those of one workload that are
/// left over, with parameters that differ, in their order.
fn trials(asked: &[Asked], places: Vec<(usize, usize)>, notes: &mut Vec<String>) -> Option<Match> {
    let of = |run: usize| &asked[run].run.plan.experiments[places[run].0].trials[..];
    let mut columns: Vec<Vec<Option<usize>>> = vec![(0..of(0).len()).map(Some).collect()];
    for run in 1..asked.len() {
        columns.push(pair(of(0), of(run)));
    }
    let (mut trials, mut alone) = (Vec::new(), Vec::new());
    for place in 0..of(0).len() {
        let row: Option<Vec<usize>> = columns.iter().map(|column| column[place]).collect();
        match row {
            Some(row) => trials.push(row),
            None => alone.push(series_label(&of(0)[place])),
        }
    }
    for (run, column) in columns.iter().enumerate().skip(1) {
        let left = (0..of(run).len()).filter(|place| !column.contains(&Some(*place)));
        alone.extend(left.map(|place| series_label(&of(run)[place])));
    }
    alone.sort();
    alone.dedup();
    let name = &asked[0].run.plan.experiments[places[0].0].name;
    notes.extend(
        alone.iter().map(|label| {
            format!("{label} of experiment {name} is not in every run and was left out")
        }),
    );
    (!trials.is_empty()).then_some(Match { places, trials, alone })
}

fn pair(first: &[TrialSpec], other: &[TrialSpec]) -> Vec<Option<usize>> {
    let labels: Vec<String> = other.iter().map(series_label).collect();
    let mut places: Vec<Option<usize>> = vec![None; first.len()];
    let mut taken = vec![false; other.len()];
    let by_label = |place: usize, there: usize| series_label(&first[place]) == labels[there];
    let by_name = |place: usize, there: usize| first[place].workload == other[there].workload;
    for fits in [&by_label as &dyn Fn(usize, usize) -> bool, &by_name] {
        for (place, kept) in places.iter_mut().enumerate() {
            let free = (0..other.len()).find(|there| !taken[*there] && fits(place, *there));
            if let (None, Some(there)) = (*kept, free) {
                *kept = Some(there);
                taken[there] = true;
            }
        }
    }
    places
}

fn nothing(asked: &[Asked], missing: &BTreeSet<String>) -> Failure {
    let mut failure = match missing.first() {
        Some(side) => usage(&format!("there is no side `{}` to compare", escape(side))),
        None => usage("the runs have no experiment with a workload in common"),
    };
    let mut near = None;
    for one in asked {
        for experiment in &one.run.plan.experiments {
            let sides: Vec<&str> = experiment.sides.iter().map(|side| &side.name[..]).collect();
            let workloads: Vec<String> = experiment.trials.iter().map(series_label).collect();
            let wanted = missing.first().filter(|_| near.is_none());
            near = near.or_else(|| nearest(wanted?, sides.iter().copied()).map(escape));
            failure = failure.detail(escape(&format!(
                "run {}: experiment {}, sides {}, workloads {}",
                one.run.info.id,
                experiment.name,
                sides.join(", "),
                workloads.join(", ")
            )));
        }
    }
    match near {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("name a side as RUN:SIDE"),
    }
}

fn usage(title: &str) -> Failure {
    Failure::new(FailureClass::Usage, title)
}
