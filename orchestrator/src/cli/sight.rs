//! Before a timed run: what it could show, and what would show more.

use std::time::Duration;

use crate::analyse::{Sight, best_within, sights};
use crate::boot::Accel;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Measure, Plan, PlannedExperiment};
use crate::report::number;
use crate::text::count;
use crate::units;

/// Flags that mean nothing to an exact run, and whether a value follows.
const TIMED_FLAGS: [(&str, bool); 7] = [
    ("--pairs", true),
    ("--quick", false),
    ("--stat", true),
    ("--pairing", true),
    ("--anytime", false),
    ("--budget", true),
    ("--measure", true),
];

/// Refuses a plan that could not show changes as small as its margins, unless there are none to show.
/// `command` is how it was asked for, program first.
pub(super) fn refuse_blind(plan: &Plan, accel: Accel, command: &[String]) -> Result<(), Failure> {
    if plan.measure != Measure::Time || plan.aa {
        return Ok(());
    }
    let mut blind = Vec::new();
    for experiment in &plan.experiments {
        let all = sights(plan, experiment, accel);
        blind.extend(all.iter().filter(|sight| !sight.is_enough()).map(line));
    }
    if blind.is_empty() {
        return Ok(());
    }
    let title = "this run could not show changes as small as its margins";
    let failure = Failure::new(FailureClass::Usage, title);
    let failure = blind.into_iter().fold(failure, Failure::detail);
    Err(failure
        .detail(format!("counting needs no repetition: {}", exactly(command)))
        .hint("raise --pairs or --margin, calibrate this host with --calibrate, or add --anyway"))
}

/// The same command as an exact run.
fn exactly(command: &[String]) -> String {
    let mut words = vec!["kduel".to_owned()];
    let mut rest = command.iter().skip(1);
    let mut own = Vec::new();
    while let Some(word) = rest.next() {
        if word == "--" {
            own.push(word.clone());
            own.extend(rest.by_ref().cloned());
            break;
        }
        let name = word.split('=').next().unwrap_or_default();
        match TIMED_FLAGS.iter().find(|(flag, _)| *flag == name) {
            Some((_, true)) if !word.contains('=') => _ = rest.next(),
            Some(_) => {}
            None => words.push(word.clone()),
        }
    }
    words.push("--measure instructions".to_owned());
    words.extend(own);
    words.join(" ")
}

/// One series in one line.
pub(super) fn line(sight: &Sight) -> String {
    let (pairs, margin) = (count(sight.pairs, "pair"), number::margin(sight.margin));
    let source = match &sight.calibration {
        Some(run) => format!("calibrated by run {run}"),
        None => "not calibrated".to_owned(),
    };
    match sight.detectable {
        Some(change) => format!(
            "{}: {} with {pairs}, margin {margin} ({source})",
            sight.series,
            number::percent(change)
        ),
        None => format!("{}: nothing, {pairs} decide nothing, margin {margin}", sight.series),
    }
}

/// What `budget` would best be spent on; absent where that cannot be said.
pub(super) fn budget(
    plan: &Plan,
    experiment: &PlannedExperiment,
    accel: Accel,
    budget: Duration,
) -> Option<String> {
    let all = sights(plan, experiment, accel);
    let worst = all.iter().max_by(|a, b| {
        let sd = |sight: &Sight| sight.levels.pair_sd(sight.iterations) / sight.margin.max(1e-9);
        sd(a).total_cmp(&sd(b))
    })?;
    let best = best_within(budget, experiment, worst, accel).ok()?;
    let spent = units::duration(budget);
    let boots = format!(
        "{} of {}",
        count(best.pairs, "pair"),
        count(best.iterations as usize, "iteration")
    );
    Some(match best.detectable {
        Some(change) => {
            format!(
                "in {spent} best {boots}: {} of {}",
                number::percent(change.exp_m1()),
                worst.series
            )
        }
        None => format!("in {spent} {boots} at most, which decide nothing"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::plan;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_run_that_sees_too_little_is_told_what_sees_more() {
        let command = words("/usr/bin/kduel run -a x --pairs 4 -b y --budget=3m -w fork-exit");
        let failure = refuse_blind(&plan(&["base", "patched"], 4), Accel::Tcg, &command);
        let said = failure.unwrap_err().to_string();
        assert!(said.contains("could not show"), "{said}");
        assert_eq!(exactly(&command), "kduel run -a x -b y -w fork-exit --measure instructions");
        let own = words("kduel run -a x -b y -- ./bench --pairs 3");
        assert_eq!(
            exactly(&own),
            "kduel run -a x -b y --measure instructions -- ./bench --pairs 3"
        );
        assert_eq!(refuse_blind(&plan(&["base", "patched"], 30), Accel::Tcg, &command), Ok(()));
    }

    #[test]
    fn what_is_seen_is_said_in_a_line() {
        let plan = plan(&["base", "patched"], 30);
        let said = line(&sights(&plan, &plan.experiments[0], Accel::Tcg)[0]);
        assert!(
            said.starts_with("fork-exit time: ") && said.contains("with 30 pairs, margin 10 %"),
            "{said}"
        );
        let spent = budget(&plan, &plan.experiments[0], Accel::Tcg, Duration::from_secs(1200));
        assert!(spent.as_ref().is_some_and(|s| s.starts_with("in 20 min 00 s best ")), "{spent:?}");
    }
}
