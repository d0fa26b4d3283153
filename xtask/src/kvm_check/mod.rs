//! `cargo xtask kvm-check`: what can only be checked on a host where KVM works. `docs/kvm-checklist.md`
//! says what must come out.

mod counts;
mod pmu;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::build::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::Tool;
use crate::steps::Steps;

/// What is booted: any kernel will do, and this one is had everywhere.
const KERNEL: &str = "debian:bookworm";

/// Stops at the first thing that is not as it must be.
pub fn kvm_check() -> Result<()> {
    let mut steps = Steps::default();
    let outcome = check(&mut steps);
    eprintln!("\n{}", steps.summary());
    outcome
}

fn check(steps: &mut Steps) -> Result<()> {
    steps.run("set-up", || setup::setup(Purpose::Running, false))?;
    steps.run("build", || build::build(Profile::Release))?;
    kduel(&["kernels", "fetch", KERNEL]).run()?;
    steps.run("KVM boots a guest", boots)?;
    steps.run("a kernel equals itself", || equals_itself(&[]))?;
    steps.run("guests that idle by themselves", || equals_itself(&["--cpu-pm"]))?;
    match free_huge_pages(Path::new("/")) {
        0 => eprintln!(
            "\n==> huge pages: left out, the host keeps none; \
             echo 1024 | sudo tee /proc/sys/vm/nr_hugepages"
        ),
        _ => steps.run("guests in huge pages", || equals_itself(&["--huge-pages", "2M"]))?,
    }
    steps.run("exact counts beside the PMU's", pmu::compare)
}

fn kduel(words: &[&str]) -> Tool {
    Tool::new(Profile::Release.kduel()).args(words)
}

/// `doctor` finds out by booting; it fails if something else is missing, too.
fn boots() -> Result<()> {
    let found = json(&kduel(&["doctor", "--json"]).output()?)?;
    let accelerator = found.get("accelerator").and_then(Value::as_str).unwrap_or_default();
    ensure!(
        accelerator == "kvm",
        "timed runs here use {accelerator:?}, and it must be \"kvm\": `kduel doctor` says why"
    );
    Ok(())
}

/// Six pairs of a kernel with itself. Anything but a change is right.
fn equals_itself(more: &[&str]) -> Result<()> {
    let state = tempfile::tempdir().context("failed to create a folder for runs")?;
    let words =
        ["run", "-a", KERNEL, "-b", KERNEL, "--aa", "--accel", "kvm", "--quick", "--anyway"];
    let out = kduel(&words)
        .args(["--fail-on", "never", "-w", "syscall:call=getppid", "--json"])
        .args(more)
        .env("KDUEL_STATE_DIR", state.path())
        .output()?;
    let report = json(&out)?;
    let word = |key: &str| report.get(key).and_then(Value::as_str).unwrap_or("absent").to_owned();
    ensure!(word("accelerator") == "kvm", "executed by {}", word("accelerator"));
    match word("verdict").as_str() {
        verdict @ ("no-change" | "inconclusive") => {
            eprintln!("    verdict: {verdict}");
            Ok(())
        }
        verdict => bail!("verdict: {verdict}, of a kernel compared with itself"),
    }
}

fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("kduel did not print JSON")
}

fn free_huge_pages(root: &Path) -> u64 {
    let path = root.join("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}
