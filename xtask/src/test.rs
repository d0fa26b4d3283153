//! `cargo xtask test`: everything that a change has to pass.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use xtask::leftovers;

use crate::build::{self, Profile};
use crate::case::Case;
use crate::setup::{self, Purpose};
use crate::shell::{self, Tool};
use crate::steps::Steps;
use crate::workspace;

/// Stops at the first step that fails. `all`: the long matrices as well.
pub fn test(all: bool) -> Result<()> {
    let mut steps = Steps::default();
    let mut summary = String::new();
    let outcome = test_steps(&mut steps, all, &mut summary);
    eprintln!("\n{}{summary}", steps.summary());
    outcome
}

fn test_steps(steps: &mut Steps, all: bool, summary: &mut String) -> Result<()> {
    steps.run("set-up", || setup::setup(Purpose::Testing, false))?;
    steps.run("format", || cargo(&["fmt", "--check"]).run())?;
    steps.run("lint", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()
    })?;
    steps.run("licences", || cargo(&["deny", "check", "bans", "licenses", "sources"]).run())?;
    steps.run("build", || build::build(Profile::Debug))?;
    steps.run("examples in documentation", || cargo(&["test", "--doc", "--workspace"]).run())?;

    let case = Case::TASK_CLASSES;
    if all {
        steps.run("kernels of cases", || case.build())?;
    }
    let skipped = (!all && !case.is_built()?).then(|| case.skipped());
    skipped.iter().for_each(|said| eprintln!("{said}"));

    leftovers::adopt_orphans().context("failed to become the parent of what tests leave")?;
    let outcome =
        steps.run("tests", || nextest(all)?.run_seeing(|line| keep_summary(line, summary)));
    // At the end as well, where it is seen.
    summary.extend(skipped);
    // A failed test is no excuse for a guest that is left.
    let clean = steps.run("nothing left", none_left);
    match (outcome, clean) {
        (Err(failed), Err(left)) => Err(anyhow!("{failed:#}\n       {left:#}")),
        (outcome, clean) => outcome.and(clean),
    }
}

fn cargo(arguments: &[&str]) -> Tool {
    Tool::cargo().args(arguments).in_folder(&workspace::root())
}

fn nextest(all: bool) -> Result<Tool> {
    let profile = if all { "all" } else { "ci" };
    let colour = if shell::coloured() { "always" } else { "never" };
    let words = ["nextest", "run", "--workspace", "--profile", profile, "--color", colour];
    // Tests run kduel in folders of their own, where a relative one would mean another.
    Ok(cargo(&words).env("KDUEL_CACHE_DIR", workspace::cache_folder()?))
}

fn keep_summary(line: &str, summary: &mut String) {
    if line.contains("Summary") && (line.contains(" tests run: ") || line.contains(" test run: ")) {
        line.clone_into(summary);
    }
}

/// Guests whose kduel was killed get a moment to follow it.
fn none_left() -> Result<()> {
    let mut left = leftovers::own_guests();
    for _ in 0..100 {
        if left.is_empty() {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(50));
        left = leftovers::own_guests();
    }
    let names: Vec<String> = left.iter().map(ToString::to_string).collect();
    bail!("guests are left running after the tests: {}", names.join(", "));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_kept_and_nothing_else() {
        let mut summary = String::new();
        keep_summary("        PASS [   0.004s] (1/9) xtask steps::tests::Summary", &mut summary);
        assert_eq!(summary, "");
        let line = "     Summary [   2.310s] 1 test run: 1 passed, 0 skipped";
        keep_summary(line, &mut summary);
        assert_eq!(summary, line);
    }
}
