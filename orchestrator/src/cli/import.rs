//! `kduel import`: the tables of other people's reports.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::talk::tell;
use super::{CliError, report};
use crate::collect::mail::{InputError, read};
use crate::collect::parse::{Imported, import};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::report::{reported_json, reported_text, skeleton};
use crate::text::escape;

/// `kduel import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads mails, mailboxes and plain files, quoted, encoded or wrapped as mailers do it, up to
32 MiB. Knows lmbench, perf stat (for people, -x, and -j), perf bench, vmstat, kernbench,
hackbench, readprofile and diffprofile, MMTests, the %stddev tables of the kernel test
robot, UnixBench, schbench, stress-ng, fio and hyperfine (JSON), sysbench, KTAP and the
shell's time. Outputs of one program are the sides of one table, each named by the line
above it, the first is the base. Every number keeps its line; what is in no table is told by
lines, and where a report's own percentages are not what its figures give, that is marked.
Nothing is sent anywhere.

Examples:
  kduel import report.mbox
  git show -s --format=%B HEAD | kduel import -
  kduel import report.mbox --json | jq '.tables[].rows[].changes'
  kduel import report.mbox --experiment report.yaml && kduel plan -f report.yaml

Exit codes: 0 a table was found, 4 none was.")]
pub struct ImportArgs {
    /// The mail, mailbox or file; - for standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
    /// Print it for programs: kduel-import/1
    #[arg(long)]
    json: bool,
    /// Write a document that would try it here, with the report's figures as claims
    #[arg(long, value_name = "FILE")]
    experiment: Option<PathBuf>,
    /// Show all rows of long tables
    #[arg(long)]
    all: bool,
}

/// Prints what was found.
///
/// # Errors
///
/// The input cannot be read, is too long or no text.
pub fn run(args: &ImportArgs) -> Result<u8, CliError> {
    let bytes = bytes(&args.file).map_err(failure)?;
    let imported = import(&bytes);
    drop(bytes);
    report::emit(&match args.json {
        true => reported_json(&imported),
        false => reported_text(&imported, args.all),
    })?;
    if let Some(path) = &args.experiment {
        write_experiment(path, &imported, &args.file)?;
    }
    Ok(if imported.tables.is_empty() { exit_code::NOTHING_SELECTED } else { exit_code::DONE })
}

/// A new file; what is there is never written over.
fn write_experiment(path: &Path, imported: &Imported, source: &Path) -> Result<(), CliError> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let name = source.file_name().map_or_else(|| "a report".into(), |name| name.to_string_lossy());
    let name = imported.subject.clone().unwrap_or_else(|| escape(&name));
    let text = skeleton(imported, &name, u32::try_from(cpus).unwrap_or(u32::MAX))
        .map_err(|why| CliError::NothingSelected(format!("no experiment is written: {why}")))?;
    let created = File::options().write(true).create_new(true).open(path);
    created
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::host_io("write", path, &error))?;
    tell(&format!("kduel: wrote {}: put the report's kernels into it", path.display()));
    Ok(())
}

fn bytes(file: &Path) -> Result<Vec<u8>, InputError> {
    if file == Path::new("-") {
        return read("standard input", std::io::stdin().lock());
    }
    let name = file.display().to_string();
    let open = File::open(file).map_err(|error| InputError::Read(name.clone(), error))?;
    read(&name, open)
}

fn failure(error: InputError) -> Failure {
    let class = match error {
        InputError::Read(..) => FailureClass::HostIo,
        _ => FailureClass::Usage,
    };
    let text = error.to_string();
    let (title, hint) = text.split_once("\n  hint: ").unwrap_or((&text, ""));
    let failure = Failure::new(class, title);
    if hint.is_empty() { failure } else { failure.hint(hint) }
}
