//! Runs the agent as the orchestrator would and checks what it says.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use kduel_protocol::{Event, GuestPlan, PROTOCOL, Transcript, TrialSpec};
use serde_json::json;

/// The program under test.
pub const AGENT: &str = env!("CARGO_BIN_EXE_kduel-agent");

/// A trial of two kept iterations, as short as they come.
pub fn trial(id: u32, workload: &str, params: serde_json::Value) -> TrialSpec {
    let spec = json!({
        "id": id, "workload": workload, "params": params, "warmup": 1, "iterations": 2,
        "min-interval-ns": 1_000_000, "deadline-s": 60,
    });
    serde_json::from_value(spec).unwrap()
}

/// A plan without knobs or settling.
pub fn plan(trials: Vec<TrialSpec>) -> GuestPlan {
    let plan = json!({
        "protocol": PROTOCOL, "nonce": "n0nce", "knobs": {},
        "settle": { "quiet-s": 1, "at-least-s": 0, "at-most-s": 0 }, "trials": [], "monitors": ["vmstat"],
    });
    GuestPlan { trials, ..serde_json::from_value(plan).unwrap() }
}

/// Carries a plan out.
pub fn run(plan: &GuestPlan) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.json");
    std::fs::write(&path, serde_json::to_string(plan).unwrap()).unwrap();
    agent_run(&path)
}

/// `kduel-agent run PATH`.
pub fn agent_run(path: &Path) -> Output {
    Command::new(AGENT).arg("run").arg(path).stdin(Stdio::null()).output().unwrap()
}

/// Reads the lines back; proves them by the end marker, which is left out.
pub fn proven_events(output: &Output) -> Vec<Event> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let last = lines.pop().unwrap();
    let Ok(Event::End(end)) = serde_json::from_str(last) else { panic!("no end marker: {last}") };
    let mut transcript = Transcript::default();
    let mut events = Vec::new();
    for line in lines {
        let event: Event = serde_json::from_str(line).unwrap();
        transcript.add(line, matches!(event, Event::Sample(_)));
        events.push(event);
    }
    transcript.check(&end, "n0nce").unwrap();
    assert!(output.status.success(), "{output:?}");
    events
}
