//! What it brings to boot both guests of a pair at once.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::build::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::Tool;

const WORKLOADS: &str = "fork-exit,pipe-roundtrip,context-switch";

/// Compares Debian's 6.1 with itself, one guest after the other and both at once, in turn: `rounds`
/// runs of `pairs` each. Prints how far pairs spread.
pub fn pairing(rounds: usize, pairs: usize) -> Result<()> {
    setup::setup(Purpose::Running, false)?;
    build::build(Profile::Release)?;
    show("pairing", "workload", ["sd of pairs", "shuffled", "steal"].map(str::to_owned));
    for _ in 0..rounds {
        for pairing in ["interleave", "duet"] {
            for comparison in comparisons(pairing, pairs)? {
                let workload = comparison["workload"].as_str().unwrap_or("?");
                let timed = &comparison["timed"];
                let percent = |name: &str| {
                    let value = timed[name].as_f64();
                    value.map_or_else(|| "-".to_owned(), |part| format!("{:.2} %", part * 100.0))
                };
                show(pairing, workload, ["pair-sd", "shuffled-sd", "steal"].map(percent));
            }
        }
    }
    Ok(())
}

fn comparisons(pairing: &str, pairs: usize) -> Result<Vec<Value>> {
    let state = tempfile::tempdir().context("failed to create a folder for kduel's runs")?;
    let json = Tool::new(Profile::Release.kduel())
        .args(["run", "-a", "debian:bookworm", "--aa", "-b", "debian:bookworm", "--json"])
        .args(["--accel", "tcg", "--overcommit", "-w", WORKLOADS])
        .args(["--pairing", pairing, "--pairs", &pairs.to_string()])
        .env("KDUEL_STATE_DIR", state.path())
        .in_folder(state.path())
        .output()?;
    let report: Value = serde_json::from_str(&json).context("kduel's report is no JSON")?;
    Ok(report["comparisons"].as_array().cloned().unwrap_or_default())
}

#[expect(clippy::print_stdout, reason = "this is the result")]
fn show(pairing: &str, workload: &str, cells: [String; 3]) {
    println!("{pairing:<12}{workload:<18}{:>12}{:>10}{:>9}", cells[0], cells[1], cells[2]);
}
