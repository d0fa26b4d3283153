use std::collections::BTreeMap;

use super::*;
use crate::analyse::{Verdict, analyse};
use crate::collect::testing::{completed, failed, plan};
use crate::collect::{BootOutcome, BootRecord, ExactBoot, WindowCounts};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::plan::{Block, ExactTerms, Measure, Plan};

const OPS: u64 = 1000;

fn exact_plan(cpus: &[&str], seeds: usize) -> Plan {
    let mut plan = plan(&["base", "patched"], 1);
    plan.measure = Measure::Instructions;
    let experiment = &mut plan.experiments[0];
    experiment.exact = Some(ExactTerms { shift: 2, sampled: seeds > 1, chains: false });
    experiment.blocks = (0..cpus.len() * seeds)
        .map(|index| Block {
            index,
            order: vec![0, 1],
            layout_seed: (index % seeds) as u64 + 1,
            sentinel: None,
            cpu: Some(cpus[index / seeds].to_owned()),
        })
        .collect();
    plan
}

/// A boot whose windows have these instructions per operation, and so many locked ones.
fn boot(side: &str, block: usize, instructions: &[f64], locked: u64) -> BootRecord {
    let samples: Vec<(&str, f64)> =
        instructions.iter().map(|value| ("instructions", *value)).collect();
    let mut record = completed("fork", side, block, &samples);
    record.exact = Some(Box::new(ExactBoot { identity: side.to_owned(), ..ExactBoot::default() }));
    let BootOutcome::Completed(result) = &mut record.outcome else { panic!() };
    result.windows = instructions
        .iter()
        .zip(0..)
        .map(|(value, iteration)| window(iteration, *value, locked))
        .collect();
    record
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn window(iteration: u32, value: f64, locked: u64) -> WindowCounts {
    let own = (value * OPS as f64) as u64;
    let map = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        pairs.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect()
    };
    WindowCounts {
        trial: 0,
        iteration,
        ops: OPS,
        own: map(&[("instructions", own), ("locked", locked * OPS)]),
        contexts: map(&[("own syscall", own), ("idle", 7 * OPS)]),
        total: own + 7 * OPS,
        events: BTreeMap::new(),
    }
}

/// The same boot once more.
fn again(of: &BootRecord) -> BootRecord {
    let mut record = of.clone();
    if let Some(exact) = &mut record.exact {
        exact.again = true;
    }
    record
}

fn words(plan: &Plan, records: &[BootRecord]) -> Vec<Option<ExactWord>> {
    let comparisons = analyse(plan, records).comparisons;
    comparisons.iter().filter(|c| c.primary).map(|c| c.exact.as_ref().unwrap().word).collect()
}

#[test]
fn one_layout_gives_a_change_a_spread_and_no_interval() {
    let base = boot("base", 0, &[100_000.0, 100_100.0], 700);
    let records = [base.clone(), boot("patched", 0, &[120_000.0; 2], 800), again(&base)];
    let analysis = analyse(&exact_plan(&["A-v1"], 1), &records);
    let [found] = &analysis.comparisons[..] else { panic!("{:?}", analysis.comparisons) };
    assert!((found.change.unwrap() - 0.1994).abs() < 1e-4);
    assert_eq!((found.low, found.high, found.pairs), (None, None, 1));
    assert_eq!((found.verdict, analysis.exit_code(false)), (Verdict::Regression, 1));
    let exact = found.exact.as_ref().unwrap();
    assert_eq!(exact.word, Some(ExactWord::MoreInstructions));
    assert!((exact.spread[0] - 0.001).abs() < 1e-5 && exact.spread[1] == 0.0);
    let total = exact.contexts.last().unwrap();
    let parts: f64 = exact.contexts[..2].iter().map(|pair| pair.value).sum();
    assert_eq!((total.name.as_str(), total.value, parts), ("total", 120_007.0, 120_007.0));
    assert!(exact.mixed.is_empty());
}

#[test]
fn identical_means_every_window_to_the_bit() {
    let plan = exact_plan(&["A-v1"], 1);
    let base = boot("base", 0, &[100.0, 101.0], 1);
    let same = [base.clone(), boot("patched", 0, &[100.0, 101.0], 1), again(&base)];
    assert_eq!(words(&plan, &same), [Some(ExactWord::Identical)]);
    let mean = [base.clone(), boot("patched", 0, &[101.0, 100.0], 1), again(&base)];
    assert_eq!(words(&plan, &mean), [Some(ExactWord::Equivalent)]);
}

#[test]
fn less_work_with_more_costly_instructions_is_mixed() {
    let base = boot("base", 0, &[100_000.0; 2], 14);
    let records = [base.clone(), boot("patched", 0, &[90_000.0; 2], 700), again(&base)];
    let analysis = analyse(&exact_plan(&["A-v1"], 1), &records);
    let exact = analysis.comparisons[0].exact.as_ref().unwrap();
    assert_eq!(exact.word, Some(ExactWord::FewerInstructions));
    assert_eq!(exact.mixed, ["locked"]);
}

#[test]
fn models_that_disagree_are_the_answer() {
    let plan = exact_plan(&["A-v1", "B-v1"], 1);
    let base = boot("base", 0, &[100.0; 2], 1);
    let records = [
        base.clone(),
        boot("patched", 0, &[112.0; 2], 1),
        boot("base", 1, &[100.0; 2], 1),
        boot("patched", 1, &[92.0; 2], 1),
        again(&base),
    ];
    assert_eq!(words(&plan, &records), [Some(ExactWord::DependsOnCpu); 2]);
    let analysis = analyse(&plan, &records);
    assert_eq!(analysis.comparisons[1].series.workload, "fork-exit cpu=B-v1");
    assert_eq!(analysis.worst, Verdict::Inconclusive);
}

#[test]
fn one_bit_in_what_was_done_twice_demotes_the_run() {
    let plan = exact_plan(&["A-v1"], 1);
    let base = boot("base", 0, &[100.0, 101.0], 1);
    let patched = boot("patched", 0, &[120.0; 2], 1);
    let other = again(&boot("base", 0, &[100.0, 101.0 + 1e-13], 1));
    let analysis = analyse(&plan, &[base.clone(), patched.clone(), other]);
    assert_eq!(analysis.comparisons[0].exact.as_ref().unwrap().word, Some(ExactWord::NotExact));
    assert!(analysis.warnings.iter().any(|w| w.starts_with("not exact: fork-exit on base")));
    assert_eq!(analysis.exit_code(false), exit_code::RIG);
    // A count beside the samples is enough.
    let counts = again(&boot("base", 0, &[100.0, 101.0], 2));
    assert_eq!(words(&plan, &[base.clone(), patched.clone(), counts]), [Some(ExactWord::NotExact)]);
    // Without the second time nothing is proven.
    assert_eq!(words(&plan, &[base, patched]), [Some(ExactWord::NotExact)]);
}

#[test]
fn a_boot_that_the_rig_spoiled_counts_no_longer_once_it_is_done_again() {
    let plan = exact_plan(&["A-v1"], 1);
    let base = boot("base", 0, &[100.0, 101.0], 1);
    let killed = BootRecord {
        outcome: BootOutcome::Failed(Box::new(Failure::new(FailureClass::QemuKilled, "x"))),
        ..base.clone()
    };
    let patched = boot("patched", 0, &[100.0, 101.0], 1);
    let mut records = vec![killed.clone(), again(&killed), patched];
    records.extend([base.clone(), again(&base)]);
    assert_eq!(words(&plan, &records), [Some(ExactWord::Identical)]);
    records.truncate(4);
    assert_eq!(words(&plan, &records), [Some(ExactWord::NotExact)]);
}

#[test]
fn what_is_known_needs_no_second_self_test() {
    let cached = |mut record: BootRecord| {
        if let Some(exact) = &mut record.exact {
            exact.cached = Some("run".into());
        }
        record
    };
    let records = [cached(boot("base", 0, &[100.0], 1)), cached(boot("patched", 0, &[100.0], 1))];
    assert_eq!(words(&exact_plan(&["A-v1"], 1), &records), [Some(ExactWord::Identical)]);
}

#[test]
fn seeds_are_what_is_replicated() {
    let plan = exact_plan(&["A-v1"], 8);
    let mut records = Vec::new();
    for block in 0..8 {
        let level = 100_000.0 + 300.0 * (block % 4) as f64;
        records.push(boot("base", block, &[level; 2], 1));
        records.push(boot("patched", block, &[level * 1.18; 2], 1));
    }
    records.push(again(&records[0]));
    let analysis = analyse(&plan, &records);
    let found = &analysis.comparisons[0];
    assert_eq!(found.exact.as_ref().unwrap().word, Some(ExactWord::MoreInstructions));
    assert!(found.low.unwrap() < 0.18 && 0.18 < found.high.unwrap());
    assert!(found.confidence.unwrap() >= 0.95 && found.pairs == 8);
}

#[test]
fn a_kernel_that_dies_has_no_number() {
    let base = boot("base", 0, &[100.0], 1);
    let mut dead = failed("fork", "patched", 0, FailureClass::Panic, "BUG: x");
    dead.exact = Some(Box::new(ExactBoot::default()));
    let analysis = analyse(&exact_plan(&["A-v1"], 1), &[base.clone(), dead, again(&base)]);
    assert_eq!(analysis.comparisons[0].verdict, Verdict::Fails);
    assert_eq!(analysis.exit_code(false), exit_code::KERNEL_FAILED);
}
