//! What an agent says is believed only as far as its end marker proves, and never shown raw.

use kduel_tests::{AD_HOC, Said, Sandbox};

fn tampered(tamper: &str) -> Said {
    let script = format!("boots: [{{side: b, tamper: [{{do: {tamper}}}]}}]");
    Sandbox::new().ad_hoc(&script, &[]).is_plain_text()
}

#[test]
fn output_that_is_not_whole_is_the_workloads_fault_and_no_result() {
    for (tamper, words) in [
        ("truncate, line: -1", "agent output is cut off"),
        ("truncate, line: 0", "agent output is cut off"),
        ("truncate, line: 7", "agent output is cut off"),
        ("cut, line: 5", "agent output is malformed"),
        ("cut, line: -1", "agent output is malformed"),
        ("drop, line: 0", "the first line is no greeting"),
        ("drop, line: 9", "18 lines with 5 samples were sent"),
        ("duplicate, line: 9", "18 lines with 5 samples were sent"),
        ("duplicate, line: -1", "a line after the end marker"),
        ("swap, line: 8", "the checksum does not fit"),
        ("oversize, line: 5", "agent output is too long"),
        ("garble, line: 5", "no UTF-8"),
        ("replace, line: 6, with: not json", "agent output is malformed"),
        ("replace, line: 6, with: ''", "agent output is malformed"),
        (
            "replace, line: 0, with: '{\"event\":\"hello\",\"protocol\":99,\"agent\":\"x\"}'",
            "speaks protocol 99",
        ),
        (
            "replace, line: 6, with: '{\"event\":\"trial-begin\",\"trial\":99}'",
            "a trial that is not in the plan",
        ),
    ] {
        tampered(tamper).ends_with(69).reports(&["verdict: invalid", words, "fault: workload"]);
    }
}

#[test]
fn a_flood_is_cut_off_where_memory_is_bounded() {
    let said = tampered("flood, line: 5").ends_with(69).reports(&["fault: workload"]);
    assert!(said.stdout.len() + said.stderr.len() < 20_000, "a flood in the report: {said}");
}

#[test]
fn escapes_and_bidirectional_marks_of_a_guest_reach_no_terminal() {
    let evil = "\\e[2J\\e]0;title\\a\\u202e\\u2066\\x7f\\x9b31m\\r";
    for (script, shown) in [
        (format!("sides: {{b: {{facts: {{release: \"6.1 {evil}\", build-id: \"{evil}\"}}}}}}"), 0),
        (format!("boots: [{{side: b, agent-failed: \"{evil}\"}}]"), 69),
        (
            format!(
                "boots: [{{side: b, console: [\"{evil}\"], boot-failure: {{class: panic, title: \"{evil}\", details: [\"{evil}\"], hint: \"{evil}\", console-tail: [\"{evil}\"]}}}}]"
            ),
            5,
        ),
        (format!("boots: [{{side: b, signal: \"{evil}\"}}]"), 69),
        (format!("boots: [{{side: b, tamper: [{{do: replace, line: 4, with: \"{evil}\"}}]}}]"), 69),
        (
            format!(
                "boots: [{{side: b, problems: [{{workload: fork-exit, problem: {{kind: failed, message: \"{evil}\"}}}}]}}]"
            ),
            69,
        ),
    ] {
        for more in [&["-v", "--console", "b"][..], &[]] {
            let said = Sandbox::new().ad_hoc(&script, more).is_plain_text().ends_with(shown);
            assert!((said.stdout + &said.stderr).contains("\\x1b[2J"), "{script}");
        }
        let sandbox = Sandbox::new();
        let said = sandbox.ad_hoc(&script, &["--json"]).ends_with(shown);
        let _: serde_json::Value = serde_json::from_str(&said.stdout).expect("a JSON document");
        assert!(!said.stdout.contains('\x1b'), "{said}");
        sandbox.says(&["report"]).is_plain_text();
        sandbox.says(&["runs"]).is_plain_text();
    }
}

#[test]
fn an_agent_that_ends_badly_proves_nothing() {
    for (boot, words) in [
        ("status: 3", "the agent ended with exit status 3"),
        ("signal: KILL", "the agent was ended by signal KILL"),
        ("agent-failed: no plan", "no plan"),
    ] {
        let script = format!("boots: [{{side: b, {boot}}}]");
        Sandbox::new().ad_hoc(&script, &[]).ends_with(69).reports(&["workload failed", words]);
    }
}

#[test]
fn a_trial_that_gives_up_says_why() {
    for (problem, words) in [
        (
            "{kind: failed, message: exit status 3}",
            "workload failed in 2 of 2 boots (fault: workload): exit status 3",
        ),
        (
            "{kind: unsupported, message: no cgroup2}",
            "kernel lacks what the workload needs: no cgroup2",
        ),
        ("{kind: timed-out, after-s: 5}", "not finished after 5 s"),
    ] {
        let script = format!(
            "boots: [{{side: b, problems: [{{workload: fork-exit, problem: {problem}}}]}}]"
        );
        Sandbox::new().ad_hoc(&script, &[]).ends_with(69).reports(&["verdict: invalid", words]);
    }
}

#[test]
fn one_workload_that_fails_leaves_the_others_their_verdicts() {
    let script = "
sides: {b: {factor: {all: 2}}}
boots: [{side: b, problems: [{workload: hackbench, problem: {kind: failed, message: no fds}}]}]";
    let sandbox = Sandbox::new();
    let said = Said::by(sandbox.fake(script, &AD_HOC).args(["-w", "hackbench", "--quick"]));
    said.ends_with(1).reports(&["b is slower by ~100.0 %", "hackbench: workload failed", "no fds"]);
}

#[test]
fn numbers_that_are_none_or_have_no_ratio_are_invalid_never_a_verdict() {
    for (value, words) in [
        (".nan", "agent output is malformed"),
        (".inf", "agent output is malformed"),
        ("0", "a value of 0 has no ratio"),
        ("-5", "a value of -5 has no ratio"),
    ] {
        let script = format!("sides: {{b: {{samples: {{fork-exit: {{time: [{value}]}}}}}}}}");
        let said = Sandbox::new().ad_hoc(&script, &[]).ends_with(69);
        said.reports(&["verdict: invalid", words]);
    }
}

#[test]
fn absurd_but_finite_numbers_stay_readable() {
    for value in ["1e300", "1e-300"] {
        let script = format!("sides: {{b: {{samples: {{fork-exit: {{time: [{value}]}}}}}}}}");
        let said = Sandbox::new().ad_hoc(&script, &[]);
        let broken = said.stdout.lines().filter(|line| !line.starts_with("again: "));
        let longest = broken.map(|line| line.chars().count()).max();
        assert!(longest.is_some_and(|longest| longest <= 100), "{said}");
    }
}

#[test]
fn knobs_that_did_not_take_are_named_with_side_wanted_and_found() {
    let document = "
version: 1
experiments:
  knobs:
    pairs: 2
    sides:
      base: debian:bookworm
      tuned: { kernel: debian:bookworm, sysctl: { kernel.sched_a: 7 }, cmdline: [quiet] }
    workloads: [fork-exit]
";
    let script = "boots: [{side: tuned, knobs-not-taken: [kernel.sched_a]}]";
    let said = Sandbox::new().run_document(document, script, &[]).ends_with(2).tells(&[
        "side tuned: a knob did not take",
        "sysctl kernel.sched_a: wanted `7`, found `something else`",
        "kduel shell SIDE",
    ]);
    assert_eq!(said.stderr.matches("found `something else`").count(), 1, "told twice: {said}");
}

#[test]
fn a_guest_that_sees_another_topology_is_told_as_a_table() {
    let sandbox = Sandbox::new();
    let script = "sides: {b: {facts: {cpus: 1}}}";
    let said = Said::by(sandbox.fake(script, &AD_HOC).args(["--quick", "--topology", "2s4c"]));
    let rows = ["  wanted  found\n", "  online CPUs  0-7     0\n", "  sockets      2       1\n"];
    said.ends_with(69).tells(&["guest sees another topology"]).tells(&rows);
}
