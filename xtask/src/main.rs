//! `cargo xtask`: set-up, build, demo, tests and benchmarks of kduel.

mod bench;
mod build;
mod case;
mod demo;
mod elf;
mod kvm_check;
mod setup;
mod shell;
mod steps;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use crate::build::Profile;
use crate::setup::Purpose;

/// Set-up, build, demo, tests and benchmarks of kduel.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what is missing on this machine
    Setup {
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Build kduel and its static agent
    Build {
        /// With optimisation (the default)
        #[arg(long, conflicts_with = "debug")]
        release: bool,
        /// Without optimisation
        #[arg(long)]
        debug: bool,
    },
    /// Set up, build, and compare three kernels
    Demo,
    /// Set up, then format, lint, licences and all tests
    Test {
        /// Also the tests that take long (their names begin with `all_`)
        #[arg(long)]
        all: bool,
    },
    /// Check what only a host can show on which KVM works (docs/kvm-checklist.md)
    KvmCheck,
    /// Measure kduel itself
    Bench {
        /// What
        what: Bench,
        /// Boots of each
        #[arg(long, default_value_t = 5)]
        boots: usize,
        /// Simulated runs a row of the method's table
        #[arg(long, default_value_t = 10_000)]
        campaigns: usize,
        /// Samples of the large run
        #[arg(long, default_value_t = 1_000_000)]
        samples: usize,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Bench {
    /// From start to the first sample, beside virtme-ng running `uname -r`
    Boot,
    /// What the counting plugin costs in exact runs, and that no digit changes with it
    Plugin,
    /// Reading a large run, analysing it and writing every report: seconds and memory
    Analysis,
    /// The table of how timed runs are decided, simulated, beside what it must come to
    Method,
    /// How long a mailbox of 10 MB takes `kduel import`
    Import,
    /// How far pairs spread, one guest after the other and both at once
    Pairing,
    /// What each monitor costs in exact runs, in instructions per operation
    Monitors,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<()> {
    match task {
        Task::Setup { yes } => setup::setup(Purpose::Testing, !yes),
        Task::Build { release: _, debug: true } => build::build(Profile::Debug),
        Task::Build { .. } => build::build(Profile::Release),
        Task::Demo => demo::demo(),
        Task::Test { all } => test::test(all),
        Task::KvmCheck => kvm_check::kvm_check(),
        Task::Bench { what: Bench::Boot, boots, .. } => bench::boot(boots),
        Task::Bench { what: Bench::Plugin, boots, .. } => bench::plugin(boots),
        Task::Bench { what: Bench::Analysis, samples, .. } => bench::analysis(samples),
        Task::Bench { what: Bench::Method, campaigns, .. } => bench::method(campaigns),
        Task::Bench { what: Bench::Import, .. } => bench::import(),
        Task::Bench { what: Bench::Pairing, boots, .. } => bench::pairing(2, boots),
        Task::Bench { what: Bench::Monitors, .. } => bench::monitors(),
    }
}
