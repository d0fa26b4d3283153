use kduel_protocol::{Facts, TrialSpec};

use crate::collect::{BootRecord, BootResult};
use crate::plan::{PlannedExperiment, series_label};
use crate::report::number;
use crate::run::topology::untold;

use super::failures::{KernelBoots, fails};
use super::series::latest_results;
use super::sides::identity;
use super::{SideSummary, default_margin};

/// What the reader should know before believing the numbers of `experiment`.
pub(super) fn warn(
    experiment: &PlannedExperiment,
    sides: &[SideSummary],
    records: &[BootRecord],
    warnings: &mut Vec<String>,
) {
    let Some((base, candidates)) = sides.split_first() else { return };
    if let Some(placement) = experiment.placements.iter().find(|each| each.overcommitted) {
        let (name, why) = (&experiment.name, placement.notes.join(", "));
        warnings.push(format!("{name}: overcommitted, every number is marked with !: {why}"));
    }
    for side in sides {
        let name = &side.name;
        if side.not_idle > 0 {
            let (boots, of) = (side.not_idle, side.completed);
            warnings.push(format!(
                "{name}: guest was not idle before the trials in {boots} of {of} boots"
            ));
        }
    }
    for side in sides {
        let Some(facts) = &side.facts else { continue };
        let untold = untold(&experiment.topology, facts);
        if !untold.is_empty() {
            let (name, what) = (&side.name, untold.join(", "));
            warnings.push(format!("{name}: not verified in the guest's kernel: {what}"));
        }
    }
    let base_kernel = KernelBoots::of(&experiment.name, &base.name, records);
    for side in sides {
        let kernel = KernelBoots::of(&experiment.name, &side.name, records);
        let failures = kernel.failures();
        if let Some(first) = failures.first()
            && fails(&kernel, &base_kernel).is_none()
        {
            let (name, words) = (&side.name, first.class.words());
            warnings.push(format!(
                "{name}: {words} in {} of {} boots",
                failures.len(),
                kernel.count()
            ));
        }
    }
    warnings.extend(wide_margins(experiment, records));
    for side in candidates {
        for what in undeclared(experiment, &side.name, records) {
            if !warnings.contains(&what) {
                warnings.push(what);
            }
        }
    }
}

/// Margins that the host's calibration made wider than usual, in sentences.
fn wide_margins(experiment: &PlannedExperiment, records: &[BootRecord]) -> Vec<String> {
    let Some(accel) = records.first().map(|record| record.accel) else { return Vec::new() };
    let of_trial = |trial: &TrialSpec| -> Vec<String> {
        let label = series_label(trial);
        let own = experiment.calibrated.iter().filter(|series| series.workload == label);
        own.filter_map(|series| {
            let usual = default_margin(accel, &trial.workload, &series.metric);
            let wider = series.margin > usual && experiment.margin.relative.is_none();
            let (found, usual) = (number::margin(series.margin), number::margin(usual));
            let (metric, run) = (&series.metric, &series.run);
            wider.then(|| {
                format!("{label} {metric}: margin {found} from the calibration {run}, not {usual}")
            })
        })
        .collect()
    };
    experiment.trials.iter().flat_map(of_trial).collect()
}

/// In what the base's guests and those of `side` differ beyond what was declared, or one side's guests
/// among each other, in sentences.
pub(super) fn undeclared(
    experiment: &PlannedExperiment,
    side: &str,
    records: &[BootRecord],
) -> Vec<String> {
    let Some(base) = experiment.sides.first() else { return Vec::new() };
    let names = [base.name.as_str(), side];
    let results = names.map(|name| latest_results(records, &experiment.name, name));
    let sides = [0, 1].map(|side| -> Vec<&Facts> {
        results[side].values().map(|result| &result.facts).collect()
    });
    let mut found = Vec::new();
    for ((name, facts), results) in names.iter().zip(&sides).zip(&results) {
        if let Some((before, after)) = results.values().find_map(|result| clock_change(result)) {
            found.push(format!(
                "{name}: the guest's clock source changed during a boot: {before} -> {after}"
            ));
        }
        if differs(facts, identity) {
            found.push(format!("{name}: not every boot ran the same kernel"));
        }
        if experiment.exact.is_none() && differs(facts, clock) {
            found.push(format!("{name}: not every boot used the same clock source"));
        }
    }
    let [Some(a), Some(b)] = sides.map(|facts| facts.first().copied()) else { return found };
    let [a_name, b_name] = names;
    // A sealed guest's clocks all follow the instructions.
    if experiment.exact.is_none() && clock(a) != clock(b) {
        let (a, b) = (clock(a), clock(b));
        found.push(format!("{a_name} and {b_name} use different clock sources: {a} and {b}"));
    }
    let declared = experiment.sides.iter().any(|side| !side.knobs.cpu_flags.is_empty());
    if !declared && a.cpu_model != b.cpu_model {
        let (a, b) = (&a.cpu_model, &b.cpu_model);
        found.push(format!("{a_name} and {b_name} have different processors: {a} and {b}"));
    }
    found
}

/// Which counter the guest's clock reads: until Linux has measured the TSC's rate for itself, some
/// seconds after the start, it calls it `tsc-early`.
fn clock(facts: &Facts) -> &str {
    settled(&facts.clocksource)
}

fn settled(clocksource: &str) -> &str {
    clocksource.trim_end_matches("-early")
}

/// From what to what the clock source changed during a boot: while the kernel watches the TSC, it may
/// give it up.
fn clock_change(result: &BootResult) -> Option<(&str, &str)> {
    let after = settled(&result.after.as_ref()?.clocksource);
    let before = clock(&result.facts);
    (before != after).then_some((before, after))
}

fn differs<'a, T: PartialEq>(facts: &[&'a Facts], what: impl Fn(&'a Facts) -> T) -> bool {
    facts.windows(2).any(|pair| what(pair[0]) != what(pair[1]))
}
