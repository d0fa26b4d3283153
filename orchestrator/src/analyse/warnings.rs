use crate::collect::BootRecord;
use crate::plan::PlannedExperiment;

use super::SideSummary;
use super::failures::{KernelBoots, fails};
use super::series::latest_results;
use super::sides::identity;

/// What the reader should know before believing the numbers of `experiment`.
pub(super) fn warn(
    experiment: &PlannedExperiment,
    sides: &[SideSummary],
    records: &[BootRecord],
    warnings: &mut Vec<String>,
) {
    let Some((base, candidates)) = sides.split_first() else { return };
    for side in sides {
        let name = &side.name;
        let results = latest_results(records, &experiment.name, name);
        let mut identities = results.values().map(|result| identity(&result.facts));
        if let Some(first) = identities.next()
            && identities.any(|other| other != first)
        {
            warnings.push(format!("{name}: not every boot ran the same kernel"));
        }
        if side.not_idle > 0 {
            let (boots, of) = (side.not_idle, side.completed);
            warnings.push(format!(
                "{name}: guest was not idle before the trials in {boots} of {of} boots"
            ));
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
    // A sealed guest's clocks all follow the instructions.
    let timed = candidates.iter().filter(|_| experiment.exact.is_none());
    for side in timed {
        if let (Some(a), Some(b)) = (&base.facts, &side.facts)
            && a.clocksource != b.clocksource
        {
            let (base_name, name) = (&base.name, &side.name);
            warnings.push(format!(
                "{base_name} and {name} use different clock sources: {} and {}",
                a.clocksource, b.clocksource
            ));
        }
    }
}
