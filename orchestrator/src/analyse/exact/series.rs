use kduel_protocol::TrialSpec;

use crate::analyse::self_test;
use crate::analyse::series::latest;
use crate::collect::{BootOutcome, BootRecord, BootResult, WindowCounts};
use crate::plan::{Plan, PlannedExperiment, PlannedSide};

/// What one side's boots on one CPU model gave for one metric of one trial.
#[derive(Debug, Default)]
pub(super) struct SideValues<'a> {
    /// By seed, in the order of the blocks: the windows' values.
    pub seeds: Vec<Vec<f64>>,
    /// All windows with counts.
    pub windows: Vec<&'a WindowCounts>,
    /// The unit of the values.
    pub unit: String,
    /// Why a boot gave nothing.
    pub obstacle: Option<String>,
}

impl<'a> SideValues<'a> {
    /// Of `side`, in the blocks of the CPU model `cpu`.
    pub fn of(
        records: &'a [BootRecord],
        experiment: &PlannedExperiment,
        side: &PlannedSide,
        cpu: &str,
        trial: &TrialSpec,
        metric: &str,
    ) -> Self {
        let boots = latest(records, &experiment.name, &side.name);
        let mut found = Self::default();
        let blocks = experiment.blocks.iter().filter(|block| block.cpu.as_deref() == Some(cpu));
        for block in blocks {
            match boots.get(&block.index).map(|record| &record.outcome) {
                None => found.lacks("was not booted"),
                Some(BootOutcome::Failed(failure)) => found.lacks(failure.class.words()),
                Some(BootOutcome::Completed(result)) => found.take(result, trial, metric),
            }
        }
        found
    }

    fn take(&mut self, result: &'a BootResult, trial: &TrialSpec, metric: &str) {
        if let Some(failed) = result.failed_trials.iter().find(|failed| failed.trial == trial.id) {
            let (words, title) = (failed.failure.class.words(), &failed.failure.title);
            return self.lacks(&format!("{words}: {title}"));
        }
        let own = result.samples.iter().filter(|s| s.trial == trial.id && s.metric == metric);
        let values: Vec<f64> = own.clone().map(|sample| sample.value).collect();
        if let Some(sample) = own.into_iter().next() {
            self.unit.clone_from(&sample.unit);
        } else {
            return self.lacks(&format!("gave no {metric}"));
        }
        self.windows.extend(result.windows.iter().filter(|window| window.trial == trial.id));
        self.seeds.push(values);
    }

    fn lacks(&mut self, why: &str) {
        self.obstacle.get_or_insert_with(|| why.to_owned());
    }

    /// The mean of each seed's windows.
    pub fn means(&self) -> Vec<f64> {
        self.seeds.iter().filter_map(|values| kduel_stats::mean(values).ok()).collect()
    }

    /// Largest and smallest window apart, relative, as a mean over the seeds.
    pub fn spread(&self) -> f64 {
        let spreads: Vec<f64> = self
            .seeds
            .iter()
            .filter_map(|values| {
                let mean = kduel_stats::mean(values).ok()?;
                let high = values.iter().copied().fold(f64::MIN, f64::max);
                let low = values.iter().copied().fold(f64::MAX, f64::min);
                Some(if mean == 0.0 { 0.0 } else { (high - low) / mean })
            })
            .collect();
        kduel_stats::mean(&spreads).unwrap_or(0.0)
    }
}

/// Why a run's numbers may not be called exact, if so.
pub(in crate::analyse) fn not_exact(plan: &Plan, records: &[BootRecord]) -> Option<String> {
    self_test(plan, records).err()
}
