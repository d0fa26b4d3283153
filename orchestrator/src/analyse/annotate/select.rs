//! Which of a run's trials, sides and boots a question is about.

use std::collections::BTreeSet;

use kduel_protocol::TrialSpec;

use crate::analyse::series::latest;
use crate::collect::BootRecord;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, Plan, PlannedExperiment, PlannedSide, series_label};
use crate::text::nearest;

/// The experiments, each with its trials, that `workload` names: by its name, or with parameters as
/// reports write it. All of them if it is absent.
///
/// # Errors
///
/// `Usage`: the run is a timed one, or has no such workload.
pub fn trials<'a>(
    plan: &'a Plan,
    workload: Option<&str>,
) -> Result<Vec<(&'a PlannedExperiment, Vec<&'a TrialSpec>)>, Failure> {
    if plan.measure != Measure::Instructions {
        return Err(usage("it is a timed run, and only exact runs have a profile".to_owned())
            .hint("`kduel run --measure instructions` makes one"));
    }
    let is_meant = |trial: &&TrialSpec| {
        workload.is_none_or(|wanted| trial.workload == wanted || series_label(trial) == wanted)
    };
    let meant: Vec<_> = plan
        .experiments
        .iter()
        .map(|experiment| (experiment, experiment.trials.iter().filter(is_meant).collect()))
        .filter(|(_, trials): &(_, Vec<&TrialSpec>)| !trials.is_empty())
        .collect();
    if meant.is_empty() {
        let labels = plan.experiments.iter().flat_map(|e| &e.trials).map(series_label);
        return Err(not_there("workload", workload.unwrap_or_default(), labels));
    }
    Ok(meant)
}

/// The sides that are named, else the base and the side behind it.
///
/// # Errors
///
/// `Usage`: there is no side of that name, or too many are named.
pub fn sides<'a>(
    experiment: &'a PlannedExperiment,
    named: &[String],
) -> Result<Vec<&'a PlannedSide>, Failure> {
    if named.len() > 2 {
        return Err(usage("more than two sides are named".to_owned())
            .hint("--side NAME shows one; given twice, both beside each other"));
    }
    if named.is_empty() {
        return Ok(experiment.sides.iter().take(2).collect());
    }
    let find = |name: &String| {
        let names = experiment.sides.iter().map(|side| side.name.clone());
        let found = experiment.sides.iter().find(|side| side.name == *name);
        found.ok_or_else(|| not_there("side", name, names))
    };
    named.iter().map(find).collect()
}

/// The CPU model that is named, else the first.
///
/// # Errors
///
/// `Usage`: nothing was booted on such a model.
pub fn cpu<'a>(experiment: &'a PlannedExperiment, named: Option<&str>) -> Result<&'a str, Failure> {
    let mut models = experiment.blocks.iter().filter_map(|block| block.cpu.as_deref());
    let Some(named) = named else { return Ok(models.next().unwrap_or_default()) };
    let found = models.clone().find(|model| *model == named);
    found.ok_or_else(|| not_there("CPU model", named, models.map(str::to_owned)))
}

/// The boots of a side on a CPU model, one for each block.
pub fn boots<'a>(
    records: &'a [BootRecord],
    experiment: &PlannedExperiment,
    side: &PlannedSide,
    cpu: &str,
) -> Vec<&'a BootRecord> {
    let on = |record: &&BootRecord| record.exact.as_ref().is_some_and(|exact| exact.cpu == cpu);
    latest(records, &experiment.name, &side.name).into_values().filter(on).collect()
}

fn not_there(what: &str, named: &str, all: impl Iterator<Item = String>) -> Failure {
    let all: BTreeSet<String> = all.collect();
    let near = nearest(named, all.iter().map(String::as_str));
    let hint = near.map_or_else(
        || format!("it has {}", all.iter().map(String::as_str).collect::<Vec<_>>().join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    usage(format!("the run has no {what} `{named}`")).hint(hint)
}

fn usage(title: String) -> Failure {
    Failure::new(FailureClass::Usage, title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::{plan, trial};

    fn exact() -> Plan {
        let mut plan = plan(&["base", "patched", "newer"], 1);
        plan.measure = Measure::Instructions;
        plan.experiments[0].trials.push(trial(1, "syscall"));
        plan.experiments[0].blocks[0].cpu = Some("Westmere-v1".into());
        plan
    }

    fn hint<T>(answer: Result<T, Failure>) -> String {
        let failure = answer.err().unwrap();
        assert_eq!(failure.class, FailureClass::Usage);
        failure.hint.unwrap()
    }

    #[test]
    fn trials_are_chosen_by_workload() {
        let plan = exact();
        let ids = |workload| -> Vec<u32> {
            trials(&plan, workload).unwrap()[0].1.iter().map(|trial| trial.id).collect()
        };
        assert_eq!(ids(None), [0, 1]);
        assert_eq!(ids(Some("syscall")), [1]);
        assert_eq!(hint(trials(&plan, Some("sycall"))), "did you mean `syscall`?");
        let timed = Plan { measure: Measure::Time, ..exact() };
        assert!(hint(trials(&timed, None)).contains("--measure instructions"));
    }

    #[test]
    fn sides_and_models_are_chosen_by_name() {
        let plan = exact();
        let experiment = &plan.experiments[0];
        let names = |named: &[&str]| -> Vec<String> {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            sides(experiment, &named).unwrap().iter().map(|side| side.name.clone()).collect()
        };
        assert_eq!(names(&[]), ["base", "patched"]);
        assert_eq!(names(&["newer"]), ["newer"]);
        assert_eq!(names(&["newer", "base"]), ["newer", "base"]);
        assert_eq!(hint(sides(experiment, &["zzzzzz".into()])), "it has base, newer, patched");
        assert_eq!(cpu(experiment, None).unwrap(), "Westmere-v1");
        assert_eq!(hint(cpu(experiment, Some("Westmere"))), "did you mean `Westmere-v1`?");
    }
}
