//! Timed runs of a kernel against itself in real guests: what comes out must be no alarm, and what
//! stays open must say why.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kduel_tests::{BusyLoops, Sandbox, kduel, said};
use serde_json::Value;

const FIVE: &str =
    "fork-exit,syscall:call=getppid,pipe-roundtrip,context-switch,page-fault:kind=anonymous";

fn against_itself(sandbox: &Sandbox, pairs: u32, workloads: &str) -> Value {
    let run = format!(
        "run -a debian:bookworm -b debian:bookworm --aa --accel tcg --pairs {pairs} -w {workloads} --json"
    );
    let output = kduel(sandbox, &run);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    sandbox.assert_nothing_left();
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// Twelve pairs, five series: the method's own test on real guests.
#[test]
fn all_a_kernel_against_itself_raises_no_alarm() {
    let report = against_itself(&Sandbox::new(), 12, FIVE);
    let comparisons = report["comparisons"].as_array().unwrap();
    let primary: Vec<&Value> = comparisons.iter().filter(|c| c["primary"] == true).collect();
    assert_eq!(primary.len(), 5, "{report}");
    for comparison in primary {
        let Value::String(verdict) = &comparison["verdict"] else { panic!("{comparison}") };
        println!("{}: {verdict}, {}", comparison["workload"], comparison["reason"]);
        assert!(["no-change", "inconclusive"].contains(&verdict.as_str()), "{comparison}");
        let why = comparison["reason"].as_str().unwrap();
        assert!(verdict == "no-change" || !why.is_empty(), "{comparison}");
    }
}

/// The host's CPUs are given to others while guests measure: pairs are dropped for what the host did,
/// and no verdict rests on them.
#[test]
fn all_what_a_loaded_host_spoils_is_dropped() {
    let _load = BusyLoops::start();
    let report = against_itself(&Sandbox::new(), 8, "syscall:call=getppid");
    let comparison = &report["comparisons"][0];
    assert!(comparison["dropped"].as_u64() > Some(0), "{report}");
    assert_eq!(comparison["verdict"], "inconclusive", "{report}");
    let spoilt = |side: usize| report["sides"][side]["noise"]["contaminated"].as_u64().unwrap();
    assert!(spoilt(0) + spoilt(1) > 0, "{report}");
    assert!(comparison["all-pairs"].is_object() || comparison["pairs"] == 0, "{report}");
}

/// A loop runs on the pinned CPU during every second pair: exactly those are dropped.
#[test]
fn all_pairs_with_a_loop_on_their_cpu_are_the_ones_dropped() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --aa --accel tcg --pairs 4 --pairing interleave \
               -w syscall:call=getppid --json";
    let mut command = sandbox.kduel();
    command.args(run.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut kduel = command.spawn().expect("start kduel");
    let mut load = None;
    while kduel.try_wait().expect("ask for kduel").is_none() {
        std::thread::sleep(Duration::from_millis(20));
        let Some(folder) = sandbox.runs().pop() else { continue };
        let wanted = records(&folder).len() / 2 % 2 == 1;
        if wanted && load.is_none() {
            load = pinned_cpu(&folder).map(|cpu| BusyLoops::on(&cpu));
        } else if !wanted {
            load = None;
        }
    }
    let output = kduel.wait_with_output().expect("what kduel said");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    sandbox.assert_nothing_left();
    let records = records(&sandbox.runs()[0]);
    let noise: Vec<(u64, f64)> = records
        .iter()
        .filter_map(|record| {
            let noise = &record["outcome"]["completed"]["noise"][0];
            Some((record["block"].as_u64()?, noise["steal"].as_f64()?))
        })
        .collect();
    println!("block and steal of each boot: {noise:?}");
    assert_eq!(noise.len(), 8);
    for (block, steal) in noise {
        assert_eq!(block % 2 == 1, steal > 0.3, "pair {block}: {steal}");
    }
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let comparison = &report["comparisons"][0];
    assert_eq!((&comparison["pairs"], &comparison["dropped"]), (&2.into(), &2.into()), "{report}");
    assert_eq!(comparison["verdict"], "inconclusive", "{report}");
}

/// The boots that ended.
fn records(run: &Path) -> Vec<Value> {
    let journal = std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default();
    let lines = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .map(|mut line| line["record"].take())
        .filter(|record| record["boot"].is_string())
        .collect()
}

/// The only vCPU's.
fn pinned_cpu(run: &Path) -> Option<String> {
    let plan: Value = serde_json::from_slice(&std::fs::read(run.join("plan.json")).ok()?).ok()?;
    Some(plan["experiments"][0]["placements"][0]["vcpus"][0].as_str()?.to_owned())
}
