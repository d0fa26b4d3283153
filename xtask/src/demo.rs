//! `cargo xtask demo`: from a fresh clone to a report on real kernels.

use std::process::ExitStatus;

use anyhow::{Result, bail};

use crate::build::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::{self, Tool};
use crate::steps::Steps;
use crate::workspace;

/// Sets up, builds, fetches the kernels, runs the experiment `demo`, and says where the report is.
pub fn demo() -> Result<()> {
    eprintln!(
        "This boots three kernels side by side (Debian's 6.1, its 6.12, and 6.1 with a cgroup option),\n\
         counts what two benchmarks execute in each, and reports how they compare."
    );
    let mut steps = Steps::default();
    let outcome = demo_steps(&mut steps);
    eprintln!("\n{}", steps.summary());
    eprintln!("{}", outcome?);
    Ok(())
}

fn demo_steps(steps: &mut Steps) -> Result<&'static str> {
    steps.run("set-up", || setup::setup(Purpose::Running, false))?;
    steps.run("build", || build::build(Profile::Release))?;
    steps
        .run("fetch kernels", || kduel(&["kernels", "fetch", "debian-6.1", "debian-6.12"]).run())?;
    let status = steps.run("guests", || kduel(&["run", "demo"]).status())?;
    let sentence = outcome(status)?;
    say_where_the_report_is()?;
    Ok(sentence)
}

fn kduel(arguments: &[&str]) -> Tool {
    Tool::new(Profile::Release.kduel()).args(arguments).in_folder(&workspace::root())
}

/// Whatever the verdict, the demo did what it shows; everything else is a failure of it.
fn outcome(status: ExitStatus) -> Result<&'static str> {
    match status.code() {
        Some(0) => Ok("The demo is done: no side does more work than the base."),
        Some(1) => {
            Ok("The demo is done: a side does more work than the base (kduel's exit code 1).")
        }
        Some(5) => {
            bail!("a kernel of the demo did not boot or crashed; its console is shown above")
        }
        _ => bail!("kduel ended with {status}"),
    }
}

fn say_where_the_report_is() -> Result<()> {
    let runs = workspace::state_folder()?.join("runs");
    let words = [Profile::Release.kduel().to_string_lossy().into_owned(), "report".to_owned()];
    let again = shell::shell_line(words.iter().map(String::as_str));
    eprintln!("\nThe run with its report is kept in {}", runs.join("last").display());
    eprintln!("The report again: {again}");
    let timed = [words[0].as_str(), "run", "fork", "--quick"];
    eprintln!("How long it takes, not how much: {}", shell::shell_line(timed));
    Ok(())
}
