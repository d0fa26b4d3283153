//! Stored runs: how they are named, listed, labelled, removed and reported again.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use kduel_tests::{AD_HOC, Said, Sandbox};

fn id(run: &Path) -> String {
    run.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Three runs: slower, faster, the same. Gives their ids, oldest first.
fn three_runs(sandbox: &Sandbox) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (factor, code) in [("1.5", 1), ("0.5", 0), ("1", 0)] {
        sandbox
            .ad_hoc(&format!("sides: {{b: {{factor: {{all: {factor}}}}}}}"), &[])
            .ends_with(code);
        let new = sandbox
            .runs()
            .iter()
            .map(|run| id(run))
            .find(|id| !ids.contains(id))
            .expect("a new run");
        ids.push(new);
    }
    ids
}

#[test]
fn a_report_says_again_what_the_run_said() {
    for script in [
        "{noise: 0.02, sides: {b: {factor: {all: 1.5}}}}",
        "boots: [{side: b, console: [x], boot-failure: {class: panic, title: t}}]",
        "boots: [{side: b, problems: [{workload: fork-exit, problem: {kind: timed-out, after-s: 5}}]}]",
    ] {
        for format in ["text", "json"] {
            let sandbox = Sandbox::new();
            let flags: &[&str] = if format == "json" { &["--json"] } else { &[] };
            let run = sandbox.ad_hoc(script, flags);
            let report = sandbox.says(&["report", "--format", format]);
            assert_eq!((report.code, report.stdout), (run.code, run.stdout));
            assert_eq!(report.stderr, "");
        }
    }
}

#[test]
fn runs_are_named_by_age_start_label_and_folder() {
    let sandbox = Sandbox::new();
    let ids = three_runs(&sandbox);
    let folder = sandbox.state().join("runs").join(&ids[0]);
    sandbox.says(&["runs", "label", "@2", "before the merge"]).ends_with(0);
    for (reference, run) in [
        (None, &ids[2]),
        (Some("@0"), &ids[2]),
        (Some("last"), &ids[2]),
        (Some("@1"), &ids[1]),
        (Some("@2"), &ids[0]),
        (Some(ids[1].as_str()), &ids[1]),
        (Some("before the merge"), &ids[0]),
        (folder.to_str(), &ids[0]),
    ] {
        let mut arguments = vec!["report"];
        arguments.extend(reference);
        let said = sandbox.says(&arguments);
        let last = said.stdout.lines().last().unwrap_or_default();
        assert_eq!(last, format!("this:  kduel report {run}"), "{reference:?}: {said}");
    }
}

#[test]
fn names_that_fit_no_run_or_several_are_told() {
    let sandbox = Sandbox::new();
    sandbox.says(&["report"]).ends_with(2).tells(&["there is no run", "kduel run"]);
    sandbox.says(&["runs"]).ends_with(0).reports(&["no runs yet"]);
    let ids = three_runs(&sandbox);
    sandbox.says(&["report", "@3"]).ends_with(2).tells(&["there is no run @3", "3 runs"]);
    sandbox.says(&["report", "nothing"]).ends_with(2);
    sandbox.says(&["report", &ids[0][..4]]).ends_with(2).tells(&[&ids[0], &ids[1], &ids[2]]);
    sandbox.says(&["report", "./nothing"]).ends_with(2).tells(&["./nothing"]);
    sandbox.says(&["report", "\u{1b}[2J"]).ends_with(2).is_plain_text();
}

#[test]
fn the_list_shows_every_run_newest_first() {
    let sandbox = Sandbox::new();
    let ids = three_runs(&sandbox);
    sandbox.says(&["runs", "label", &ids[1], "mine \u{1b}[2J"]).ends_with(0);
    let said = sandbox.says(&["runs"]).ends_with(0).is_plain_text();
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    for (line, (id, words)) in lines[1..].iter().zip([
        (&ids[2], "no change"),
        (&ids[1], "improvement"),
        (&ids[0], "regression"),
    ]) {
        assert!(
            line.contains(id.as_str()) && line.contains(words) && line.contains("6/6"),
            "{said}"
        );
    }
    assert!(lines[2].contains("mine \\x1b[2J"), "{said}");
}

#[test]
fn runs_are_removed_by_name_and_by_age() {
    let sandbox = Sandbox::new();
    let ids = three_runs(&sandbox);
    // All or nothing: one name that fits no run removes none.
    sandbox.says(&["runs", "rm", "@0", "nothing"]).ends_with(2);
    assert_eq!(sandbox.runs().len(), 3);
    sandbox.says(&["runs", "rm", "@0"]).ends_with(0).reports(&["removed", &ids[2]]);
    assert_eq!(sandbox.runs().len(), 2);
    // `last` no longer dangles.
    sandbox.says(&["report"]).ends_with(0).reports(&[&ids[1]]);
    sandbox.says(&["runs", "label", &ids[0], "keep"]).ends_with(0);
    sandbox.says(&["runs", "gc", "--keep", "0"]).ends_with(0).reports(&["removed 1 run"]);
    let left: Vec<String> = sandbox.runs().iter().map(|run| id(run)).collect();
    assert_eq!(left, [ids[0].clone()]);
    sandbox.says(&["runs", "gc", "--older-than", "1x"]).ends_with(2).tells(&["12h, 30d or 4w"]);
}

#[test]
fn a_folder_that_is_no_run_is_never_removed() {
    let sandbox = Sandbox::new();
    let precious = sandbox.work().join("precious");
    fs::create_dir(&precious).expect("a folder");
    sandbox.says(&["runs", "rm", "./precious"]).ends_with(2);
    sandbox.says(&["runs", "rm", "/"]).ends_with(2);
    assert!(precious.is_dir());
}

#[test]
fn another_place_for_the_run_is_found_by_what_the_report_says() {
    let sandbox = Sandbox::new();
    let out = sandbox.work().join("out");
    let said = sandbox.ad_hoc("{}", &["--out", "out"]).ends_with(0);
    assert!(sandbox.runs().is_empty(), "a run in the state directory");
    let runs: Vec<PathBuf> = fs::read_dir(&out)
        .expect("the folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    assert_eq!(runs.len(), 1, "{said}");
    let reference = said.stdout.split_whitespace().last().unwrap_or_default();
    let again = sandbox.says(&["report", reference]).ends_with(0);
    assert_eq!(again.stdout, said.stdout);
}

#[test]
fn two_kduels_do_not_write_one_run() {
    let sandbox = Sandbox::new();
    let script = "boots: [{line-after-ms: 20}]";
    let mut first = sandbox.fake(script, &AD_HOC).spawn().expect("start kduel");
    let run = loop {
        match sandbox.runs().pop() {
            Some(run) if run.join("run.json").exists() => break run,
            _ => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    let id = id(&run);
    let second = Said::by(&mut sandbox.fake(script, &["--resume", &id]));
    let listed = sandbox.says(&["runs"]);
    let removed = sandbox.says(&["runs", "rm", &id]);
    let collected = sandbox.says(&["runs", "gc", "--keep", "0"]);
    first.kill().expect("kill");
    first.wait().expect("wait");
    second.ends_with(69).tells(&["another kduel"]);
    listed.ends_with(0).reports(&["running"]);
    assert_ne!(removed.code, Some(0), "{removed}");
    collected.ends_with(0).reports(&["removed 0 runs"]);
    assert!(run.is_dir());
}

#[test]
fn a_timed_run_has_no_profile_to_annotate() {
    let sandbox = Sandbox::new();
    sandbox.says(&["annotate", "do_exit"]).ends_with(2).tells(&["there is no run"]);
    sandbox.ad_hoc("{}", &[]);
    sandbox
        .says(&["annotate", "do_exit"])
        .ends_with(2)
        .tells(&["it is a timed run", "--measure instructions"]);
}
