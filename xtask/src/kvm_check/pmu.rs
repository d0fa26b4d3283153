use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{KERNEL, counts, kduel};
use crate::build::Profile;
use crate::shell::{self, Tool};

/// Of which all that is done is timed, so that the PMU, which sees everything, sees the same.
const WORKLOADS: [&str; 10] = [
    "fork-exit",
    "fork-exec",
    "fork-shell",
    "syscall:call=getppid",
    "pipe-roundtrip:bytes=1",
    "context-switch",
    "mmap-munmap",
    "socket-roundtrip:kind=unix",
    "clone-join",
    "event:kind=eventfd",
];

/// Instructions of the guest's kernel, counted by the host's PMU only while the guest executes.
const EVENT: &str = "instructions:Gk";

/// Other paths for another CPU are allowed that much.
const TOLERATED: f64 = 0.10;

const SHORT: u32 = 10;
const LONG: u32 = 60;

/// Shows both for each workload; an error if they are further apart than is tolerated.
pub fn compare() -> Result<()> {
    ensure!(
        shell::find_program("perf").is_some(),
        "perf is not there: sudo apt install linux-perf"
    );
    eprintln!("{:<28} {:>12} {:>12} {:>8}", "kernel instructions per op", "exact", "PMU", "apart");
    let mut apart = Vec::new();
    for workload in WORKLOADS {
        let (exact, pmu) = (exact(workload)?, by_pmu(workload)?);
        let change = pmu / exact - 1.0;
        eprintln!("{workload:<28} {exact:>12.1} {pmu:>12.1} {:>+7.1} %", change * 100.0);
        if change.abs() > TOLERATED {
            apart.push(workload);
        }
    }
    if !apart.is_empty() {
        bail!("further apart than {:.0} %: {}", TOLERATED * 100.0, apart.join(", "));
    }
    Ok(())
}

/// The base's words for both kinds of runs: without mitigations, which depend on the CPU.
fn words(workload: &str) -> [String; 10] {
    let kernel = KERNEL.to_owned();
    let word = |word: &str| word.to_owned();
    [
        word("run"),
        word("-a"),
        kernel.clone(),
        word("-b"),
        kernel,
        word("--aa"),
        word("--append"),
        word("mitigations=off"),
        word("-w"),
        word(workload),
    ]
}

fn exact(workload: &str) -> Result<f64> {
    let state = tempfile::tempdir().context("failed to create a folder for runs")?;
    kduel(&[])
        .args(words(workload))
        .args(["--measure", "instructions", "--json"])
        .env("KDUEL_STATE_DIR", state.path())
        .output()?;
    counts::exact_per_op(&journal(state.path())?)
}

fn by_pmu(workload: &str) -> Result<f64> {
    counts::per_op(watched(workload, SHORT)?, watched(workload, LONG)?)
}

/// One pair with so many iterations in each boot: operations, and instructions of the guests' kernels.
fn watched(workload: &str, iterations: u32) -> Result<(f64, f64)> {
    let state = tempfile::tempdir().context("failed to create a folder for runs")?;
    let said = state.path().join("perf");
    let (iterations, program) = (iterations.to_string(), Profile::Release.kduel());
    Tool::new("perf")
        .args(["stat", "-x,", "-e", EVENT, "-o"])
        .arg(&said)
        .arg("--")
        .arg(program)
        .args(words(workload))
        .args(["--accel", "kvm", "--anyway", "--fail-on", "never", "--pairs", "1", "--json"])
        .args(["--iterations", iterations.as_str()])
        .env("KDUEL_STATE_DIR", state.path())
        .output()?;
    let text = fs::read_to_string(&said).context("perf left no counts")?;
    let ops = counts::ops(&journal(state.path())?);
    Ok((ops, counts::perf_count(&text, EVENT)?))
}

/// Of the only run in this state folder.
fn journal(state: &Path) -> Result<String> {
    let path = state.join("runs/last/journal.jsonl");
    fs::read_to_string(&path).with_context(|| format!("failed to read {}", path.display()))
}
