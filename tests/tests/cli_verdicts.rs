//! Exit codes, verdicts and formats of whole runs.

#![expect(clippy::panic, reason = "tests fail by panicking")]

use kduel_tests::{AD_HOC, Said, Sandbox};
use serde_json::Value;
use std::process::Stdio;

const SLOWER: &str = "{noise: 0.01, sides: {b: {factor: {all: 1.5}}}}";
const FASTER: &str = "{noise: 0.01, sides: {b: {factor: {all: 0.5}}}}";
const SAME: &str = "{noise: 0.01}";
const NOISY: &str = "{noise: 0.4, sides: {b: {factor: {all: 1.05}}}}";
/// 4 %: above the noise, below the margin of 10 %.
const A_LITTLE_SLOWER: &str = "{noise: 0.001, sides: {b: {factor: {all: 1.04}}}}";

#[test]
fn the_exit_code_follows_verdict_and_flags() {
    for (script, flags, code, verdict) in [
        (SLOWER, &[][..], 1, "regression"),
        (SLOWER, &["--fail-on", "margin"], 1, "regression"),
        (SLOWER, &["--fail-on", "any"], 1, "regression"),
        (SLOWER, &["--fail-on", "never"], 0, "regression"),
        (SLOWER, &["--strict", "--fail-on", "never"], 0, "regression"),
        (FASTER, &[], 0, "improvement"),
        (FASTER, &["--strict", "--fail-on", "any"], 0, "improvement"),
        (SAME, &[], 0, "no change"),
        (SAME, &["--strict"], 0, "no change"),
        (NOISY, &[], 0, "inconclusive"),
        (NOISY, &["--strict"], 3, "inconclusive"),
        (A_LITTLE_SLOWER, &[], 0, "no change"),
        (A_LITTLE_SLOWER, &["--fail-on", "any"], 1, "no change"),
    ] {
        let said = Sandbox::new().ad_hoc(script, flags).ends_with(code);
        said.reports(&[&format!("verdict: {verdict}")]);
    }
}

#[test]
fn sides_that_turn_out_the_same_are_refused_unless_that_is_wanted() {
    let script =
        "sides: {a: {facts: {release: r, build-id: i}}, b: {facts: {release: r, build-id: i}}}";
    let refused = Sandbox::new().ad_hoc(script, &[]).ends_with(2);
    refused.tells(&["sides are the same", "a and b are the same kernel (r)", "hint:", "--aa"]);
    Sandbox::new().ad_hoc(script, &["--aa"]).ends_with(0).reports(&["verdict: no change"]);
}

#[test]
fn more_sides_are_each_compared_with_the_base() {
    let script = "{noise: 0.01, sides: {b: {factor: {all: 1.5}}, c: {factor: {all: 0.5}}}}";
    let said = Sandbox::new().ad_hoc(script, &["-b", "debian:sid"]).ends_with(1);
    said.reports(&["b is slower", "c is faster"]);
}

#[test]
fn a_metric_that_one_side_lacks_is_invalid_for_it_alone() {
    let script = "sides: {b: {missing: [elapsed], factor: {all: 2}}}";
    let sandbox = Sandbox::new();
    let run = ["-a", "debian:bookworm", "-b", "debian:trixie", "-w", "hackbench", "--quick"];
    let said = Said::by(&mut sandbox.fake(script, &run)).ends_with(1);
    said.reports(&["b is slower", "hackbench elapsed", "invalid"]);
    let all = "sides: {b: {missing: [elapsed, time]}}";
    Said::by(&mut sandbox.fake(all, &run)).ends_with(69).reports(&["verdict: invalid"]);
}

/// Not quick, so that there are looks.
fn looked_at(script: &str, more: &[&str]) -> Said {
    let sandbox = Sandbox::new();
    Said::by(sandbox.fake(script, &AD_HOC).args(["--seed", "7", "--json"]).args(more))
}

#[test]
fn a_run_ends_at_the_look_that_decides_it() {
    let said = looked_at(SLOWER, &[]).ends_with(1).tells(&["decided after 8 of up to 30 pairs"]);
    assert_eq!(parsed(&said)["comparisons"][0]["pairs"], 8);
    let said = looked_at(NOISY, &["--pairs", "12"]).ends_with(0);
    assert_eq!(parsed(&said)["comparisons"][0]["pairs"], 12);
    assert!(!said.stderr.contains("decided after"), "{said}");
    let said = looked_at(SLOWER, &["--anytime"]).ends_with(1).tells(&["of up to 30 pairs"]);
    assert!(parsed(&said)["comparisons"][0]["pairs"].as_u64() < Some(12), "{said}");
    for stat in ["t", "welch"] {
        let said = looked_at(SLOWER, &["--stat", stat]).ends_with(1);
        assert_eq!(parsed(&said)["comparisons"][0]["pairs"], 8);
        assert!(parsed(&said)["basis"].as_str().is_some_and(|b| b.contains("'s t")), "{said}");
    }
}

#[test]
fn a_budget_ends_a_run_between_two_pairs() {
    let more = ["--pairs", "1000", "--budget", "1s"];
    let said = looked_at(NOISY, &more).ends_with(0).tells(&["the budget was used up after"]);
    assert!(parsed(&said)["comparisons"][0]["pairs"].as_u64() < Some(1000), "{said}");
    assert_eq!(parsed(&said)["verdict"], "inconclusive");
}

#[test]
fn a_calibration_compares_the_base_with_itself_and_keeps_nothing_of_scripted_guests() {
    let sandbox = Sandbox::new();
    let base = ["--calibrate", "-a", "debian:bookworm", "-w", "fork-exit", "--seed", "7"];
    let noisy = "{ noise: 0.02 }";
    let said = Said::by(&mut sandbox.fake(noisy, &base)).ends_with(0);
    let said = said.reports(&["sides differ"]).tells(&["pair 20 of 20: again", "nothing is kept"]);
    assert!(said.stdout.contains("calibration\n  series"), "{said}");
    assert!(!sandbox.state().join("calibration.json").exists());
    let few = [&base[..], &["--pairs", "19"]].concat();
    Said::by(&mut sandbox.fake(noisy, &few)).ends_with(2).tells(&["--calibrate needs 20 pairs"]);
    let exact = [&base[..], &["--measure", "instructions"]].concat();
    Said::by(&mut sandbox.fake(noisy, &exact)).ends_with(2).tells(&["--calibrate measures time"]);
}

#[test]
fn statistics_of_timed_runs_mean_nothing_to_exact_ones() {
    let more = ["--measure", "instructions", "--anytime"];
    looked_at(SLOWER, &more).ends_with(2).tells(&["belongs to timed runs"]);
}

fn parsed(said: &Said) -> Value {
    serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error} in {said}"))
}

#[test]
fn json_is_one_document_with_the_promised_core() {
    let said = Sandbox::new().ad_hoc(SLOWER, &["--json"]).ends_with(1);
    let report = parsed(&said);
    assert_eq!(report["format"], "kduel-report/1");
    assert_eq!(report["measure"], "time");
    assert_eq!(report["accelerator"], "tcg");
    assert_eq!(report["verdict"], "regression");
    assert!(report["run"].is_string(), "{said}");
    let comparison = &report["comparisons"][0];
    for (key, value) in [
        ("experiment", "adhoc"),
        ("side", "b"),
        ("workload", "fork-exit"),
        ("metric", "time"),
        ("unit", "ns"),
        ("better", "lower"),
        ("verdict", "regression"),
    ] {
        assert_eq!(comparison[key], value, "{key} in {said}");
    }
    assert_eq!(comparison["pairs"], 6);
    let number = |key: &str| {
        comparison[key].as_f64().unwrap_or_else(|| panic!("{key} is no number in {said}"))
    };
    let (low, change, high) = (number("low"), number("change"), number("high"));
    assert!(low < change && change < high && (0.45..0.55).contains(&change), "{said}");
    assert!((number("value") / number("base") - 1.0 - change).abs() < 0.02, "{said}");
    assert!(number("margin") > 0.0);
}

#[test]
fn json_has_no_change_where_nothing_was_measured() {
    let script = "boots: [{side: b, boot-failure: {class: panic, title: t}}]";
    let said = Sandbox::new().ad_hoc(script, &["--json"]).ends_with(5);
    let report = parsed(&said);
    assert_eq!(report["verdict"], "fails");
    assert_eq!(report["comparisons"][0]["verdict"], "fails");
    assert!(report["comparisons"][0].get("change").is_none(), "{said}");
}

#[test]
fn json_is_a_document_even_when_the_rig_ends_the_run() {
    for class in ["ssh-cut", "knob-not-taken", "internal"] {
        let script =
            format!("boots: [{{block: 0, side: b, boot-failure: {{class: {class}, title: t}}}}]");
        let said = Sandbox::new().ad_hoc(&script, &["--json"]);
        assert_eq!(parsed(&said)["format"], "kduel-report/1", "{said}");
    }
}

#[test]
fn without_a_terminal_nothing_is_coloured() {
    for colour in [None, Some("1")] {
        let sandbox = Sandbox::new();
        let mut run = sandbox.fake(SLOWER, &AD_HOC);
        if let Some(value) = colour {
            run.env("NO_COLOR", value);
        }
        Said::by(run.args(["--quick"]).env("CLICOLOR_FORCE", "1")).ends_with(1).is_plain_text();
    }
}

#[test]
fn results_go_to_stdout_and_talk_to_stderr() {
    let said = Sandbox::new().ad_hoc(SAME, &[]).ends_with(0);
    assert!(
        said.stdout.starts_with("verdict: no change\n") && said.stdout.ends_with('\n'),
        "{said}"
    );
    assert!(said.stderr.contains("pair 6 of 6"), "{said}");
    assert!(!said.stdout.contains("pair 6 of 6"), "{said}");
}

#[test]
fn nobody_who_reads_the_talk_does_not_end_the_run() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").map(Stdio::from);
    let (reader, writer) = std::io::pipe().unwrap_or_else(|error| panic!("make a pipe: {error}"));
    drop(reader);
    let full = full().unwrap_or_else(|error| panic!("open /dev/full: {error}"));
    for talk in [full, Stdio::from(writer)] {
        let sandbox = Sandbox::new();
        let mut run = sandbox.fake(SLOWER, &AD_HOC);
        run.args(["--quick"]).stderr(talk);
        Said::by(&mut run).ends_with(1).reports(&["verdict: regression"]);
    }
}

#[test]
fn a_result_that_cannot_be_written_is_told() {
    let sandbox = Sandbox::new();
    sandbox.ad_hoc(SLOWER, &[]).ends_with(1);
    for arguments in
        [&["report"][..], &["runs"], &["workloads"], &["man"], &["completions", "bash"]]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let full = full.unwrap_or_else(|error| panic!("open /dev/full: {error}"));
        let said = Said::by(sandbox.kduel().args(arguments).stdout(full)).ends_with(69);
        said.tells(&["No space left on device"]);
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let sandbox = Sandbox::new();
    sandbox.ad_hoc(SAME, &[]).ends_with(0);
    let mut report = sandbox.kduel();
    let mut child = report
        .arg("report")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start kduel");
    drop(child.stdout.take());
    let said = Said::from(child.wait_with_output().expect("wait"));
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_command_in_a_report_is_one_line_that_a_shell_takes_apart_as_it_was() {
    let sandbox = Sandbox::new();
    let odd =
        "two  spaces, 'quotes', \"more\" and $HOME; and so long that no line of eighty holds it";
    let mut run = sandbox.fake(SLOWER, &["-a", "debian:bookworm", "-b", "debian:trixie"]);
    let said = Said::by(run.args(["--quick", "--", "/bin/true", odd])).ends_with(1);
    let again = said.stdout.lines().find_map(|line| line.strip_prefix("again: "));
    let again = again.unwrap_or_else(|| panic!("no command in {said}"));
    let script = format!("set -- {again}; for word; do :; done; printf %s \"$word\"");
    let words = Said::by(sandbox.program("sh").args(["-c", &script])).ends_with(0);
    assert_eq!(words.stdout, odd);
}

#[test]
fn a_backend_that_is_none_is_refused() {
    let sandbox = Sandbox::new();
    let said = sandbox.says(&[&["run", "--backend", "faek:x"][..], &AD_HOC].concat()).ends_with(2);
    said.tells(&["faek:x"]);
    assert!(sandbox.runs().is_empty());
}

#[test]
fn pairs_that_the_host_spoils_are_dropped_and_booted_again() {
    // Twice, of eight pairs a fifth may be repeated, which is one.
    let script = "{ noise: 0.02, sides: { b: { factor: { all: 1.3 } } }, boots: [
        { block: 2, side: b, attempt: 0, steal: 40 }, { block: 5, side: a, steal: 31 },
        { block: 6, steal: 29 } ] }";
    let said = looked_at(script, &["--pairs", "8"]).ends_with(1);
    let said = said.tells(&["pair 3 again, for what the host did to it"]);
    assert!(!said.stderr.contains("pair 6 again"), "{said}");
    let comparison = &parsed(&said)["comparisons"][0];
    assert_eq!((&comparison["pairs"], &comparison["dropped"]), (&7.into(), &1.into()));
    assert_eq!(comparison["all-pairs"]["pairs"], 8);
    assert_eq!(comparison["all-pairs"]["verdict"], "regression");
}

#[test]
fn a_host_that_spoils_one_side_alone_decides_nothing() {
    let script = "{ noise: 0.02, sides: { b: { factor: { all: 1.6 } } }, boots: [
        { side: b, steal: 60 } ] }";
    let said = looked_at(script, &["--pairs", "12"]).ends_with(0);
    let report = parsed(&said);
    assert_eq!(report["verdict"], "inconclusive");
    let reason = report["comparisons"][0]["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("b: the host took away more than 30 %"), "{said}");
    // Half of the boots are enough to say no more than that.
    let some: String = (0..6).map(|i| format!("{{ block: {i}, side: b, steal: 60 }}, ")).collect();
    let script = format!(
        "{{ noise: 0.02, sides: {{ b: {{ factor: {{ all: 1.6 }} }} }}, boots: [ {some} ] }}"
    );
    let said = looked_at(&script, &["--pairs", "12"]).ends_with(0);
    assert_eq!(parsed(&said)["verdict"], "inconclusive");
    assert!(said.stdout.contains("would be regression"), "{said}");
}
