//! Folders that `kduel run` runs, what must come out of them, and `kduel cases`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;

use kduel_tests::{Said, Sandbox};

const DOCUMENT: &str = "
version: 1
experiments:
  fork:
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [fork-exit]
  pipe:
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [pipe-roundtrip]
";

const CLAIM: &str = "
version: 1
report: forks got slower
claims:
  fork:
    - { side: patched, metric: fork, workload: fork-exit, change: +20%, better: lower }
";

const EXPECT: &str = "
version: 1
exact:
  fork:
    - { side: patched, workload: fork-exit, count: locked, change: 1.. }
time:
  fork:
    - { side: patched, workload: fork-exit, verdict: regression, change: +10%..+40% }
    - { order: [base, patched], workload: fork-exit, metric: time }
  pipe:
    - { side: patched, workload: pipe-roundtrip, verdict: no-change }
";

const SLOWER: &str = "{noise: 0.02, sides: {patched: {factor: {all: 1.25}}}}";

fn case(files: &[(&str, &str)]) -> Sandbox {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.work().join("cases/slow-fork")).unwrap();
    for (name, content) in files {
        sandbox.write(&format!("cases/slow-fork/{name}"), content);
    }
    sandbox
}

fn whole() -> Sandbox {
    case(&[("kernels.yaml", DOCUMENT), ("claim.yaml", CLAIM), ("expect.yaml", EXPECT)])
}

fn run(sandbox: &Sandbox, more: &[&str]) -> Said {
    let mut run = sandbox.fake(SLOWER, &["cases/slow-fork", "--quick", "--seed", "7"]);
    Said::by(run.args(more))
}

#[test]
fn a_regression_that_must_come_out_is_success() {
    let said = run(&whole(), &["fork"]).ends_with(0);
    said.reports(&[
        "cases/slow-fork: 2 of 2 expectations came out",
        "yes wanted fork: fork-exit of patched: regression, +10 % to +40 % found regression, +2",
        "yes wanted fork: fork-exit time: base < patched found base",
        "reproduced",
    ]);
}

#[test]
fn what_does_not_come_out_is_told_and_ends_with_1() {
    let sandbox = whole();
    run(&sandbox, &[]).ends_with(1).reports(&[
        "cases/slow-fork: 2 of 3 expectations came out",
        "NO wanted pipe: pipe-roundtrip of patched: no-change found regression",
    ]);
    sandbox.says(&["cases"]).ends_with(0).reports(&[
        "cases/slow-fork: forks got slower",
        "claimed fork of patched: +20.0 %",
        "exact 1 expectation, not run yet",
        "timed 2 of 3 expectations came out, run 2",
        "NO wanted pipe: pipe-roundtrip of patched: no-change found regression",
    ]);
    let json = sandbox.says(&["cases", "--json"]).ends_with(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["format"], "kduel-cases/1");
    let case = &json["cases"][0];
    assert_eq!(case["claims"][0]["change"], 0.2);
    assert_eq!((&case["exact"]["wanted"], &case["exact"]["run"]), (&1.into(), &().into()));
    let held: Vec<bool> =
        (0..3).map(|place| case["timed"]["found"][place]["held"].as_bool().unwrap()).collect();
    assert_eq!(held, [true, true, false]);
}

#[test]
fn programs_get_the_report_alone_on_standard_output() {
    let said = run(&whole(), &["fork", "--json"]).ends_with(0);
    let said = said.tells(&["cases/slow-fork: 2 of 2 expectations came out"]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["verdict"], "regression");
}

#[test]
fn a_folder_without_expectations_is_judged_as_ever() {
    run(&case(&[("kernels.yaml", DOCUMENT)]), &["fork"]).ends_with(1);
}

#[test]
fn what_is_wrong_in_a_case_is_told_at_once() {
    let claim = "
version: 1
reprot: x
claims:
  frok:
    - { side: patched, metric: fork, change: +20% }
  fork:
    - { side: patchd, metric: fork, change: 20 }
";
    let expect = "
version: 2
exat: {}
time:
  fork:
    - { side: patchd, workload: fork-exi, verdict: regresion, change: 5%..1% }
    - { order: [base], workload: fork-exit, verdict: regression }
    - { side: patched, workload: fork-exit }
    - { workload: fork-exit, metric: time, count: locked, change: 1 }
    - { side: patched, workload: fork-exit, count: locked, verdict: regression, calls: 1 }
";
    let files = [("kernels.yaml", DOCUMENT), ("claim.yaml", claim), ("expect.yaml", expect)];
    let said = run(&case(&files), &["fork"]).ends_with(2);
    insta::assert_snapshot!(said.stderr);
}

#[test]
fn a_folder_that_is_no_case() {
    let sandbox = Sandbox::new();
    sandbox.says(&["run", "cases/none"]).ends_with(2).tells(&["a word with a slash is a folder"]);
    sandbox.says(&["cases"]).ends_with(4).tells(&["there are no cases here"]);
    sandbox.says(&["cases", "none"]).ends_with(2).tells(&["none is no case"]);
    let two = ["run", "cases/a", "cases/b", "--backend", "fake:x"];
    fs::create_dir_all(sandbox.work().join("cases/a")).unwrap();
    sandbox.write("cases/a/kernels.yaml", DOCUMENT);
    sandbox.says(&two).ends_with(2).tells(&["one run has one folder"]);
}
