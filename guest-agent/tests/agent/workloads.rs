//! Every workload through the whole agent, on this very machine, as root or not.

use std::collections::BTreeMap;

use crate::common::{AGENT, plan, proven_events, run, trial};
use kduel_protocol::{Event, MARK_LENGTH, Mark, TrialProblem, TrialSpec, WORKLOADS};
use serde_json::json;

/// Small ones of every workload, and every choice of every parameter.
fn trials() -> Vec<TrialSpec> {
    let mut small = Vec::new();
    let mut add = |workload, params| small.push(trial(0, workload, params));
    add("kernbench", json!({"size": "tiny", "jobs": 0, "tree": "image"}));
    for name in ["fork-exec", "fork-shell", "futex-wake", "clone-join"] {
        add(name, json!({}));
    }
    for mappings in [0, 1001] {
        add("fork-exit", json!({ "mappings": mappings }));
    }
    for kind in ["eventfd", "epoll", "signal", "timer"] {
        add("event", json!({ "kind": kind }));
    }
    for op in ["brk", "madvise", "mprotect"] {
        add("memory", json!({ "op": op }));
    }
    for op in ["create", "unlink", "rename"] {
        add("file", json!({ "op": op }));
    }
    for kind in ["unix", "tcp", "udp"] {
        add("socket-roundtrip", json!({ "kind": kind, "bytes": 64 }));
    }
    add("sleep", json!({ "interval": 100_000 }));
    for call in ["getppid", "read-1", "read-4k", "write-1", "write-4k", "open-close", "stat"] {
        add("syscall", json!({ "call": call }));
    }
    for bytes in [1, 65536] {
        add("pipe-roundtrip", json!({ "bytes": bytes }));
    }
    for tasks in [2, 7] {
        add("context-switch", json!({ "tasks": tasks }));
    }
    for kind in ["anonymous", "huge", "file", "copy-on-write"] {
        add("page-fault", json!({ "kind": kind }));
    }
    add("mmap-munmap", json!({ "bytes": 65536 }));
    add("cgroup-exec", json!({ "interval": 1_000_000, "moves": 2 }));
    for mode in ["process", "thread"] {
        for channel in ["socket", "pipe"] {
            let params = json!({
                "groups": 2, "fds": 3, "loops": 5, "bytes": 100, "mode": mode, "channel": channel,
            });
            add("hackbench", params);
        }
    }
    for mode in ["thread", "process"] {
        let params = json!({ "rooms": 2, "clients": 3, "messages": 5, "bytes": 64, "mode": mode });
        add("chat", params);
    }
    add("command", json!({ "repeat": 2 }));
    for (id, trial) in (1..).zip(&mut small) {
        trial.id = id;
        if trial.workload == "command" {
            trial.command = Some(serde_json::from_value(json!({ "argv": ["true"] })).unwrap());
        }
    }
    small
}

/// Values by trial and metric, in the order of their iterations.
fn samples(events: &[Event]) -> BTreeMap<(u32, String), Vec<f64>> {
    let mut samples: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for event in events {
        if let Event::Sample(sample) = event {
            let values = samples.entry((sample.trial, sample.metric.clone())).or_default();
            assert_eq!(u32::try_from(values.len()).unwrap(), sample.iteration);
            assert!(sample.ops > 0, "{sample:?}");
            values.push(sample.value);
        }
    }
    samples
}

/// Trials by id that ended with a problem.
fn problems(events: &[Event]) -> BTreeMap<u32, TrialProblem> {
    let problem = |event: &Event| match event {
        Event::TrialEnd { trial, problem: Some(problem) } => Some((*trial, problem.clone())),
        _ => None,
    };
    events.iter().filter_map(problem).collect()
}

#[test]
fn every_workload_gives_its_metrics() {
    let trials = trials();
    let tried: Vec<&str> = trials.iter().map(|trial| trial.workload.as_str()).collect();
    for info in WORKLOADS {
        assert!(tried.contains(&info.name), "{} is not tried", info.name);
    }
    let events = proven_events(&run(&plan(trials.clone())));
    let (samples, mut problems) = (samples(&events), problems(&events));
    for trial in &trials {
        let what = format!("{} {:?}", trial.workload, trial.params);
        // One needs rights, the other an image.
        if ["cgroup-exec", "kernbench"].contains(&trial.workload.as_str())
            && let Some(problem) = problems.remove(&trial.id)
        {
            println!("skipped {what}: {problem:?}");
            assert!(matches!(problem, TrialProblem::Unsupported { .. }), "{what}: {problem:?}");
            continue;
        }
        let info = kduel_protocol::workload(&trial.workload).unwrap();
        for metric in info.metrics {
            let values = &samples[&(trial.id, metric.name.to_owned())];
            assert_eq!(values.len(), 2, "{what}");
            assert!(values.iter().all(|value| *value > 0.0), "{what}: {values:?}");
        }
    }
    assert_eq!(problems, BTreeMap::new());
    let monitored = events.iter().filter(|event| matches!(event, Event::Monitored { .. }));
    assert!(monitored.count() >= trials.len() - 2);
}

#[test]
fn the_marks_are_in_the_program() {
    let program = std::fs::read(AGENT).unwrap();
    for mark in [Mark::Begin, Mark::End] {
        assert!(program.windows(MARK_LENGTH).any(|bytes| bytes == mark.bytes()), "{mark:?}");
    }
}

#[test]
fn a_command_without_metrics_gives_what_the_system_counted() {
    let mut spec = trial(1, "command", json!({ "repeat": 3 }));
    let line = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    spec.command = Some(serde_json::from_value(json!({ "argv": ["sh", "-c", line] })).unwrap());
    let samples = samples(&proven_events(&run(&plan(vec![spec]))));
    let names: Vec<&str> = samples.keys().map(|(_, metric)| metric.as_str()).collect();
    assert_eq!(names, ["context-switches", "system-time", "time", "user-time"]);
    let first = |name: &str| samples[&(1, name.to_owned())][0];
    let used_ns = first("user-time") + first("system-time");
    assert!(used_ns > 1e6 && used_ns < 2.0 * first("time"), "{samples:?}");
}

#[test]
fn a_command_is_given_its_place_and_its_metrics_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let note = |word: &str| format!("echo {word}-$WORD >> {}", log.display());
    let line = "echo rate: 1; echo rate: $(($(nice) + $#)) \"$(grep Cpus_allowed_list /proc/self/status)\"";
    let mut spec = trial(1, "command", json!({ "repeat": 1 }));
    spec.command = Some(
        serde_json::from_value(json!({
            "argv": ["sh", "-c", line, "name", "one", "two"], "env": ["WORD=x"], "nice": 7, "cpus": "0",
            "setup": [note("setup")], "teardown": [note("teardown")],
            "metrics": [
                { "name": "rate", "unit": "1/s", "better": "higher", "source": { "regex": "rate: (\\d+)" } },
                { "name": "cpu", "unit": "n", "better": "lower", "source": { "regex": "list:\\s*(\\d+)" } },
            ],
        }))
        .unwrap(),
    );
    let events = proven_events(&run(&plan(vec![spec])));
    assert_eq!(problems(&events), BTreeMap::new());
    let samples = samples(&events);
    assert_eq!(samples[&(1, "rate".to_owned())], [9.0, 9.0]);
    assert_eq!(samples[&(1, "cpu".to_owned())], [0.0, 0.0]);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "setup-x\nteardown-x\n");
}

#[test]
fn a_failing_command_is_the_workloads_fault_and_the_next_trial_goes_on() {
    let command = |id, argv: &[&str]| {
        let mut spec = trial(id, "command", json!({ "repeat": 1 }));
        spec.command = Some(serde_json::from_value(json!({ "argv": argv })).unwrap());
        spec
    };
    let plan = plan(vec![
        command(1, &["sh", "-c", "echo reason >&2; exit 3"]),
        command(2, &["sh", "-c", "kill -9 $$"]),
        command(3, &["./surely-not-there"]),
        command(4, &["true"]),
    ]);
    let events = proven_events(&run(&plan));
    let problems = problems(&events);
    for (id, words) in [(1, "exit status 3\nreason"), (2, "signal 9"), (3, "No such file")] {
        let TrialProblem::Failed { message } = &problems[&id] else { panic!("{problems:?}") };
        assert!(message.contains(words), "{message}");
    }
    assert!(!problems.contains_key(&4));
}
