//! `kduel trace`: one operation call by call, both sides side by side.

use clap::Args;
use kduel_counts::{Chains, TraceRecord};

use super::chains::{completed, counts, none, operations};
use super::{CliError, report};
use crate::analyse::{Call, operation, side_by_side};
use crate::collect::{RunRef, StoredRun};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, PlannedExperiment, series_label};
use crate::report::{TraceShape, trace};
use crate::text::{escape, nearest};

/// `kduel trace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs a run with `--chains`. Of each workload the first calls of the first kept iteration were recorded,
in the first boot of each side: 32768 of them, of the work of the workload's own tasks; interrupts are
left out. An operation is the stretch of as many system calls of the measuring task as each operation
makes (of exceptions where it makes none), with what its other tasks do meanwhile.")]
pub struct TraceArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder.
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    run: RunRef,
    /// Which operation, from 1; the first ones find caches of the kernel's own cold.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    op: u64,
    /// Of which workload, as the report names it; the only one if absent.
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: Option<String>,
    /// Compared with the base; the first if absent.
    #[arg(long, value_name = "SIDE")]
    side: Option<String>,
    /// Show no deeper calls.
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Also show what is the same on both sides, to the instruction.
    #[arg(long)]
    all: bool,
}

/// Prints the calls of one operation.
///
/// # Errors
///
/// The run has no such operation, workload or side, or no chains.
pub fn run(args: &TraceArgs, environment: &Environment) -> Result<u8, CliError> {
    let stored = StoredRun::open(&environment.runs_dir(), &args.run)?;
    if stored.plan.measure != Measure::Instructions {
        return Err(none("a timed run has no traces").into());
    }
    let (experiment, trial, label) = chosen_trial(&stored, args.workload.as_deref())?;
    let names: Vec<&str> = experiment.sides.iter().map(|side| side.name.as_str()).collect();
    let other = match &args.side {
        None => names.get(1).copied().unwrap_or_default(),
        Some(side) => chosen("side", side, names[1..].iter().copied())?,
    };
    let sides = [names[0], other];
    let (base, its) = (
        calls(&stored, experiment, trial, sides[0], args.op)?,
        calls(&stored, experiment, trial, sides[1], args.op)?,
    );
    let rows = side_by_side(&base, &its);
    let shape = TraceShape { depth: args.depth, all: args.all };
    let mut text = format!(
        "operation {} of {label}, first kept iteration: instructions of each call with what it calls\n\n",
        args.op
    );
    text += &trace(&rows, sides, shape);
    let lines: Vec<String> = text.lines().map(escape).collect();
    report::emit(&format!("{}\n", lines.join("\n")))?;
    Ok(exit_code::DONE)
}

fn chosen_trial<'a>(
    stored: &'a StoredRun,
    wanted: Option<&str>,
) -> Result<(&'a PlannedExperiment, u32, String), Failure> {
    let of = |experiment: &'a PlannedExperiment| {
        experiment.trials.iter().map(move |trial| (experiment, trial.id, series_label(trial)))
    };
    let all: Vec<_> = stored.plan.experiments.iter().flat_map(of).collect();
    let labels = all.iter().map(|(_, _, label)| label.as_str());
    let wanted = match wanted {
        Some(wanted) => chosen("workload", wanted, labels)?,
        None if all.len() == 1 => all[0].2.as_str(),
        None => {
            let listed = labels.collect::<Vec<_>>().join(", ");
            let title = "the run has several workloads";
            return Err(usage(title, &format!("name one with --workload: {listed}")));
        }
    };
    let found = all.iter().find(|(_, _, label)| label == wanted);
    found.cloned().ok_or_else(|| usage("the run has no workloads", "run it anew"))
}

/// The one of `all` that is meant.
fn chosen<'a>(
    what: &str,
    wanted: &str,
    all: impl Iterator<Item = &'a str> + Clone,
) -> Result<&'a str, Failure> {
    if let Some(found) = all.clone().find(|name| *name == wanted) {
        return Ok(found);
    }
    let hint = match nearest(wanted, all.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it has {}", all.collect::<Vec<_>>().join(", ")),
    };
    Err(usage(&format!("the run has no {what} `{wanted}` to trace"), &hint))
}

fn calls(
    stored: &StoredRun,
    experiment: &PlannedExperiment,
    trial: u32,
    side: &str,
    op: u64,
) -> Result<Vec<Call>, Failure> {
    let record = completed(stored, experiment)
        .find(|record| record.side == side)
        .ok_or_else(|| usage(&format!("no boot of {side} was completed"), "run it anew"))?;
    let counts = counts(stored, record)?;
    let ops = operations(record, trial);
    let Some(chains) = &counts.chains else {
        return Err(none(&format!("{side} was booted without --chains")));
    };
    let number = |trace: &TraceRecord| counts.windows.get(trace.window).map(|window| window.number);
    let recorded = |chains: &Chains| {
        let of_trial = |trace: &&TraceRecord| number(trace).is_some_and(|n| ops.contains_key(&n));
        chains.traces.iter().find(of_trial).cloned()
    };
    let found = recorded(chains).and_then(|trace| Some((ops.get(&number(&trace)?)?, trace)));
    let Some((ops, trace)) = found else {
        return Err(usage(&format!("no window of {side} was recorded"), "run it anew"));
    };
    operation(chains, &trace, *ops, op)
        .map_err(|why| usage(&format!("operation {op} of {side} cannot be shown: {why}"), WHICH))
}

const WHICH: &str = "choose another one with --op; a workload whose operations make other calls each \
                     time has chains (report --format folded) and no traces";

fn usage(title: &str, hint: &str) -> Failure {
    Failure::new(FailureClass::Usage, title).hint(hint)
}
