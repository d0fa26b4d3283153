//! Sides of different runs against each other. Pure.

mod boots;
mod judge;
mod merge;
mod obstacles;
mod select;
#[cfg(test)]
mod tests;

pub use merge::{Merged, merge};
pub use obstacles::{Difference, Obstacle, differences};
pub use select::{Asked, Match, matches};

use crate::analyse::{Analysis, Comparison, Verdict, analyse};
use crate::collect::BootRecord;
use crate::plan::{Measure, Plan};
use crate::report::number;
use crate::text::count;

/// Compares the sides of merged runs, the first run's being the base.
///
/// Boots of different runs are no pairs, so timed runs are compared as two samples of boots, in one
/// look. The runs' own bases, where all are the same kernel with the same knobs, are the control:
/// where they moved by the margin, it was not the kernel that moved, and nothing is decided.
pub fn analyse_across(merged: &Merged) -> Analysis {
    let mut analysis = compared(&merged.plan, &merged.records);
    if let Some((plan, records)) = &merged.control {
        let control = compared(plan, records);
        for found in &mut analysis.comparisons {
            check(found, &control.comparisons);
        }
        analysis.warnings.extend(told(&control.comparisons));
    }
    if !merged.despite.is_empty() {
        let despite = format!("; compared despite another {}", merged.despite.join(", another "));
        analysis.comparisons.iter_mut().for_each(|found| found.reason.push_str(&despite));
    }
    analysis.worst = worst(&analysis.comparisons);
    analysis.warnings.splice(0..0, merged.notes.iter().cloned());
    analysis
}

fn compared(plan: &Plan, records: &[BootRecord]) -> Analysis {
    match plan.measure {
        Measure::Instructions => analyse(plan, records),
        Measure::Time => judge::analyse_boots(plan, records),
    }
}

fn worst(comparisons: &[Comparison]) -> Verdict {
    let verdicts = |primary| {
        comparisons.iter().filter(move |found| found.primary == primary).map(|found| found.verdict)
    };
    verdicts(true).min().or_else(|| verdicts(false).min()).unwrap_or(Verdict::Invalid)
}

/// The run that a side is of: what stands before the colon.
fn run_of(side: &str) -> &str {
    side.split_once(':').map_or(side, |(run, _)| run)
}

fn moved(control: &Comparison) -> bool {
    matches!(control.verdict, Verdict::Regression | Verdict::Improvement)
}

/// Where the same kernel moved between the runs, what another did proves nothing.
fn check(found: &mut Comparison, control: &[Comparison]) {
    let same = |other: &&Comparison| {
        other.series == found.series && run_of(&other.side) == run_of(&found.side)
    };
    let Some(control) = control.iter().find(same).filter(|control| moved(control)) else { return };
    let decided =
        matches!(found.verdict, Verdict::Regression | Verdict::Improvement | Verdict::NoChange);
    if let (true, Some(change)) = (decided, control.change) {
        found.verdict = Verdict::Inconclusive;
        found.reason = format!(
            "the base, the same in every run, itself moved by {}: not only the kernel changed",
            number::signed_percent(change)
        );
        if let Some(exact) = &mut found.exact {
            exact.word = None;
        }
    }
}

/// What the control says of each run, over its primary series.
fn told(control: &[Comparison]) -> Vec<String> {
    let primary = || control.iter().filter(|found| found.primary && found.change.is_some());
    let mut sides: Vec<&str> = primary().map(|found| found.side.as_str()).collect();
    sides.sort_unstable();
    sides.dedup();
    let line = |side: &str| {
        let own: Vec<&Comparison> = primary().filter(|found| found.side == side).collect();
        let changes = || own.iter().filter_map(|found| found.change);
        let (least, most) =
            (changes().fold(f64::MAX, f64::min), changes().fold(f64::MIN, f64::max));
        let ends = [least, most].map(number::signed_percent);
        let range = if ends[0] == ends[1] { ends[0].clone() } else { ends.join(" to ") };
        let beyond = own.iter().filter(|found| moved(found)).count();
        format!(
            "control: {side}, the base, is the same kernel with the same knobs in every run; it moved \
             by {range} in {}, {} by the margin",
            count(own.len(), "comparison"),
            if beyond == 0 { "nowhere".to_owned() } else { format!("in {beyond}") }
        )
    };
    sides.into_iter().map(line).collect()
}
