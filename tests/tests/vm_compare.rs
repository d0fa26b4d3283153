//! Two real kernels compared, with benchmarks of kduel's own and of a stranger's.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start programs as a user does, and fail by panicking"
)]

use std::fs;
use std::process::Command;

use kduel_tests::Sandbox;
use serde_json::Value;

const BENCH: &str = r#"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    long n = argc > 2 ? atol(argv[2]) : 1000;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < n; i++) getppid();
    clock_gettime(CLOCK_MONOTONIC, &b);
    double ns = (b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec);
    printf("rate=%.1f calls/s, root %.3f\n", n / ns * 1e9, sqrt((double)n));
    return 0;
}
"#;

/// The object of `comparisons` with this metric.
fn comparison<'a>(report: &'a Value, metric: &str) -> &'a Value {
    let comparisons = report["comparisons"].as_array().expect("comparisons");
    comparisons
        .iter()
        .find(|comparison| comparison["metric"] == metric)
        .unwrap_or_else(|| panic!("no {metric} in {report:#}"))
}

#[test]
fn a_strangers_dynamic_program_runs_on_two_kernels_without_a_document() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("bench.c"), BENCH).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-o", "bench", "bench.c", "-lm"])
        .current_dir(sandbox.work())
        .status()
        .expect("start cc");
    assert!(built.success());
    let output = sandbox
        .kduel()
        .args(["run", "-a", "debian:bookworm", "-b", "debian:trixie", "--accel", "tcg"])
        .args(["--pairs", "1", "--anyway", "--iterations", "2", "--json"])
        .args(["--metric", r"rate:calls/s:higher:rate=([0-9.]+)"])
        .args(["--", "./bench", "-n", "20000"])
        .output()
        .expect("start kduel");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(report["format"], "kduel-report/1");
    assert_eq!(report["accelerator"], "tcg");
    let rate = comparison(&report, "rate");
    assert_eq!((&rate["unit"], &rate["better"]), (&"calls/s".into(), &"higher".into()));
    // Other tests may keep the host so busy that the pair is dropped for it; its samples are kept.
    assert_eq!(rate["pairs"].as_u64().zip(rate["dropped"].as_u64()).map(|(p, d)| p + d), Some(1));
    let run = sandbox.runs().pop().expect("a run's folder");
    let samples = fs::read_to_string(run.join("samples.jsonl")).unwrap();
    let samples: Vec<Value> = samples.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    for side in ["a", "b"] {
        let own = samples.iter().filter(|s| s["side"] == side && s["metric"] == "rate");
        let values: Vec<f64> = own.filter_map(|sample| sample["value"].as_f64()).collect();
        let sane = |value: &f64| (1e3..1e9).contains(value);
        assert!(values.len() == 2 && values.iter().all(sane), "{side}: {values:?} calls a second");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn two_sockets_and_two_nodes_are_seen_by_the_guest() {
    let sandbox = Sandbox::new();
    let output = sandbox
        .kduel()
        .args(["run", "-a", "debian:bookworm", "-b", "debian:bookworm", "--aa", "--accel", "tcg"])
        .args(["--topology", "2s4c", "--overcommit", "--pairs", "1", "--iterations", "1", "--json"])
        .args(["-w", "syscall:call=getppid"])
        .output()
        .expect("start kduel");
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The topology is compared in every boot; a difference would be a fault of the rig.
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let run = sandbox.runs().pop().expect("a run's folder");
    let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let first: Value = serde_json::from_str(journal.lines().next().unwrap()).unwrap();
    let facts = &first["record"]["outcome"]["completed"]["facts"];
    assert_eq!(facts["cpus"].as_array().map(Vec::len), Some(8), "{facts:#}");
    assert_eq!(facts["nodes"][0]["distances"], serde_json::json!([10, 21]), "{facts:#}");
    sandbox.assert_nothing_left();
}
