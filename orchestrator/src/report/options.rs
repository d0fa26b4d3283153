//! In what the config of a side differs from the base's.

use crate::analyse::{OptionDifference, SideSummary, debugging, differences};
use crate::collect::RunInfo;
use crate::plan::{Plan, PlannedExperiment};
use crate::text::count;

use super::Report;

/// Options that are shown in text; the JSON report has all.
const SHOWN: usize = 8;

/// The options of a side that are not the base's; `None` where a config is not known.
pub(super) fn of_side(
    info: &RunInfo,
    plan: &Plan,
    side: &SideSummary,
) -> Option<Vec<OptionDifference>> {
    let experiment = plan.experiments.iter().find(|each| each.name == side.experiment)?;
    let base = &experiment.sides.first()?.kernel_name;
    Some(differences(info.configs.get(base)?, info.configs.get(&side.kernel_name)?))
}

/// `3 config options differ from the base's: CONFIG_HZ 250 -> 1000, …`, if any do.
pub(super) fn line(report: &Report<'_>, side: &SideSummary) -> Option<String> {
    let differences = of_side(report.info, report.plan, side)?;
    if differences.is_empty() {
        return None;
    }
    let shown: Vec<String> = differences
        .iter()
        .take(SHOWN)
        .map(|each| format!("{} {} -> {}", each.option, each.base, each.value))
        .collect();
    let more = match differences.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more (see the JSON report)"),
    };
    let (options, verb) = match differences.len() {
        1 => ("1 config option".to_owned(), "differs"),
        several => (count(several, "config option"), "differ"),
    };
    Some(format!("{options} {verb} from the base's: {}{more}", shown.join(", ")))
}

/// Kernels whose config spoils measurements, in sentences.
pub fn spoilt(info: &RunInfo, plan: &Plan) -> Vec<String> {
    let kernels = |experiment: &PlannedExperiment| {
        experiment.sides.iter().map(|side| side.kernel_name.clone()).collect::<Vec<_>>()
    };
    let mut names: Vec<String> = plan.experiments.iter().flat_map(kernels).collect();
    names.sort();
    names.dedup();
    let sentence = |name: String| {
        let on = debugging(info.configs.get(&name)?);
        (!on.is_empty()).then(|| {
            format!(
                "{name} is a debugging kernel, its numbers are not those of one in use: {}",
                on.join(", ")
            )
        })
    };
    names.into_iter().filter_map(sentence).collect()
}
