//! Sides of stored runs against each other, and runs as files.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::PathBuf;

use kduel_tests::{AD_HOC, Said, Sandbox};
use serde_json::{Value, json};

/// One base, and a candidate so much slower; its run has this label.
fn run(sandbox: &Sandbox, label: &str, base: f64, candidate: f64, build: &str) {
    let facts = |build: &str| format!("facts: {{release: r-{build}, build-id: {build}}}");
    let script = format!(
        "{{noise: 0.02, sides: {{a: {{factor: {{all: {base}}}, {}}}, b: {{factor: {{all: {candidate}}}, {}}}}}}}",
        facts("base"),
        facts(build)
    );
    let more = ["--quick", "--seed", "7", "--label", label, "--fail-on", "never"];
    Said::by(sandbox.fake(&script, &AD_HOC).args(more)).ends_with(0);
}

fn two_versions() -> Sandbox {
    let sandbox = Sandbox::new();
    run(&sandbox, "v1", 1.0, 1.5, "one");
    run(&sandbox, "v2", 1.0, 1.2, "two");
    sandbox
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).expect("a JSON report")
}

#[test]
fn the_second_version_of_a_patch_against_the_first() {
    let sandbox = two_versions();
    let said = sandbox.says(&["compare", "v1", "v2"]).ends_with(0).is_plain_text();
    let said = said.reports(&["verdict: improvement", "v2:b is faster, ~20.0 % less time"]);
    said.reports(&[
        "v1: is run",
        "control: v2:a, the base",
        "again: kduel compare",
        "r-one",
        "r-two",
    ]);
    let worse = sandbox.says(&["compare", "v2", "v1", "--json"]).ends_with(1);
    let report = json(&worse);
    let found = &report["comparisons"][0];
    assert_eq!((&found["side"], &found["verdict"]), (&json!("v1:b"), &json!("regression")));
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(2));
    // The same samples, the same bytes, in every format.
    for format in
        ["text", "html", "json", "changelog", "mail", "csv", "junit", "ktap", "diffprofile"]
    {
        let words = ["compare", "v1", "v2", "--format", format];
        let (one, other) = (sandbox.says(&words), sandbox.says(&words));
        assert!(!one.stdout.is_empty() && one.code == Some(0), "{format}: {one}");
        assert_eq!(one.stdout, other.stdout, "{format}");
    }
}

#[test]
fn a_base_that_moved_says_that_it_was_not_only_the_kernel() {
    let sandbox = Sandbox::new();
    run(&sandbox, "v1", 1.0, 1.2, "one");
    run(&sandbox, "v2", 1.5, 1.8, "two");
    let said = sandbox.says(&["compare", "v1", "v2", "--strict"]).ends_with(3);
    said.reports(&["verdict: inconclusive", "itself moved by +50.0 %", "in 1 by the margin"]);
}

#[test]
fn sides_are_named_behind_their_runs_or_by_options() {
    let sandbox = two_versions();
    for words in [
        &["compare", "v1:b", "v2:a"][..],
        &["compare", "v1", "v2", "--with", "a"],
        &["compare", "v1", "v2:a", "--side", "b"],
    ] {
        sandbox.says(words).ends_with(0).reports(&["v2:a is faster"]);
    }
    sandbox.says(&["compare", "@1:a", "@1:b", "@0:b"]).ends_with(1).reports(&["2:b is slower"]);
    let said = sandbox.says(&["compare", "v1:c", "v2"]).ends_with(2);
    said.tells(&["there is no side `c`", "sides a, b"]);
    sandbox.says(&["compare", "v1", "v3"]).ends_with(2).tells(&["no run `v3`", "did you mean `v"]);
    sandbox.says(&["compare", "v1"]).ends_with(2);
}

/// A copy of the newest run with `change` made to a file of it.
fn changed(sandbox: &Sandbox, name: &str, change: impl Fn(&mut Value)) -> PathBuf {
    let copy = sandbox.work().join("copy");
    if !copy.exists() {
        fs::create_dir(&copy).expect("a folder");
        for file in ["run.json", "plan.json", "journal.jsonl"] {
            fs::copy(sandbox.latest().join(file), copy.join(file)).expect("a file of the run");
        }
    }
    let path = copy.join(name);
    let mut value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
    change(&mut value);
    fs::write(&path, value.to_string()).expect("written");
    copy
}

#[test]
fn what_must_not_be_compared_is_refused_with_every_difference() {
    let sandbox = two_versions();
    changed(&sandbox, "run.json", |run| {
        run["host"]["cpu-model"] = json!("Other \u{1b}[2J");
        run["accelerator"] = json!("kvm");
        run["qemu"] = json!({"path": "q", "version": "9.9"});
    });
    changed(&sandbox, "plan.json", |plan| {
        let experiment = &mut plan["experiments"][0];
        experiment["topology"]["memory-mib"] = json!(1024);
        experiment["trials"][0]["params"]["mappings"] = json!(64);
    });
    let refused = sandbox.says(&["compare", "v1", "./copy"]).ends_with(2).is_plain_text();
    let refused =
        refused.tells(&["must not be compared", "Other \\x1b[2J", "kvm", "9.9", "1024 MiB"]);
    let all = "host,accelerator,qemu,topology,parameters";
    let refused = refused.tells(&["mappings", &format!("--despite {all}")]);
    assert_eq!(refused.stdout, "");
    sandbox
        .says(&["compare", "v1", "./copy", "--despite", "host"])
        .ends_with(2)
        .tells(&["(allowed)"]);
    let said = sandbox.says(&["compare", "v1", "./copy", "--despite", all]);
    said.is_plain_text().reports(&["note: despite qemu: QEMU: none, then 9.9"]);
    let csv = sandbox.says(&["compare", "v1", "./copy", "--despite", all, "--format", "csv"]);
    csv.reports(&["; compared despite another host, another accelerator, another qemu"]);
    sandbox.says(&["compare", "v1", "v2", "--despite", "hots"]).ends_with(2).tells(&["mean host?"]);
    changed(&sandbox, "plan.json", |plan| plan["measure"] = json!("instructions"));
    let said = sandbox.says(&["compare", "v1", "./copy", "--despite", all]).ends_with(2);
    said.tells(&["measure", "instructions are no times"]);
}

#[test]
fn a_run_of_a_newer_kduel_is_refused_by_its_format() {
    let sandbox = two_versions();
    changed(&sandbox, "run.json", |run| run["format"] = json!("kduel-run/9"));
    for words in [&["report", "./copy"][..], &["compare", "v1", "./copy"], &["export", "./copy"]] {
        sandbox.says(words).ends_with(2).tells(&["kduel-run/9, this kduel reads kduel-run/1"]);
    }
    changed(&sandbox, "run.json", |run| run["format"] = json!("kduel-run/1"));
    changed(&sandbox, "plan.json", |plan| plan["format"] = json!("kduel-plan/9"));
    sandbox.says(&["report", "./copy"]).ends_with(69).tells(&["kduel-plan/9, this kduel reads"]);
}

#[test]
fn an_exported_run_is_read_like_the_run() {
    let sandbox = two_versions();
    let said = sandbox.says(&["export", "v1", "-o", "one.tar.zst"]).ends_with(0);
    assert_eq!(said.stdout, "one.tar.zst\n");
    let first = fs::read(sandbox.work().join("one.tar.zst")).expect("the file");
    sandbox.says(&["export", "./one.tar.zst", "-o", "again.tar.zst"]).ends_with(0);
    let again = fs::read(sandbox.work().join("again.tar.zst")).expect("the file");
    sandbox.says(&["export", "v1", "-o", "one.tar.zst"]).ends_with(0);
    assert_eq!(fs::read(sandbox.work().join("one.tar.zst")).expect("the file"), first);
    assert!(again.len() > first.len() / 2);
    for format in ["json", "csv", "junit", "mail"] {
        let of = |run: &str| sandbox.says(&["report", run, "--format", format]).stdout;
        assert_eq!(of("one.tar.zst"), of("v1"), "{format}");
    }
    sandbox.says(&["runs", "rm", "v1"]).ends_with(0);
    sandbox.says(&["compare", "./one.tar.zst:b", "v2"]).ends_with(0).reports(&["v2:b is faster"]);
    sandbox.says(&["verify", "one.tar.zst"]).ends_with(69).reports(&["it is a timed run"]);
    sandbox.assert_nothing_left();
}

#[test]
fn a_broken_export_is_told_and_leaves_nothing() {
    let sandbox = two_versions();
    sandbox.says(&["export", "v1", "-o", "one.tar.zst"]).ends_with(0);
    let path = sandbox.work().join("one.tar.zst");
    let bytes = fs::read(&path).expect("the file");
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).expect("written");
        let said = sandbox.says(&["report", "./one.tar.zst"]).ends_with(69);
        said.tells(&["failed to read ./one.tar.zst", "copy it again"]).is_plain_text();
    }
    sandbox.assert_nothing_left();
}
