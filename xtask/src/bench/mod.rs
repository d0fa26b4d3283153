//! `cargo xtask bench`: how kduel itself does, beside others.

mod kduel;
mod monitors;
mod pairing;
mod summary;
mod virtme;

use anyhow::Result;

pub use self::pairing::pairing;
use self::summary::Summary;
use crate::build::{self, Profile};
use crate::setup::{self, Purpose};
use crate::shell::Tool;
use crate::workspace;

/// Boots kduel's 6.1 guest and virtme-ng's in turn, `boots` times each, two vCPUs, both emulated,
/// and compares the times to the first sample and to the answer of `uname -r`.
pub fn boot(boots: usize) -> Result<()> {
    setup::setup(Purpose::Running, false)?;
    build::build(Profile::Release)?;
    let virtme = virtme::Virtme::prepare()?;
    eprintln!("one boot of each beforehand, not counted: it fills caches");
    virtme.seconds_to_answer()?;
    kduel::seconds_to_first_sample()?;

    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for boot in 0..boots {
        eprintln!("boot {} of {boots}", boot + 1);
        // Whoever goes first changes, so that a drift of the host hits both alike.
        if boot % 2 == 0 {
            ours.extend(kduel::seconds_to_first_sample()?);
            theirs.push(virtme.seconds_to_answer()?);
        } else {
            theirs.push(virtme.seconds_to_answer()?);
            ours.extend(kduel::seconds_to_first_sample()?);
        }
    }
    show(&Summary::of(&ours)?, &Summary::of(&theirs)?);
    Ok(())
}

/// Boots sealed guests with the counting plugin and without, in turn, `boots` times each. Fails if
/// what they tell differs.
pub fn plugin(boots: usize) -> Result<()> {
    setup::setup(Purpose::Running, false)?;
    build::build(Profile::Release)?;
    let kduel = Profile::Release.kduel();
    let programs = kduel.parent().unwrap_or(&kduel).display().to_string();
    let example = ["run", "--release", "-p", "kduel-tests", "--example", "plugin", "--"];
    let boots = boots.to_string();
    Tool::cargo()
        .args(example)
        .args([programs.as_str(), &boots])
        .in_folder(&workspace::root())
        .run()
}

/// Simulates the table of the method with so many campaigns a row. An error if it is not met.
pub fn method(campaigns: usize) -> Result<()> {
    Tool::cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "kduel-stats",
            "--example",
            "method",
            "--",
        ])
        .arg(campaigns.to_string())
        .in_folder(&workspace::root())
        .run()
}

/// Makes a run of so many samples, reads it, analyses it and writes every report. An error if that
/// takes longer or more memory than it may.
pub fn analysis(samples: usize) -> Result<()> {
    let example = |words: &[&str]| {
        let build = ["run", "--quiet", "--release", "-p", "kduel-tests", "--example", "analysis"];
        Tool::cargo().args(build).arg("--").args(words).in_folder(&workspace::root())
    };
    let folder = tempfile::tempdir()?;
    let runs = folder.path().display().to_string();
    let run = example(&["make", &runs, &samples.to_string()]).output()?;
    example(&["measure", run.trim()]).run()
}

/// Imports a mailbox of 10 MB. An error if it takes too long.
pub fn import() -> Result<()> {
    Tool::cargo()
        .args(["run", "--quiet", "--release", "--package", "kduel", "--example", "import"])
        .in_folder(&workspace::root())
        .run()
}

/// Runs `fork-exit` and `hackbench` exactly, without and with each monitor, and prints what it adds.
pub fn monitors() -> Result<()> {
    setup::setup(Purpose::Running, false)?;
    build::build(Profile::Release)?;
    monitors::table()
}

#[expect(clippy::print_stdout, reason = "this is the result")]
fn show(ours: &Summary, theirs: &Summary) {
    println!("two vCPUs, Debian 6.1, emulated; seconds    boots     min  median     max");
    println!("kduel, start to first sample (cloud)     {ours}");
    println!("virtme-ng, start to `uname -r` (amd64)   {theirs}");
    println!("ratio of the medians                     {:.2}", ours.median / theirs.median);
}
