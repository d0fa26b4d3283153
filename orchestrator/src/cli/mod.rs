//! The command line: one file per subcommand.

mod accelerator;
mod add;
mod annotate;
pub mod args;
mod calibrate;
mod cases;
mod chains;
mod compare;
mod doctor;
mod error;
mod export;
mod images;
mod import;
mod kernels;
mod kernels_built;
mod logging;
mod page;
mod placement;
pub mod plan;
mod plan_images;
mod prepare;
mod profile;
mod report;
mod run;
mod runs;
mod shell;
mod sight;
mod signals;
mod sources;
mod talk;
mod trace;
mod tune;
mod verify;
mod watch;
mod workloads;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use clap::{CommandFactory, Parser, Subcommand};

use crate::boot::Accel;
use crate::collect::Calibrations;
use crate::config::{self, DEFAULT_DOCUMENT, Environment};
use crate::exit_code;
use crate::host::Qemu;
use crate::plan::{PlannedExperiment, PlannedSide};
use crate::run::nominal_command_line;

pub use error::CliError;

/// Boots two Linux kernels side by side and says which does better, by how much, and how sure that is.
#[derive(Debug, Parser)]
#[command(name = "kduel", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  kduel run -a debian:bookworm -b debian:trixie -w fork-exit
  kduel run -a debian:bookworm -b debian:trixie -- ./bench -n 1000
  kduel run                      every experiment of ./kernels.yaml
  kduel plan fork                what `kduel run fork` would do; touches nothing
  kduel report --format json     the latest run again

Exit codes: 0 done and no regression, 1 regression, 2 usage or document, 3 inconclusive (with
--strict), 4 nothing selected, 5 a kernel under test failed, 69 rig, 70 internal, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Compare kernels: from the document, or ad hoc with -a, -b and -w.
    Run(Box<run::RunCommand>),
    /// Print what `run` with the same arguments would do; touches nothing.
    #[command(after_help = args::RUN_EXAMPLES)]
    Plan(Box<args::RunArgs>),
    /// Say whether this host is fit, and which accelerator really works.
    Doctor(doctor::DoctorArgs),
    /// Change settings of this host that spoil measurements, and change them back.
    Tune(tune::TuneArgs),
    /// List, fetch, build, lock, compare and show kernels.
    Kernels(kernels::KernelsArgs),
    /// List, build, check and remove images: programs that guests do not have themselves.
    Images(images::ImagesArgs),
    /// List the workloads, or explain one.
    #[command(after_help = workloads::EXAMPLES)]
    Workloads(workloads::WorkloadsArgs),
    /// List, label and remove stored runs.
    Runs(runs::RunsArgs),
    /// Print the report of a stored run again.
    Report(report::ReportArgs),
    /// Compare sides of stored runs with each other.
    Compare(compare::CompareArgs),
    /// Write a run into one file that other commands take elsewhere.
    Export(export::ExportArgs),
    /// List the cases: reports of others as folders that `run` runs, and what came out.
    Cases(cases::CasesArgs),
    /// Show the executed code of a function with exact counts, both sides as a diff.
    Annotate(annotate::AnnotateArgs),
    /// Show one operation of a stored exact run call by call, both sides.
    Trace(trace::TraceArgs),
    /// Do a stored exact run again and compare every bit.
    Verify(verify::VerifyArgs),
    /// Add one more side to a stored exact run.
    Add(add::AddArgs),
    /// Read the tables of a report mail, compute its changes anew, write an experiment.
    Import(import::ImportArgs),
    /// Boot one guest of a side and log in.
    Shell(shell::ShellArgs),
    /// Print the JSON schema of what kduel writes.
    Schema {
        /// Of what.
        #[arg(value_enum)]
        of: Schema,
    },
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
}

impl Command {
    /// Whether it looks at this host or boots guests on it.
    fn measures(&self) -> bool {
        matches!(
            self,
            Self::Run(_) | Self::Doctor(_) | Self::Verify(_) | Self::Add(_) | Self::Shell(_)
        )
    }
}

/// What has a schema.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Schema {
    /// `--json` of `run`, `compare` and `add`, and `report --format json`
    Report,
}

/// Runs the command that the process was started with and gives its exit code.
pub fn main() -> u8 {
    let cli = Cli::parse();
    let environment = match Environment::read() {
        Ok(environment) => environment,
        Err(error) => {
            talk::tell(&format!("kduel: {error}"));
            return exit_code::RIG;
        }
    };
    if cli.command.measures() {
        tune::remind(&environment);
    }
    match dispatch(cli.command, &environment) {
        Ok(code) => code,
        Err(error) => {
            error.print(colour(&environment));
            error.exit_code()
        }
    }
}

/// Whether what is said on standard error may be coloured.
fn colour(environment: &Environment) -> bool {
    std::io::stderr().is_terminal() && !environment.no_color
}

fn dispatch(command: Command, environment: &Environment) -> Result<u8, CliError> {
    match command {
        Command::Run(args) => run::run(&args, environment),
        Command::Plan(args) => show_plan(&args, environment),
        Command::Doctor(args) => doctor::run(&args, environment),
        Command::Tune(args) => tune::run(&args, environment),
        Command::Kernels(args) => manage_kernels(&args, environment),
        Command::Images(args) => images::run(&args, environment),
        Command::Workloads(args) => {
            report::emit(&workloads::render(&args).map_err(CliError::Unknown)?)?;
            Ok(exit_code::DONE)
        }
        Command::Runs(args) => Ok(runs::run(&args, environment)?),
        Command::Report(args) => Ok(report::run(&args, environment)?),
        Command::Compare(args) => Ok(compare::run(&args, environment)?),
        Command::Export(args) => Ok(export::run(&args, environment)?),
        Command::Annotate(args) => annotate::run(&args, environment),
        Command::Trace(args) => trace::run(&args, environment),
        Command::Verify(args) => verify::run(&args, environment),
        Command::Add(args) => add::run(&args, environment),
        Command::Cases(args) => cases::run(&args, environment),
        Command::Import(args) => import::run(&args),
        Command::Shell(args) => shell::run(&args, environment),
        Command::Schema { of: Schema::Report } => {
            report::emit(crate::report::REPORT_SCHEMA)?;
            Ok(exit_code::DONE)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kduel", &mut script);
            report::emit(&String::from_utf8_lossy(&script))?;
            Ok(exit_code::DONE)
        }
        Command::Man => man(),
    }
}

fn show_plan(args: &args::RunArgs, environment: &Environment) -> Result<u8, CliError> {
    let (loaded, mut plan) = prepare::planned(args, environment)?;
    loaded.notes.iter().for_each(|note| talk::tell(note));
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path).ok();
    let accel = match &qemu {
        Some(qemu) => accelerator::likely_accel(args.accel, qemu, environment),
        None => Accel::Tcg,
    };
    Calibrations::load(&environment.calibration_file())?.enter(&mut plan, Path::new("/"), accel);
    let budget = args.budget.map(|seconds| Duration::from_secs(seconds.into()));
    let command_line = |experiment: &PlannedExperiment, side: &PlannedSide| match &qemu {
        Some(qemu) => nominal_command_line(qemu, experiment, side, accel),
        None => vec!["no QEMU was found: see `kduel doctor`".to_owned()],
    };
    let host = placement::this_host(environment);
    // What is refused is told where it is shown.
    let _ = placement::place_guests(&mut plan, &host, args.overcommit);
    report::emit(&plan::render(&plan, accel, budget, &host, &command_line))?;
    Ok(exit_code::DONE)
}

fn manage_kernels(args: &kernels::KernelsArgs, environment: &Environment) -> Result<u8, CliError> {
    let named = args.file.as_deref().unwrap_or_else(|| Path::new(DEFAULT_DOCUMENT));
    let document = environment.current_dir.join(named);
    let there = args.file.is_some() || document.is_file();
    let kernels = match there {
        true => config::load_kernels(args.file.as_deref(), environment)?,
        false => BTreeMap::new(),
    };
    let lock = there.then(|| document.with_file_name("kernels.lock"));
    let watcher = watch::Watcher::new(std::io::stderr().is_terminal(), Default::default());
    let context = kernels::KernelsContext {
        provisioner: &prepare::provisioner(environment, &watcher)?,
        parse: &|word| config::parse_spec(word, environment),
        kernels: &kernels,
        lock: lock.as_deref(),
    };
    let mut text = Vec::new();
    let code = kernels::run(args, &context, &mut text);
    watcher.finish();
    report::emit(&String::from_utf8_lossy(&text))?;
    Ok(code)
}

fn man() -> Result<u8, CliError> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(CliError::Output)?;
    report::emit(&String::from_utf8_lossy(&page))?;
    Ok(exit_code::DONE)
}
