//! What the agent does when things go wrong: deadlines, leftovers, knobs, plans.

use crate::common::{agent_run, plan, proven_events, run, trial};
use kduel_protocol::{Event, GuestPlan, Settle, TrialProblem, TrialSpec};
use serde_json::json;

/// A trial of a shell command, after `setup`.
fn shell(line: &str, setup: &[&str]) -> TrialSpec {
    let mut spec = trial(1, "command", json!({ "repeat": 1 }));
    let command = json!({ "argv": ["sh", "-c", line], "setup": setup });
    spec.command = Some(serde_json::from_value(command).unwrap());
    spec
}

/// Whether some process has `word` on its command line.
fn is_running(word: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(word)
    })
}

#[test]
fn the_deadline_ends_a_trial_and_all_of_its_processes() {
    let seconds = format!("10{}", std::process::id());
    let daemon = format!("setsid sleep {seconds} >/dev/null 2>&1 &");
    let trial =
        TrialSpec { deadline_s: 1, ..shell(&format!("sleep {seconds} & wait"), &[&daemon]) };
    let events = proven_events(&run(&plan(vec![trial])));
    let [.., Event::TrialEnd { problem: Some(problem), .. }, Event::After(_)] = &events[..] else {
        panic!("{events:?}")
    };
    assert_eq!(*problem, TrialProblem::TimedOut { after_s: 1 });
    assert!(!is_running(&seconds));
}

#[test]
fn what_a_command_leaves_running_ends_with_its_trial() {
    let seconds = format!("20{}", std::process::id());
    let line = format!("setsid sleep {seconds} & setsid sleep {seconds} >/dev/null 2>&1 &");
    let events = proven_events(&run(&plan(vec![shell(&line, &[])])));
    let [.., Event::TrialEnd { problem: None, .. }, Event::After(after)] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(!after.clocksource.is_empty(), "{after:?}");
    assert!(!is_running(&seconds));
}

#[test]
fn a_long_iteration_is_no_silence() {
    let trial = TrialSpec { warmup: 0, iterations: 1, ..shell("sleep 5", &[]) };
    let events = proven_events(&run(&plan(vec![trial])));
    assert!(events.iter().any(|event| matches!(event, Event::Progress { done: 0, of: 1, .. })));
}

#[test]
fn a_knob_that_did_not_take_stops_before_the_trials() {
    let mut plan = plan(vec![trial(1, "fork-exit", json!({ "mappings": 0 }))]);
    plan.knobs.cmdline = vec!["kduel.surely-not=1".to_owned()];
    plan.knobs.setup = vec!["true".to_owned()];
    let events = proven_events(&run(&plan));
    let took: Vec<bool> = events
        .iter()
        .filter_map(|event| match event {
            Event::Knob(reading) => Some(reading.took),
            _ => None,
        })
        .collect();
    assert_eq!(took, [false, true], "every knob is reported");
    assert!(!events.iter().any(|event| matches!(event, Event::TrialBegin { .. })));
}

#[test]
fn settling_is_reported() {
    let plan = GuestPlan { settle: Settle::first_quiet_second(1), ..plan(Vec::new()) };
    let events = proven_events(&run(&plan));
    let Some(Event::Settled { waited_ms, .. }) =
        events.iter().find(|event| matches!(event, Event::Settled { .. }))
    else {
        panic!("{events:?}")
    };
    assert!((900..5000).contains(waited_ms), "{waited_ms}");
}

#[test]
fn a_workload_that_is_not_known_is_unsupported() {
    let events = proven_events(&run(&plan(vec![trial(1, "no-such-workload", json!({}))])));
    let problem = events.iter().find_map(|event| match event {
        Event::TrialEnd { problem, .. } => problem.as_ref(),
        _ => None,
    });
    assert!(matches!(problem, Some(TrialProblem::Unsupported { .. })), "{events:?}");
}

#[test]
fn without_a_readable_plan_there_is_no_end_marker() {
    for plan in ["/nowhere/plan.json", "/proc/self/cmdline"] {
        let output = agent_run(plan.as_ref());
        let text = String::from_utf8(output.stdout).unwrap();
        let last = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert!(matches!(last, Event::Failed { .. }), "{text}");
        assert!(!output.status.success());
    }
}
