use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::build::Profile;
use crate::shell::Tool;

/// As kduel names them; the first run has none.
const MONITORS: [&str; 8] =
    ["vmstat", "interrupts", "schedstat", "psi", "rusage", "perf-stat", "profile", "dmesg"];

const WORKLOADS: &str = "[fork-exit, { hackbench: { groups: 2, fds: 4, loops: 400 } }]";

/// Work of one workload, per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The workload with its parameters.
    pub workload: String,
    /// Instructions of its own tasks.
    pub own: f64,
    /// Instructions of everybody.
    pub all: f64,
}

/// One exact run of both workloads beside these monitors, on Debian's 6.1. The sides are the same:
/// the second is not looked at.
pub fn work(monitors: &[&str]) -> Result<Vec<Work>> {
    let state = tempfile::tempdir().context("failed to create a folder for kduel's runs")?;
    let document = state.path().join("kernels.yaml");
    let text = format!(
        "version: 1\nexperiments:\n  cost:\n    sides: {{ a: debian:bookworm, b: debian:bookworm }}\n    \
         aa: true\n    measure: instructions\n    workloads: {WORKLOADS}\n    monitors: [{}]\n",
        monitors.join(", ")
    );
    fs::write(&document, text)
        .with_context(|| format!("failed to write {}", document.display()))?;
    let json = Tool::new(Profile::Release.kduel())
        .args(["run", "--json"])
        .env("KDUEL_STATE_DIR", state.path())
        .in_folder(state.path())
        .output()?;
    read(&json).with_context(|| format!("failed to read the report of {}", shown(state.path())))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The base's instructions of every comparison, and what its contexts come to.
fn read(json: &str) -> Result<Vec<Work>> {
    let report: Value = serde_json::from_str(json)?;
    let comparisons = report["comparisons"].as_array().context("there are no comparisons")?;
    let of = |one: &Value| {
        let contexts = one["work"]["contexts"].as_array()?;
        let all = contexts.iter().filter_map(|context| context["base"].as_f64()).sum();
        let workload = one["workload"].as_str()?.to_owned();
        Some(Work { workload, own: one["base"].as_f64()?, all })
    };
    let own = comparisons.iter().filter(|one| one["metric"] == "instructions");
    own.map(|one| of(one).context("a comparison has no counts")).collect()
}

/// Runs without any, then with each; prints what each adds.
#[expect(clippy::print_stdout, reason = "this is the result")]
pub fn table() -> Result<()> {
    eprintln!("without any monitor");
    let without = work(&[])?;
    println!("instructions per operation, exact, Debian 6.1; + is what the monitor adds");
    for one in &without {
        println!("{:<40} {:<12} {:>14.0} own {:>14.0} all", one.workload, "none", one.own, one.all);
    }
    for monitor in MONITORS {
        eprintln!("with {monitor}");
        for (with, one) in work(&[monitor])?.iter().zip(&without) {
            let (own, all) = (with.own - one.own, with.all - one.all);
            let share = own / one.own * 100.0;
            println!(
                "{:<40} {monitor:<12} {own:>+14.1} own {all:>+14.1} all  {share:+.3} % of own",
                one.workload
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_and_all_are_read_per_operation() {
        let json = r#"{"comparisons":[{"workload":"fork-exit","metric":"instructions","base":100.0,
            "work":{"contexts":[{"name":"own","base":100.0,"value":1.0},{"name":"idle","base":7.0}]}}]}"#;
        let found = read(json).unwrap();
        assert_eq!(found, [Work { workload: "fork-exit".into(), own: 100.0, all: 107.0 }]);
        assert!(read("{}").is_err());
    }
}
