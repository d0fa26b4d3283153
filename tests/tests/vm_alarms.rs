//! Timed runs of a kernel against itself in real guests: what comes out must be no alarm, and what
//! stays open must say why.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

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
