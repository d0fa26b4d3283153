//! What the user wrote: all complaints at once, nothing started; the nearest names; plans.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;

use kduel_tests::{AD_HOC, Sandbox};

const DOCUMENT: &str = "
version: 1
experiments:
  fork:
    pairs: 2
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [fork-exit]
  pipe:
    pairs: 2
    sides: { base: debian:bookworm, patched: debian:trixie }
    workloads: [{ pipe-roundtrip: { bytes: [1, 4096] } }]
";

/// Nothing was started: there is no state at all.
#[track_caller]
fn nothing_started(sandbox: &Sandbox) {
    let left: Vec<_> = fs::read_dir(sandbox.state()).expect("the state").collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_broken_document_is_told_whole_with_place_caret_and_hint() {
    let document = "version: 1
experiments:
  fork:
    sides: { base: debian:bokworm, patched: debian:trixie }
    workloads: [fork-exi, { pipe-roundtrip: { byte: 1 } }]
    pears: 3
";
    let sandbox = Sandbox::new();
    let said = sandbox.run_document(document, "{}", &[]).ends_with(2).is_plain_text().tells(&[
        "kernels.yaml:4:",
        "did you mean `bookworm`?",
        "kernels.yaml:5:",
        "did you mean `fork-exit`?",
        "did you mean `bytes`?",
        "kernels.yaml:6:5",
        "did you mean `pairs`?",
        "^^^^^",
        "4 problems in",
    ]);
    assert!(said.stdout.is_empty(), "{said}");
    nothing_started(&sandbox);
}

#[test]
fn no_document_breaks_the_reader() {
    for document in [
        "",
        "version: 1",
        "version: 2",
        "experiments: {}",
        "- a\n- b",
        "version: 1\nexperiments: 5",
        "version: 1\nexperiments: { x: }",
        "version: 1\nexperiments: { x: { sides: [], workloads: {} } }",
        "version: 1\nexperiments: { x: { sides: { a: debian:bookworm }, workloads: [fork-exit] } }",
        "version: 1\nversion: 1",
        "a: [",
        "a: *b",
        "a: &a [*a]",
        "\u{feff}version: 1",
        "version: 1\n\texperiments: {}",
        "\"\\e[2J\\u202e\": 1",
        "\u{1b}[2J",
    ] {
        let sandbox = Sandbox::new();
        let said = sandbox.run_document(document, "{}", &[]).is_plain_text();
        assert!(matches!(said.code, Some(2 | 4)), "{document:?}: {said}");
        assert!(!said.stderr.is_empty(), "{document:?}");
        nothing_started(&sandbox);
    }
}

#[test]
fn a_document_that_is_no_text_is_refused() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("kernels.yaml"), b"version: 1\n\xff\xfe").expect("write");
    sandbox.says(&["run"]).ends_with(2).is_plain_text().tells(&["kernels.yaml"]);
    nothing_started(&sandbox);
}

#[test]
fn names_that_are_slips_are_answered_with_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.write("kernels.yaml", DOCUMENT);
    for (arguments, hint) in [
        (&["run", "frok"][..], "`fork`"),
        (&["plan", "pipes"], "`pipe`"),
        (&["run", "-a", "debian:bookwrom", "-b", "debian:trixie", "-w", "fork-exit"], "`bookworm`"),
        (&["run", "-a", "debain:bookworm", "-b", "debian:trixie", "-w", "fork-exit"], "`debian"),
        (
            &["run", "-a", "debian:bookworm", "-b", "debian:trixie", "-w", "hackbnech"],
            "`hackbench`",
        ),
        (
            &["run", "-a", "debian:bookworm", "-b", "debian:trixie", "-w", "pipe-roundtrip:byte=1"],
            "`bytes`",
        ),
        (&["workloads", "fork-exce"], "`fork-exec`"),
    ] {
        let said = sandbox.says(arguments).ends_with(2);
        assert!(said.stderr.contains("did you mean") && said.stderr.contains(hint), "{said}");
    }
    let said = sandbox.says(&["run", "--quik"]).ends_with(2);
    assert!(said.stderr.contains("--quick"), "{said}");
    nothing_started(&sandbox);
}

#[test]
fn an_unknown_console_side_is_told_before_anything_starts() {
    let sandbox = Sandbox::new();
    let said = sandbox.ad_hoc("{}", &["--console", "c"]).ends_with(2);
    said.tells(&["no side `c`", "a, b"]);
    nothing_started(&sandbox);
}

#[test]
fn nothing_selected_is_4_and_no_document_2() {
    let sandbox = Sandbox::new();
    sandbox.says(&["run"]).ends_with(2).tells(&["kernels.yaml", "-a"]);
    sandbox.write("kernels.yaml", "version: 1\nexperiments: {}\n");
    sandbox.says(&["run"]).ends_with(4).tells(&["no experiment is selected"]);
    nothing_started(&sandbox);
}

#[test]
fn half_a_comparison_is_refused() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["run", "-a", "debian:bookworm"][..],
        &["run", "-b", "debian:bookworm", "-w", "fork-exit"],
        &["run", "-a", "debian:bookworm", "-b", "debian:trixie"],
        &["run", "-a", "", "-b", "debian:trixie", "-w", "fork-exit"],
        &["run", "-a", "debian:bookworm", "-b", "debian:trixie", "-w", ""],
        &["run", "-a", "debian:bookworm", "-b", "debian:bookworm", "-w", "fork-exit"],
        &["run", "-a", "./nothing", "-b", "debian:trixie", "-w", "fork-exit"],
        &["run", "-a", "debian:bookworm", "-b", "debian:trixie", "-w", "fork-exit", "--cpus", "0"],
        &[
            "run",
            "-a",
            "debian:bookworm",
            "-b",
            "debian:trixie",
            "-w",
            "fork-exit",
            "--memory",
            "1kB",
        ],
        &["run", "-a", "debian:bookworm", "-b", "debian:trixie", "-w", "fork-exit", "--pairs", "0"],
        &[
            "run",
            "-a",
            "debian:bookworm",
            "-b",
            "debian:trixie",
            "-w",
            "fork-exit",
            "--topology",
            "7x",
        ],
    ] {
        let said = sandbox.says(arguments).ends_with(2).is_plain_text();
        assert!(!said.stderr.is_empty() && said.stdout.is_empty(), "{said}");
    }
    nothing_started(&sandbox);
}

#[test]
fn the_whole_document_is_run_or_what_is_named_of_it() {
    let sandbox = Sandbox::new();
    let said = sandbox.run_document(DOCUMENT, "{}", &["--pairs", "2"]).ends_with(0);
    said.reports(&[
        "fork on 1s1c",
        "pipe on 1s1c",
        "pipe-roundtrip bytes=1 ",
        "pipe-roundtrip bytes=4096",
    ]);
    let said = sandbox.run_document(DOCUMENT, "{}", &["fork"]).ends_with(0);
    assert!(!said.stdout.contains("pipe"), "{said}");
}

#[test]
fn a_plan_touches_nothing_and_names_schedule_and_command_lines() {
    let sandbox = Sandbox::new();
    sandbox.write("kernels.yaml", DOCUMENT);
    let mut arguments = vec!["plan", "--seed", "7"];
    let first = sandbox.says(&arguments).ends_with(0).reports(&["fork", "pipe", "patched"]);
    let second = sandbox.says(&arguments).ends_with(0);
    assert_eq!(first.stdout, second.stdout);
    arguments.extend(AD_HOC);
    sandbox.says(&arguments).ends_with(0).reports(&["fork-exit"]);
    nothing_started(&sandbox);
    let there: Vec<_> = fs::read_dir(sandbox.work()).expect("work").flatten().collect();
    assert_eq!(there.len(), 1, "{there:?}");
}

#[test]
fn a_saved_document_gives_the_same_plan_as_the_arguments_it_was_saved_from() {
    let sandbox = Sandbox::new();
    let sweep = [
        "-a",
        "debian:bookworm",
        "-b",
        "debian:bookworm",
        "-b",
        "debian:trixie",
        "-w",
        "fork-exit,pipe-roundtrip:bytes=1+4096",
        "--append-b",
        "quiet",
        "--sysctl-b",
        "kernel.a=1",
        "--cpus",
        "2",
        "--memory",
        "1G",
        "--pairs",
        "3",
        "--iterations",
        "4",
    ];
    let mut run = sandbox.fake("{}", &sweep);
    let said = kduel_tests::Said::by(run.args(["--seed", "9", "--save", "saved.yaml"]));
    said.ends_with(0).tells(&["wrote ", "saved.yaml"]);
    let mut again = sandbox.fake("{}", &["-f", "saved.yaml", "--seed", "9"]);
    kduel_tests::Said::by(&mut again).ends_with(0);
    let plans: Vec<serde_json::Value> = sandbox
        .runs()
        .iter()
        .map(|run| fs::read_to_string(run.join("plan.json")).expect("plan.json"))
        .map(|text| serde_json::from_str(&text).expect("JSON"))
        .collect();
    assert_eq!(plans.len(), 2);
    assert_eq!(plans[0]["experiments"], plans[1]["experiments"]);
    let twice = kduel_tests::Said::by(sandbox.fake("{}", &sweep).args(["--save", "saved.yaml"]));
    twice.ends_with(2).tells(&["saved.yaml"]);
}
