use std::collections::{BTreeMap, BTreeSet};

use kduel_protocol::{Facts, KnobKind, KnobReading};
use serde::{Deserialize, Serialize};

use crate::collect::{BootOutcome, BootRecord, BootResult, ExactBoot};
use crate::plan::{PlannedExperiment, PlannedSide};

use super::contamination::{SideNoise, side_noise};
use super::failures::{FailureGroup, group_failures};
use super::series::happened;

/// What a side turned out to be, and how its boots went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideSummary {
    /// The experiment.
    pub experiment: String,
    /// `base`, `patched`, ….
    pub name: String,
    /// What the user called the kernel.
    pub kernel_name: String,
    /// As the first completed boot saw itself; absent if none completed.
    pub facts: Option<Facts>,
    /// Knobs, read back in the first completed boot.
    pub knobs: Vec<KnobReading>,
    /// Boots that ended, repeated ones included.
    pub boots: usize,
    /// Those that gave a result.
    pub completed: usize,
    /// Those in which the guest never became idle before the trials.
    pub not_idle: usize,
    /// Median time from start to ready, in milliseconds.
    pub ready_ms: Option<f64>,
    /// Boots and trials that failed, alike ones together.
    pub failures: Vec<FailureGroup>,
    /// What the host did to them; absent where it does not tell.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub noise: Option<SideNoise>,
    /// In an exact run the first completed boot on each CPU model.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub exact: Vec<ExactGuest>,
}

/// A boot of an exact run, and the processor as the guest saw it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExactGuest {
    /// What decided its bits.
    pub boot: ExactBoot,
    /// Whether the kernel keeps its lock prefixes: `live`, or not.
    pub smp_alternatives: Option<String>,
    /// By name, what the kernel says of each.
    pub vulnerabilities: BTreeMap<String, String>,
    /// As the kernel names them, sorted.
    pub features: Vec<String>,
}

/// Sums up the boots of `side`. `records` may hold other sides and experiments.
pub(super) fn summarise(
    experiment: &PlannedExperiment,
    side: &PlannedSide,
    records: &[BootRecord],
) -> SideSummary {
    let own: Vec<&BootRecord> = records
        .iter()
        .filter(|record| record.experiment == experiment.name && record.side == side.name)
        .filter(|record| happened(record))
        .collect();
    let results = || own.iter().filter_map(|record| result(record));
    let ready: Vec<f64> =
        own.iter().filter_map(|record| record.ready_ms).map(|ms| ms as f64).collect();
    SideSummary {
        experiment: experiment.name.clone(),
        name: side.name.clone(),
        kernel_name: side.kernel_name.clone(),
        facts: results().next().map(|result| result.facts.clone()),
        knobs: results().next().map(|result| result.knobs.clone()).unwrap_or_default(),
        boots: own.len(),
        completed: results().count(),
        not_idle: results().filter(|result| !result.idle).count(),
        ready_ms: kduel_stats::median(&ready).ok(),
        failures: group_failures(experiment, &own),
        noise: side_noise(&own),
        exact: exact_guests(&own),
    }
}

fn exact_guests(own: &[&BootRecord]) -> Vec<ExactGuest> {
    let mut guests: Vec<ExactGuest> = Vec::new();
    for record in own {
        let (Some(boot), Some(result)) = (&record.exact, result(record)) else { continue };
        if guests.iter().all(|known| known.boot.cpu != boot.cpu) {
            let facts = &result.facts;
            guests.push(ExactGuest {
                boot: ExactBoot::clone(boot),
                smp_alternatives: facts.settings.get("smp-alternatives").cloned(),
                vulnerabilities: facts.vulnerabilities.clone(),
                features: facts.cpu_flags.clone(),
            });
        }
    }
    guests
}

/// The result of a completed boot.
pub(super) fn result(record: &BootRecord) -> Option<&BootResult> {
    match &record.outcome {
        BootOutcome::Completed(result) => Some(result),
        BootOutcome::Failed(_) => None,
    }
}

/// Whether two boots ran the same thing: same build, same command line, same knobs read back.
pub fn sides_same(a: &BootResult, b: &BootResult) -> bool {
    identity(&a.facts) == identity(&b.facts)
        && cmdline_words(&a.facts.cmdline) == cmdline_words(&b.facts.cmdline)
        && readings(&a.knobs) == readings(&b.knobs)
}

/// What tells one build from another, as far as the guest can see it.
pub(super) fn identity(facts: &Facts) -> (&str, &str, Option<&str>) {
    (&facts.release, &facts.version, facts.build_id.as_deref())
}

/// The command line without kduel's own words, which differ from boot to boot.
pub fn cmdline_words(cmdline: &str) -> Vec<&str> {
    cmdline.split_whitespace().filter(|word| !word.starts_with("kduel.")).collect()
}

/// What was read back. Of a set-up command its output says nothing, so only the command counts.
fn readings(knobs: &[KnobReading]) -> BTreeSet<(KnobKind, &str, &str)> {
    knobs
        .iter()
        .map(|knob| {
            let value = if knob.kind == KnobKind::Setup { &knob.wanted } else { &knob.found };
            (knob.kind, knob.name.as_str(), value.as_str())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(build_id: &str, cmdline: &str, knob: Option<(KnobKind, &str)>) -> BootResult {
        let knobs = knob.map(|(kind, found)| KnobReading {
            kind,
            name: "x".into(),
            wanted: "1".into(),
            found: found.into(),
            took: true,
        });
        BootResult {
            facts: Facts {
                build_id: Some(build_id.into()),
                cmdline: cmdline.into(),
                ..Facts::default()
            },
            knobs: knobs.into_iter().collect(),
            ..BootResult::default()
        }
    }

    #[test]
    fn only_build_command_line_and_readings_count() {
        let base = boot("ab", "console=ttyS0 kduel.nonce=1", None);
        assert!(sides_same(&base, &boot("ab", "console=ttyS0  kduel.nonce=2", None)));
        assert!(!sides_same(&base, &boot("cd", "console=ttyS0", None)));
        assert!(!sides_same(&base, &boot("ab", "console=ttyS0 nosmt", None)));
        let knob = |found| boot("ab", "console=ttyS0", Some((KnobKind::Sysctl, found)));
        assert!(!sides_same(&base, &knob("1")));
        assert!(!sides_same(&knob("0"), &knob("1")));
        assert!(sides_same(&knob("1"), &knob("1")));
        let setup = |found| boot("ab", "console=ttyS0", Some((KnobKind::Setup, found)));
        assert!(sides_same(&setup("0: 17:03"), &setup("0: 17:04")));
    }
}
