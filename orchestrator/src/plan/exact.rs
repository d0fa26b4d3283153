use kduel_protocol::{
    EXACT_WARMUP, EXACT_WINDOW_MS, EXACT_WINDOWS, ExactMetric, KERNBENCH, TrialSpec, workload,
};

use super::{Block, ExactTerms, PlannedExperiment};
use crate::boot::qemu_args::ARCHITECTURES;
use crate::config::Terms;
use crate::text::count;

/// The seed of the first layout if none is given: the same in every run, so that a side that was
/// booted once need not be booted again.
pub const FIRST_SEED: u64 = 1;

/// Guest time per instruction where nothing waits: 4 ns, so that boot's busy loops are short.
const SHIFT_WORKING: u8 = 2;

/// Guest time per instruction where something waits: 1 ns, so that work is not made longer beside it.
const SHIFT_WAITING: u8 = 0;

/// What an exact run does instead of a timed one: each side once per CPU model and seed.
pub fn planned(mut from: PlannedExperiment, terms: &Terms, seed: u64) -> PlannedExperiment {
    let seeds = terms.exact.seeds.unwrap_or(1);
    let mut cpus = terms.exact.cpu.clone();
    if cpus.is_empty() {
        cpus.push(ARCHITECTURES[0].exact_cpu.to_owned());
    }
    for trial in &mut from.trials {
        trial.warmup = terms.warmup.unwrap_or_else(|| warmup(trial));
        trial.iterations = terms.iterations.unwrap_or_else(|| windows(trial));
        if trial.min_interval_ns > 0 {
            trial.min_interval_ns = u64::from(EXACT_WINDOW_MS) * 1_000_000;
        }
    }
    let shift = terms.exact.shift.unwrap_or_else(|| shift_for(&from.trials));
    from.exact = Some(ExactTerms { shift, sampled: seeds > 1, chains: terms.exact.chains });
    from.blocks = blocks(&cpus, seeds, seed, from.sides.len());
    from
}

/// A build is long, and the same from one to the next but for what the first leaves in caches.
fn windows(trial: &TrialSpec) -> u32 {
    if trial.workload == KERNBENCH { 1 } else { EXACT_WINDOWS }
}

/// A build reads its files anew in every boot: that is work of the kernel, too, and always the same.
fn warmup(trial: &TrialSpec) -> u32 {
    if trial.workload == KERNBENCH { 0 } else { EXACT_WARMUP }
}

/// CPU model by CPU model, seed by seed; seeds are shared by all sides and models.
fn blocks(cpus: &[String], seeds: u32, first: u64, sides: usize) -> Vec<Block> {
    let each = cpus.iter().flat_map(|cpu| (0..u64::from(seeds)).map(move |seed| (cpu, seed)));
    each.enumerate()
        .map(|(index, (cpu, seed))| Block {
            index,
            order: (0..sides).collect(),
            layout_seed: first.wrapping_add(seed),
            sentinel: None,
            cpu: Some(cpu.clone()),
        })
        .collect()
}

fn shift_for(trials: &[TrialSpec]) -> u8 {
    let waits = |trial: &TrialSpec| exact_metric(trial) == ExactMetric::GuestTime;
    if trials.iter().any(waits) { SHIFT_WAITING } else { SHIFT_WORKING }
}

/// What an exact run says about a trial.
pub fn exact_metric(trial: &TrialSpec) -> ExactMetric {
    workload(&trial.workload).map_or(ExactMetric::Instructions, |info| info.exact)
}

/// `Opteron_G3-v1, 4 ns an instruction (shift 2), one fixed layout (seed 1)`.
pub fn machine_of(experiment: &PlannedExperiment, terms: &ExactTerms) -> String {
    let mut cpus: Vec<&str> = experiment.blocks.iter().filter_map(|b| b.cpu.as_deref()).collect();
    cpus.dedup();
    let seed = experiment.blocks.first().map_or(0, |block| block.layout_seed);
    let layout = match experiment.blocks.len() / cpus.len().max(1) {
        seeds if terms.sampled => format!("layouts sampled with {}", count(seeds, "seed")),
        _ => format!("one fixed layout (seed {seed})"),
    };
    let (ns, shift) = (1_u64 << terms.shift, terms.shift);
    format!("{}, {ns} ns an instruction (shift {shift}), {layout}", cpus.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::{plan, trial};
    use crate::config::ExactTermsGiven;

    fn planned_with(given: ExactTermsGiven, workloads: &[&str]) -> PlannedExperiment {
        let mut from = plan(&["base", "patched"], 8).experiments.remove(0);
        from.trials = workloads.iter().map(|name| trial(0, name)).collect();
        from.trials[0].min_interval_ns = 1;
        planned(from, &Terms { exact: given, ..Terms::default() }, FIRST_SEED)
    }

    #[test]
    fn one_boot_per_side_with_a_fixed_layout_unless_seeds_are_given() {
        let one = planned_with(ExactTermsGiven::default(), &["fork-exit"]);
        assert_eq!(one.exact, Some(ExactTerms { shift: 2, sampled: false, chains: false }));
        let [block] = &one.blocks[..] else { panic!("{:?}", one.blocks) };
        assert_eq!((block.order.as_slice(), block.layout_seed), (&[0, 1][..], 1));
        assert_eq!((one.trials[0].warmup, one.trials[0].iterations), (1, 5));
        assert_eq!(one.trials[0].min_interval_ns, 200_000_000);
    }

    #[test]
    fn seeds_and_models_multiply_and_share_their_seeds() {
        let cpu = vec!["Nehalem-v1".to_owned(), "Icelake-Server-v1".to_owned()];
        let given = ExactTermsGiven { seeds: Some(3), cpu, shift: None, chains: true };
        let many = planned_with(given, &["fork-exit", "cgroup-exec"]);
        assert_eq!(many.exact, Some(ExactTerms { shift: 0, sampled: true, chains: true }));
        let drawn: Vec<(&str, u64)> =
            many.blocks.iter().map(|b| (b.cpu.as_deref().unwrap(), b.layout_seed)).collect();
        assert_eq!(drawn[..3], [("Nehalem-v1", 1), ("Nehalem-v1", 2), ("Nehalem-v1", 3)]);
        assert_eq!(drawn[3], ("Icelake-Server-v1", 1));
    }
}
