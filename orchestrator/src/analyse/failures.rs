use serde::{Deserialize, Serialize};

use crate::collect::{BootOutcome, BootRecord};
use crate::fault::{Failure, Fault};
use crate::id::BootId;
use crate::plan::PlannedExperiment;

use super::sides::result;
use crate::plan::series_label;

/// Failures of one side that are alike: same class, same workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct FailureGroup {
    /// Whose fault.
    pub fault: Fault,
    /// The trial that failed in boots that otherwise completed; absent if the boot failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub workload: Option<String>,
    /// In which boots, in order.
    pub boots: Vec<BootId>,
    /// The first of them, raw.
    pub first: Failure,
}

/// Groups the failed boots and failed trials of one side, in order of their first appearance.
pub(super) fn group_failures(
    experiment: &PlannedExperiment,
    own: &[&BootRecord],
) -> Vec<FailureGroup> {
    let mut groups: Vec<FailureGroup> = Vec::new();
    let mut add = |boot: &BootId, workload: Option<String>, failure: &Failure| {
        let alike = |group: &&mut FailureGroup| {
            group.first.class == failure.class && group.workload == workload
        };
        match groups.iter_mut().find(alike) {
            Some(group) => group.boots.push(boot.clone()),
            None => groups.push(FailureGroup {
                fault: failure.fault(),
                workload,
                boots: vec![boot.clone()],
                first: failure.clone(),
            }),
        }
    };
    for record in own {
        match &record.outcome {
            BootOutcome::Failed(failure) => add(&record.boot, None, failure),
            BootOutcome::Completed(result) => {
                for trial in &result.failed_trials {
                    let spec = experiment.trials.iter().find(|spec| spec.id == trial.trial);
                    let label = spec.map_or_else(|| format!("trial {}", trial.trial), series_label);
                    add(&record.boot, Some(label), &trial.failure);
                }
            }
        }
    }
    groups
}

/// The boots of one side that say something about its kernel: completed, or failed by the kernel's
/// own fault. A repeated boot counts again: that a crash was repeated does not undo it.
pub(super) struct KernelBoots<'a>(Vec<Option<&'a Failure>>);

impl<'a> KernelBoots<'a> {
    /// Of `side` in `experiment`, in schedule order.
    pub fn of(experiment: &str, side: &str, records: &'a [BootRecord]) -> Self {
        let mut own: Vec<&BootRecord> = records
            .iter()
            .filter(|record| record.experiment == experiment && record.side == side)
            .collect();
        own.sort_by_key(|record| (record.block, record.attempt));
        let outcome = |record: &&'a BootRecord| match &record.outcome {
            BootOutcome::Failed(failure) if failure.fault() == Fault::KernelUnderTest => {
                Some(Some(&**failure))
            }
            _ => result(record).map(|_| None),
        };
        Self(own.iter().filter_map(outcome).collect())
    }

    /// The failures.
    pub fn failures(&self) -> Vec<&'a Failure> {
        self.0.iter().copied().flatten().collect()
    }

    /// How many boots.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn first(&self, n: usize) -> (u64, u64) {
        let first = &self.0[..n.min(self.0.len())];
        (first.iter().flatten().count() as u64, first.len() as u64)
    }
}

/// Boots that Fisher's test looks at, and the level it decides at.
const LOOK: usize = 8;
const LEVEL: f64 = 0.05;

/// Why `side` fails, if it does: its kernel fails and the base's never does, either in at least four
/// of its first eight boots, or, where there are fewer, in every single one and in the same way.
pub(super) fn fails(side: &KernelBoots<'_>, base: &KernelBoots<'_>) -> Option<String> {
    let failures = side.failures();
    let first = failures.first()?;
    if base.count() == 0 || !base.failures().is_empty() {
        return None;
    }
    let (failed, of) = side.first(LOOK);
    let (_, base_of) = base.first(LOOK);
    let p = kduel_stats::fisher_more_failures(failed, of, 0, base_of).ok()?;
    let alike = failures.iter().all(|failure| failure.class == first.class);
    let every = failures.len() == side.count();
    let what = if alike { first.class.words() } else { "kernel failed" };
    let what = format!("{what} ({})", first.title);
    let counts = format!(
        "{what} in {} of {} boots, base in none of {}",
        failures.len(),
        side.count(),
        base.count()
    );
    match (failed >= 4 && p <= LEVEL, every && alike) {
        (true, _) => Some(format!("{counts} (first {of}: {failed}, Fisher p = {p:.3})")),
        (false, true) => Some(format!("{counts}, each time in the same way")),
        (false, false) => None,
    }
}
