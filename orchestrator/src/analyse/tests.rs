use super::*;
use crate::boot::Accel;
use crate::collect::testing::{completed, failed, pairs, plan, sample, trial};
use crate::collect::{BootOutcome, BootRecord, BootResult, TrialFailure};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use kduel_protocol::{After, Better};
use proptest::prelude::*;

const SLOWER: [f64; 8] = [1.15, 1.14, 1.16, 1.17, 1.13, 1.15, 1.155, 1.145];

fn only(analysis: &Analysis) -> &Comparison {
    assert_eq!(analysis.comparisons.len(), 1, "{:?}", analysis.comparisons);
    &analysis.comparisons[0]
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9 * b.abs().max(1.0)
}

/// The result of a completed boot.
fn result_mut(record: &mut BootRecord) -> &mut BootResult {
    match &mut record.outcome {
        BootOutcome::Completed(result) => result,
        BootOutcome::Failed(failure) => panic!("{failure}"),
    }
}

fn boots<'a>(
    records: &'a mut [BootRecord],
    side: &'a str,
) -> impl Iterator<Item = &'a mut BootResult> {
    records.iter_mut().filter(move |record| record.side == side).map(result_mut)
}

#[test]
fn eight_slower_pairs_are_a_regression_with_the_numbers_of_the_method() {
    let records = pairs("patched", &SLOWER);
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    let found = only(&analysis);
    // The same the plain way: at 8 pairs the interval goes from the 4th to the 33rd of 36.
    let mut logs = SLOWER.map(f64::ln).to_vec();
    logs.sort_by(f64::total_cmp);
    let mut walsh: Vec<f64> = (0..8)
        .flat_map(|i| (i..8).map(move |j| (i, j)))
        .map(|(i, j)| (logs[i] + logs[j]) / 2.0)
        .collect();
    walsh.sort_by(f64::total_cmp);
    assert!(close(found.change.unwrap(), ((walsh[17] + walsh[18]) / 2.0).exp_m1()));
    assert!(close(found.low.unwrap(), walsh[3].exp_m1()));
    assert!(close(found.high.unwrap(), walsh[32].exp_m1()));
    assert!(close(found.confidence.unwrap(), 1.0 - 10.0 / 256.0));
    assert_eq!((found.verdict, found.pairs, found.dropped), (Verdict::Regression, 8, 0));
    assert_eq!((analysis.worst, analysis.exit_code(false)), (Verdict::Regression, 1));
}

#[test]
fn quick_uses_students_interval_and_says_so() {
    let mut quick = plan(&["base", "patched"], 6);
    quick.quick = true;
    let analysis = analyse(&quick, &pairs("patched", &SLOWER[..6]));
    let found = only(&analysis);
    let logs = SLOWER[..6].iter().map(|f| f.ln()).collect::<Vec<_>>();
    let student = kduel_stats::student_interval(&logs, 0.05).unwrap();
    assert!(close(found.low.unwrap(), student.low.exp_m1()));
    assert_eq!(found.confidence, Some(0.95));
    assert!(analysis.basis.contains("Student"));
}

#[test]
fn rates_are_better_the_other_way_round() {
    let mut plan = plan(&["base", "patched"], 8);
    plan.experiments[0].trials[0].workload = "of-tomorrow".into();
    let mut records = pairs("patched", &SLOWER);
    for sample in records.iter_mut().flat_map(|record| &mut result_mut(record).samples) {
        (sample.better, sample.unit) = (Better::Higher, "1/s".into());
    }
    let analysis = analyse(&plan, &records);
    assert_eq!(only(&analysis).verdict, Verdict::Improvement);
    assert!(only(&analysis).change.unwrap() > 0.1);
}

#[test]
fn the_last_attempt_counts_and_a_lost_boot_drops_its_pair() {
    let mut records = pairs("patched", &SLOWER);
    // Block 0: the candidate's first attempt was cut; the repeated one is as good as any.
    let mut cut = failed("fork", "patched", 0, FailureClass::SshCut, "eof");
    records[1].attempt = 1;
    records.push(cut.clone());
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    assert_eq!((only(&analysis).pairs, only(&analysis).dropped), (8, 0));
    // Block 1: both attempts failed.
    cut.block = 1;
    cut.attempt = 1;
    records.push(cut);
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    assert_eq!((only(&analysis).pairs, only(&analysis).dropped), (7, 1));
    assert_eq!(analysis.sides[1].failures[0].boots.len(), 2);
}

#[test]
fn a_boot_with_too_few_iterations_is_invalid_not_short() {
    let mut plan = plan(&["base", "patched"], 8);
    plan.experiments[0].trials[0].iterations = 4;
    // Three of four are fewer than 80 %.
    let analysis = analyse(&plan, &pairs("patched", &SLOWER));
    let found = only(&analysis);
    assert_eq!((found.verdict, found.pairs, found.change), (Verdict::Invalid, 0, None));
    assert!(found.reason.contains("only 3 of 4 iterations (8 boots)"), "{}", found.reason);
    assert_eq!(analysis.exit_code(false), exit_code::RIG);
}

#[test]
fn a_metric_that_one_side_lacks_is_an_error_never_a_verdict() {
    let mut records = pairs("patched", &SLOWER);
    boots(&mut records, "patched").for_each(|boot| boot.samples.clear());
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    let found = only(&analysis);
    assert_eq!((found.verdict, found.value, found.change), (Verdict::Invalid, None, None));
    assert!(found.base.is_some());
    assert_eq!(found.reason, "patched gave no time in 8 boots");
}

#[test]
fn values_without_a_ratio_make_the_series_invalid() {
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let mut records = pairs("patched", &SLOWER);
        result_mut(&mut records[3]).samples[1].value = bad;
        let analysis = analyse(&plan(&["base", "patched"], 8), &records);
        assert_eq!(only(&analysis).verdict, Verdict::Invalid, "{bad}");
        assert_eq!(only(&analysis).change, None);
        assert!(
            only(&analysis).reason.starts_with("patched: a value"),
            "{}",
            only(&analysis).reason
        );
    }
}

#[test]
fn another_unit_makes_the_series_invalid() {
    let mut records = pairs("patched", &SLOWER);
    boots(&mut records, "patched").for_each(|boot| {
        boot.samples.iter_mut().for_each(|sample| sample.unit = "us".into());
    });
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    assert_eq!(only(&analysis).verdict, Verdict::Invalid);
}

#[test]
fn a_failed_trial_invalidates_only_its_own_series() {
    let mut plan = plan(&["base", "patched"], 8);
    plan.experiments[0].trials.push(trial(1, "fork-exec"));
    let mut records = pairs("patched", &SLOWER);
    for record in &mut records {
        let failed = record.side == "patched";
        let result = result_mut(record);
        if failed {
            let failure = Failure::new(FailureClass::WorkloadFailed, "exit status 3");
            result.failed_trials.push(TrialFailure { trial: 1, failure });
        } else {
            result.samples.extend(
                (0..3).map(|i| kduel_protocol::Sample { trial: 1, ..sample("time", i, 9.0) }),
            );
        }
    }
    let analysis = analyse(&plan, &records);
    let verdicts: Vec<Verdict> = analysis.comparisons.iter().map(|c| c.verdict).collect();
    assert_eq!(verdicts, [Verdict::Regression, Verdict::Invalid]);
    assert!(analysis.comparisons[1].reason.contains("exit status 3"));
    assert_eq!(analysis.sides[1].failures[0].workload.as_deref(), Some("fork-exec"));
    assert_eq!(analysis.worst, Verdict::Regression);
}

fn with_failures(of: usize, base_fails: usize, side_fails: usize) -> Analysis {
    let mut records = pairs("patched", &vec![1.0; of]);
    for record in &mut records {
        let fails = if record.side == "base" { base_fails } else { side_fails };
        if record.block < fails {
            let title = format!("Oops in process {}", record.block);
            *record = failed("fork", &record.side, record.block, FailureClass::Panic, &title);
        }
    }
    analyse(&plan(&["base", "patched"], of), &records)
}

#[test]
fn a_candidate_fails_when_chance_is_no_explanation() {
    for (of, base, side, fails) in [
        (8, 0, 4, true),
        (8, 0, 3, false),
        (8, 1, 8, false),
        (20, 0, 4, true),
        (2, 0, 2, true),
        (1, 0, 1, true),
        (3, 0, 2, false),
        (3, 3, 3, false),
    ] {
        let analysis = with_failures(of, base, side);
        let verdict = only(&analysis).verdict;
        assert_eq!(verdict == Verdict::Fails, fails, "{side} of {of}, base {base}: {verdict:?}");
        if fails {
            assert_eq!(analysis.exit_code(false), exit_code::KERNEL_FAILED);
        } else {
            assert!(analysis.warnings.iter().any(|warning| warning.contains("kernel panicked in")));
        }
    }
}

#[test]
fn a_boot_that_the_user_stopped_did_not_happen() {
    let mut records = pairs("patched", &SLOWER);
    let stopped = failed("fork", "patched", 7, FailureClass::Interrupted, "Ctrl-C");
    records[15] = stopped.clone();
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    // Whoever stops a run must not get a look out of it.
    assert_eq!((only(&analysis).pairs, only(&analysis).verdict), (7, Verdict::Inconclusive));
    assert!(only(&analysis).change.is_some() && only(&analysis).low.is_none());
    let early = analyse(&plan(&["base", "patched"], 7), &records);
    assert_eq!((only(&early).pairs, only(&early).verdict), (7, Verdict::Regression));
    assert_eq!(only(&analysis).dropped, 0);
    assert!(analysis.sides[1].failures.is_empty());
    assert_eq!(analysis.warnings, ["7 of 8 planned pairs of boots are complete"]);
    records[14] = BootRecord { side: "base".into(), ..stopped };
    assert_eq!(only(&analyse(&plan(&["base", "patched"], 8), &records)).dropped, 0);
}

#[test]
fn failures_of_the_rig_never_count_against_a_kernel() {
    let mut records = pairs("patched", &[1.0; 8]);
    for record in records.iter_mut().filter(|record| record.side == "patched") {
        *record = failed("fork", "patched", record.block, FailureClass::QemuKilled, "signal 9");
    }
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    assert_eq!(only(&analysis).verdict, Verdict::Invalid);
    assert_eq!(analysis.exit_code(false), exit_code::RIG);
}

#[test]
fn numbers_of_two_accelerators_are_never_compared() {
    let mut records = pairs("patched", &SLOWER);
    records[5].accel = Accel::Kvm;
    let analysis = analyse(&plan(&["base", "patched"], 8), &records);
    assert_eq!(only(&analysis).verdict, Verdict::Invalid);
    assert_eq!(analysis.warnings.len(), 1);
}

#[test]
fn every_candidate_is_compared_with_the_base() {
    let mut records = pairs("patched", &SLOWER);
    records.extend(SLOWER.iter().enumerate().map(|(block, _)| {
        let level = 150_000.0 * (1.0 + 0.01 * (block % 3) as f64);
        completed("fork", "dynmods", block, &[("time", level), ("time", level), ("time", level)])
    }));
    let plan = plan(&["base", "patched", "dynmods"], 8);
    let analysis = analyse(&plan, &records);
    let found: Vec<_> = analysis.comparisons.iter().map(|c| (c.side.as_str(), c.verdict)).collect();
    assert_eq!(found, [("patched", Verdict::Regression), ("dynmods", Verdict::NoChange)]);
    let counted = count_pairs(&plan, &records, &analysis.comparisons);
    assert_eq!(counted, PairCount { done: 16, planned: 16 });
}

#[test]
fn a_run_is_over_at_the_look_that_decides_it() {
    let plan = plan(&["base", "patched"], 30);
    let experiment = &plan.experiments[0];
    let decided =
        |factors: &[f64]| is_decided(&plan, experiment, &pairs("patched", factors), factors.len());
    assert!(decided(&SLOWER));
    assert!(!decided(&SLOWER[..7]));
    // Eight is a look, nine is none.
    assert!(!decided(&[&SLOWER[..], &[1.15]].concat()));
    let open = [1.3, 0.8, 1.2, 0.9, 1.1, 0.7, 1.25, 1.0];
    assert!(!decided(&open));
    assert!(decided(&[&open[..], &[1.5; 22]].concat()));
    let analysis = analyse(&plan, &pairs("patched", &SLOWER));
    assert_eq!((only(&analysis).verdict, only(&analysis).pairs), (Verdict::Regression, 8));
    assert!(close(only(&analysis).confidence.unwrap(), 1.0 - 2.0 / 256.0));
    assert!(analysis.warnings.is_empty(), "{:?}", analysis.warnings);
    assert!(analysis.basis.contains("looks at 8, 12, 20 and 30 pairs"), "{}", analysis.basis);
    let analysis = analyse(&plan, &pairs("patched", &SLOWER[..7]));
    assert_eq!(analysis.warnings, ["7 of 30 planned pairs of boots are complete"]);
}

#[test]
fn several_series_have_to_show_more_than_one() {
    // At eight pairs one series of twenty cannot be rare enough.
    let mut plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &SLOWER);
    for id in 1..20 {
        plan.experiments[0].trials.push(trial(id, "fork-exec"));
        for record in &mut records {
            let high = record.side == "patched" && record.block.is_multiple_of(2);
            let low = record.side == "patched" && !high;
            let value = if high {
                1.3
            } else if low {
                1.0 / 1.3
            } else {
                1.0
            };
            let samples =
                (0..3).map(|i| kduel_protocol::Sample { trial: id, ..sample("time", i, value) });
            result_mut(record).samples.extend(samples);
        }
    }
    let analysis = analyse(&plan, &records);
    let first = &analysis.comparisons[0];
    assert_eq!(first.verdict, Verdict::Inconclusive);
    assert!(first.reason.contains("as one of"), "{}", first.reason);
}

#[test]
fn a_run_without_boots_says_nothing() {
    let analysis = analyse(&plan(&["base", "patched"], 8), &[]);
    assert_eq!((only(&analysis).verdict, analysis.worst), (Verdict::Invalid, Verdict::Invalid));
    assert_eq!(only(&analysis).reason, "no pair was finished");
    assert_eq!(only(&analysis).dropped, 0);
}

proptest! {
    #[test]
    fn order_of_records_and_scale_of_units_change_nothing(
        factors in prop::collection::vec(0.8..1.25_f64, 6..12),
        scale in 0.001..1000.0_f64,
        seed: u64,
    ) {
        let plan = plan(&["base", "patched"], factors.len());
        let records = pairs("patched", &factors);
        let before = analyse(&plan, &records);
        let mut shuffled = records.clone();
        shuffled.sort_by_key(|record| (record.block as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let again = analyse(&plan, &shuffled);
        prop_assert_eq!(only(&before), only(&again));
        for record in &mut shuffled {
            result_mut(record).samples.iter_mut().for_each(|sample| sample.value *= scale);
        }
        let after = analyse(&plan, &shuffled);
        prop_assert!(close(only(&before).change.unwrap(), only(&after).change.unwrap()));
        prop_assert!(close(only(&before).low.unwrap(), only(&after).low.unwrap()));
        prop_assert!(close(only(&before).base.unwrap() * scale, only(&after).base.unwrap()));
    }

    #[test]
    fn swapping_sides_inverts_the_ratio(factors in prop::collection::vec(0.8..1.25_f64, 6..12)) {
        let records = pairs("patched", &factors);
        let there = analyse(&plan(&["base", "patched"], factors.len()), &records);
        let back = analyse(&plan(&["patched", "base"], factors.len()), &records);
        let (there, back) = (only(&there), only(&back));
        let ratio = |change: Option<f64>| 1.0 + change.unwrap();
        prop_assert!(close(ratio(there.change) * ratio(back.change), 1.0));
        prop_assert!(close(ratio(there.low) * ratio(back.high), 1.0));
    }
}

/// A boot of `side` again, in the block of `of`.
fn sentinel(of: &BootRecord, factor: f64) -> BootRecord {
    let mut sentinel = of.clone();
    (sentinel.sentinel, sentinel.slot) = (true, of.slot + 1);
    sentinel.boot = sentinel.boot.sentinel();
    result_mut(&mut sentinel).samples.iter_mut().for_each(|sample| sample.value *= factor);
    sentinel
}

#[test]
fn a_side_that_differs_from_itself_decides_nothing() {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &SLOWER);
    records.push(sentinel(&records[12], 1.05));
    assert_eq!(only(&analyse(&plan, &records)).verdict, Verdict::Regression);
    for (boot, first, said) in [(10, false, "by +20.0 %"), (11, true, "by -16.7 %")] {
        let mut records = records.clone();
        let mut loud = sentinel(&records[boot], 1.2);
        // From the boot that came first to the other.
        loud.slot = if first { 0 } else { loud.slot };
        records.push(loud);
        let analysis = analyse(&plan, &records);
        let found = only(&analysis);
        assert_eq!((found.verdict, found.pairs), (Verdict::Inconclusive, 8));
        assert!(found.reason.contains(said), "{}", found.reason);
    }
}

#[test]
fn a_duet_compares_two_sentinels_with_each_other() {
    let plan = plan(&["base", "patched"], 8);
    let decided = |factors: [f64; 2]| {
        let mut records = pairs("patched", &SLOWER);
        for (slot, factor) in factors.into_iter().enumerate() {
            let mut one = sentinel(&records[10], factor);
            one.slot = slot;
            records.push(one);
        }
        only(&analyse(&plan, &records)).verdict
    };
    assert_eq!(
        decided([1.2, 1.2]),
        Verdict::Regression,
        "both far from the boot beside the patched"
    );
    assert_eq!(decided([1.0, 1.2]), Verdict::Inconclusive);
}

#[test]
fn sides_that_differ_in_what_nobody_declared_decide_nothing() {
    let undeclared = |change: &dyn Fn(&mut BootResult), side: &str, which: usize| {
        let mut records = pairs("patched", &SLOWER);
        boots(&mut records, side).skip(which).for_each(change);
        let analysis = analyse(&plan(&["base", "patched"], 8), &records);
        (only(&analysis).verdict, analysis.warnings.join("; "))
    };
    let early = |result: &mut BootResult| result.facts.clocksource = "tsc-early".into();
    assert_eq!(undeclared(&early, "base", 8), (Verdict::Regression, String::new()));
    let clock = |result: &mut BootResult| result.facts.clocksource = "hpet".into();
    let (verdict, said) = undeclared(&clock, "patched", 0);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(said.contains("base and patched use different clock sources"), "{said}");
    let (verdict, said) = undeclared(&clock, "base", 5);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(said.contains("base: not every boot used the same clock source"), "{said}");
    let changed = |to: &'static str| {
        move |result: &mut BootResult| {
            result.after = Some(After { clocksource: to.into(), steal_ms: None });
        }
    };
    assert_eq!(undeclared(&changed("tsc"), "patched", 0), (Verdict::Regression, String::new()));
    let (verdict, said) = undeclared(&changed("hpet"), "patched", 7);
    assert_eq!(verdict, Verdict::Inconclusive);
    let words = "patched: the guest's clock source changed during a boot: tsc -> hpet";
    assert!(said.contains(words), "{said}");
    let processor = |result: &mut BootResult| result.facts.cpu_model = "another".into();
    assert!(undeclared(&processor, "patched", 0).1.contains("different processors"));
}

#[test]
fn margins_of_the_user_and_of_a_calibration_win_over_the_usual_one() {
    let records = pairs("patched", &SLOWER);
    let margin = |change: &dyn Fn(&mut crate::plan::PlannedExperiment)| {
        let mut plan = plan(&["base", "patched"], 8);
        change(&mut plan.experiments[0]);
        let analysis = analyse(&plan, &records);
        (only(&analysis).margin, only(&analysis).verdict)
    };
    assert_eq!(margin(&|_| ()), (0.1, Verdict::Regression));
    let calibrated = |margin| crate::plan::CalibratedSeries {
        workload: "fork-exit".into(),
        metric: "time".into(),
        margin,
        iteration_variance: 1e-4,
        boot_variance: 1e-4,
        run: "r".into(),
    };
    let found = margin(&|experiment| experiment.calibrated.push(calibrated(0.25)));
    assert_eq!(found, (0.25, Verdict::NoChange));
    let mut wide = plan(&["base", "patched"], 8);
    wide.experiments[0].calibrated.push(calibrated(0.25));
    let said = analyse(&wide, &records).warnings.join("; ");
    assert!(said.contains("margin 25 % from the calibration r, not 10 %"), "{said}");
    let both = margin(&|experiment| {
        experiment.calibrated.push(calibrated(0.25));
        experiment.margin.relative = Some(0.05);
    });
    assert_eq!(both, (0.05, Verdict::Regression));
    let base = only(&analyse(&plan(&["base", "patched"], 8), &records)).base.unwrap();
    let (absolute, verdict) = margin(&|experiment| {
        experiment.margin.absolute.insert("ns".into(), base / 2.0);
    });
    assert!(close(absolute, 0.5) && verdict == Verdict::NoChange, "{absolute}");
}
