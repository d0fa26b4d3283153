use super::*;
use crate::boot::Accel;
use crate::collect::testing::{completed, failed, pairs, plan};
use crate::collect::{ExactBoot, KernelIdentity, RunInfo, StoredRun};
use crate::fault::FailureClass;
use crate::id::RunId;
use crate::plan::ExactTerms;

fn run(id: &str, plan: Plan, records: Vec<BootRecord>) -> Asked {
    let mut info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
    info.id = RunId(id.into());
    for (name, release) in [("debian:bookworm", "6.1"), ("debian:trixie", "6.12")] {
        let kernel = KernelIdentity {
            release: release.into(),
            origin: name.into(),
            image_sha256: "ab".into(),
            initramfs_sha256: "cd".into(),
            source: None,
        };
        info.kernels.insert(name.into(), kernel);
    }
    let run = StoredRun { path: id.into(), info, plan, records, cut: None, unpacked: None };
    Asked { run, side: None }
}

/// Eight pairs, the candidate so much slower; all boots of the run by `level` slower still.
fn timed(id: &str, factor: f64, level: f64) -> Asked {
    let factors = [0.01, -0.02, 0.005, -0.004, 0.012, -0.011, 0.003, 0.0].map(|n| factor + n);
    let mut records = pairs("patched", &factors);
    for record in &mut records {
        if let crate::collect::BootOutcome::Completed(result) = &mut record.outcome {
            result.samples.iter_mut().for_each(|sample| sample.value *= level);
        }
    }
    run(id, plan(&["base", "patched"], 8), records)
}

fn across(asked: &mut [Asked]) -> (Merged, Analysis) {
    let (found, _) = matches(asked).unwrap();
    assert_eq!(differences(asked, &found), []);
    let merged = merge(asked, &found, &[]);
    let analysis = analyse_across(&merged);
    (merged, analysis)
}

#[test]
fn the_second_version_of_a_patch_is_better_than_the_first() {
    let (merged, analysis) = across(&mut [timed("one", 1.5, 1.0), timed("two", 1.2, 1.0)]);
    let [found] = &analysis.comparisons[..] else { panic!("{:?}", analysis.comparisons) };
    assert_eq!((found.verdict, analysis.worst), (Verdict::Improvement, Verdict::Improvement));
    assert!((found.change.unwrap() + 0.2).abs() < 0.01 && found.low.unwrap() < -0.2);
    assert_eq!((found.side.as_str(), found.pairs), ("2:patched", 8));
    let sides: Vec<&str> = analysis.sides.iter().map(|side| side.name.as_str()).collect();
    assert_eq!(sides, ["1:patched", "2:patched"]);
    assert!(analysis.warnings.iter().any(|w| w.starts_with("control: 2:base")));
    assert_eq!(merged.info.compared, ["one", "two"]);
    let (run, boot) = merged.origin(&merged.records[8]).unwrap();
    assert_eq!((run, boot.0.as_str()), (1, "fork-b00-patched"));
}

#[test]
fn where_the_base_moved_too_nothing_is_decided() {
    let (_, analysis) = across(&mut [timed("one", 1.2, 1.0), timed("two", 1.2, 1.5)]);
    let found = &analysis.comparisons[0];
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.reason.contains("itself moved by +50.0 %"), "{}", found.reason);
    assert!((found.change.unwrap() - 0.5).abs() < 0.01);
    // Bases that are different kernels are no control.
    let mut other = timed("two", 1.2, 1.5);
    for record in &mut other.run.records {
        if let crate::collect::BootOutcome::Completed(result) = &mut record.outcome
            && record.side == "base"
        {
            result.facts.build_id = Some("other".into());
        }
    }
    let (_, analysis) = across(&mut [timed("one", 1.2, 1.0), other]);
    assert_eq!(analysis.comparisons[0].verdict, Verdict::Regression);
}

#[test]
fn sides_are_named_and_runs_may_be_more_than_two() {
    let named = |id, side: &str| Asked { side: Some(side.into()), ..timed(id, 1.5, 1.0) };
    let (_, analysis) =
        across(&mut [named("one", "base"), named("one", "patched"), timed("two", 1.0, 1.0)]);
    let found: Vec<_> = analysis.comparisons.iter().map(|c| (&c.side[..], c.verdict)).collect();
    assert_eq!(
        found,
        [("2:patched", Verdict::Regression), ("3:base", Verdict::NoChange)],
        "like the first run's side"
    );
    let failure = matches(&[named("one", "patch"), timed("two", 1.0, 1.0)]).unwrap_err();
    assert_eq!(failure.class, FailureClass::Usage);
    assert!(failure.to_string().contains("did you mean `patched`?"), "{failure}");
}

#[test]
fn every_difference_is_named_at_once() {
    let mut other = timed("two", 1.0, 1.0);
    let StoredRun { info, plan, records, .. } = &mut other.run;
    info.host.cpu_model = "Other".into();
    info.qemu = Some(crate::collect::QemuInfo { path: "q".into(), version: "9".into() });
    info.kduel = "9".into();
    records.iter_mut().for_each(|record| record.accel = Accel::Kvm);
    for record in records {
        if let crate::collect::BootOutcome::Completed(result) = &mut record.outcome {
            result.facts.cpu_model = "Guest".into();
        }
    }
    plan.measure = Measure::Instructions;
    let experiment = &mut plan.experiments[0];
    experiment.topology.memory_mib = 1024;
    experiment.trials[0].iterations = 9;
    experiment.trials[0].params.insert("mappings".into(), 3.into());
    experiment.settle_s = 7;
    let asked = [timed("one", 1.0, 1.0), other];
    let (found, notes) = matches(&asked).unwrap();
    assert_eq!(notes, <[String; 0]>::default(), "matched by workload");
    let words: Vec<&str> =
        differences(&asked, &found).iter().map(|one| one.obstacle.word()).collect();
    let parameters = "parameters";
    assert_eq!(
        words,
        [
            "measure",
            "host",
            "accelerator",
            "qemu",
            "cpu",
            "topology",
            parameters,
            parameters,
            parameters,
            "kduel"
        ]
    );
    let mut asked = asked;
    let merged = merge(&mut asked, &found, &[Obstacle::Host]);
    let analysis = analyse_across(&merged);
    assert!(analysis.comparisons[0].reason.ends_with("; compared despite another host"));
}

fn exact(id: &str, seeds: &[u64], value: impl Fn(&str, u64) -> f64) -> Asked {
    let mut plan = plan(&["base", "patched"], seeds.len());
    plan.measure = Measure::Instructions;
    plan.experiments[0].exact =
        Some(ExactTerms { shift: 2, sampled: seeds.len() > 1, chains: false });
    let mut records = Vec::new();
    for (block, seed) in plan.experiments[0].blocks.iter_mut().zip(seeds) {
        block.cpu = Some("Westmere-v1".into());
        block.layout_seed = *seed;
        for side in ["base", "patched"] {
            let mut record =
                completed("fork", side, block.index, &[("instructions", value(side, *seed))]);
            let exact = ExactBoot { cpu: "Westmere-v1".into(), ..ExactBoot::default() };
            record.exact = Some(Box::new(exact.clone()));
            if records.is_empty() {
                let mut again = record.clone();
                again.exact = Some(Box::new(ExactBoot { again: true, ..exact }));
                records.push(again);
            }
            records.push(record);
        }
    }
    run(id, plan, records)
}

#[test]
fn exact_runs_are_compared_seed_by_seed() {
    let same = |_: &str, seed: u64| 1000.0 + seed as f64;
    let (_, analysis) = across(&mut [exact("one", &[1], same), exact("two", &[1], same)]);
    let word = |analysis: &Analysis| analysis.comparisons[0].exact.as_ref().unwrap().word;
    assert_eq!(word(&analysis), Some(crate::analyse::ExactWord::Identical));
    let more = |side: &str, seed: u64| same(side, seed) * if side == "base" { 1.0 } else { 1.1 };
    let (_, analysis) = across(&mut [exact("one", &[1], same), exact("two", &[1], more)]);
    assert_eq!(word(&analysis), Some(crate::analyse::ExactWord::MoreInstructions));
    assert_eq!(analysis.worst, Verdict::Regression);
    // Seeds in another order are the same seeds; one that only one run has is left out.
    let seeds = [1, 2, 3, 4, 5, 6];
    let (merged, analysis) =
        across(&mut [exact("one", &seeds, same), exact("two", &[6, 5, 4, 3, 2, 1, 9], same)]);
    assert_eq!(word(&analysis), Some(crate::analyse::ExactWord::Identical));
    assert!(merged.notes.iter().any(|note| note.starts_with("1 block of run two")));
    // The same base that counts differently is no exact base.
    let odd = |_: &str, seed: u64| 1300.0 + seed as f64;
    let (_, analysis) = across(&mut [exact("one", &[1], same), exact("two", &[1], odd)]);
    assert_eq!(analysis.comparisons[0].verdict, Verdict::Inconclusive);
}

#[test]
fn a_run_that_did_not_repeat_is_not_exact_here_either() {
    let same = |_: &str, _: u64| 1000.0;
    let mut odd = exact("two", &[1], same);
    let again = odd.run.records.iter_mut().find(|record| record.is_again()).unwrap();
    if let crate::collect::BootOutcome::Completed(result) = &mut again.outcome {
        result.samples[0].value += 1.0;
    }
    let (_, analysis) = across(&mut [exact("one", &[1], same), odd]);
    let found = &analysis.comparisons[0];
    assert_eq!(found.exact.as_ref().unwrap().word, Some(crate::analyse::ExactWord::NotExact));
    assert!(found.reason.contains("on base of run two, done twice, differs"), "{}", found.reason);
}

#[test]
fn other_seeds_are_other_parameters() {
    let value = |_: &str, _: u64| 1.0;
    let asked = [exact("one", &[1], value), exact("two", &[2], value)];
    let (found, _) = matches(&asked).unwrap();
    let words = differences(&asked, &found);
    assert_eq!(words[0].to_string(), "layout seeds (fork): {1}, then {2}");
}

#[test]
fn a_side_without_boots_or_with_odd_values_is_invalid_not_a_panic() {
    let mut broken = timed("two", 1.0, 1.0);
    for record in broken.run.records.iter_mut().filter(|record| record.side == "patched") {
        *record = failed("fork", "patched", record.block, FailureClass::QemuKilled, "x");
    }
    let (_, analysis) = across(&mut [timed("one", 1.0, 1.0), broken]);
    let found = &analysis.comparisons[0];
    assert_eq!((found.verdict, found.change), (Verdict::Invalid, None));
    assert!(found.reason.starts_with("2:patched: no valid boot; "), "{}", found.reason);
    for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let (_, analysis) = across(&mut [timed("one", 1.0, 1.0), timed("two", 1.0, odd)]);
        assert_eq!(analysis.comparisons[0].verdict, Verdict::Invalid, "{odd}");
    }
    let empty = run("two", plan(&["base", "patched"], 8), Vec::new());
    let (_, analysis) = across(&mut [timed("one", 1.0, 1.0), empty]);
    assert!(analysis.comparisons[0].reason.contains("no boot was finished"));
}
