//! Sampled profiles of timed runs, as time by call chain.

use std::collections::BTreeMap;

use crate::collect::{BootRecord, BootResult, Stacks};
use crate::plan::{Plan, series_label};

use super::ChainSums;
use super::series::latest_results;

/// One workload's samples.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledWorkload {
    /// The experiment's name.
    pub experiment: String,
    /// The workload, as in [`super::SeriesName`].
    pub workload: String,
    /// What was sampled: `cycles` or `cpu-clock`.
    pub clock: String,
    /// Time of a CPU that a sample stands for, in nanoseconds.
    pub period_ns: f64,
    /// Samples that guests lost.
    pub lost: u64,
    /// Names of the sides, base first, with nanoseconds by chain.
    pub sides: Vec<(String, ChainSums)>,
}

/// All workloads of which there are samples.
pub fn sampled(plan: &Plan, records: &[BootRecord]) -> Vec<SampledWorkload> {
    let mut found = Vec::new();
    for experiment in &plan.experiments {
        for trial in &experiment.trials {
            let mut one = SampledWorkload {
                experiment: experiment.name.clone(),
                workload: series_label(trial),
                clock: String::new(),
                period_ns: 0.0,
                lost: 0,
                sides: Vec::new(),
            };
            for side in &experiment.sides {
                let mut sums = ChainSums::default();
                let results = latest_results(records, &experiment.name, &side.name);
                for result in results.values() {
                    let mut own = result.stacks.iter().filter(|s| s.trial == trial.id).peekable();
                    if own.peek().is_some() {
                        sums.ops += operations(result, trial.id);
                    }
                    own.for_each(|stacks| add(&mut one, &mut sums, stacks));
                }
                one.sides.push((side.name.clone(), sums));
            }
            if !one.clock.is_empty() {
                found.push(one);
            }
        }
    }
    found
}

fn add(one: &mut SampledWorkload, sums: &mut ChainSums, stacks: &Stacks) {
    one.clock.clone_from(&stacks.clock);
    one.period_ns = stacks.period_ns;
    one.lost += stacks.lost;
    for (chain, samples) in &stacks.stacks {
        let names = chain.split(';').map(str::to_owned).collect();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "hours of nanoseconds fit"
        )]
        let ns = (*samples as f64 * stacks.period_ns) as u64;
        *sums.chains.entry(names).or_default() += ns;
    }
}

/// Operations of all kept iterations, by the metric that is the mean of the most.
fn operations(result: &BootResult, trial: u32) -> u64 {
    let mut by_iteration: BTreeMap<u32, u64> = BTreeMap::new();
    for sample in result.samples.iter().filter(|sample| sample.trial == trial) {
        let ops = by_iteration.entry(sample.iteration).or_default();
        *ops = sample.ops.max(*ops);
    }
    by_iteration.values().sum()
}
