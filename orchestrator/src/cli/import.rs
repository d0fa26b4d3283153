//! `kduel import`: the tables of other people's reports.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args;

use super::{CliError, report};
use crate::collect::mail::{InputError, read};
use crate::collect::parse::import;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::report::{reported_json, reported_text};

/// `kduel import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Reads mails, mailboxes and plain files, quoted, encoded or wrapped as mailers do it, up to 64 MiB. Knows
lmbench, perf stat (for people, -x, and -j), perf bench, vmstat, kernbench, hackbench, readprofile and
diffprofile, MMTests, the %stddev tables of the kernel test robot, UnixBench, schbench, stress-ng, fio
and hyperfine (JSON), sysbench, KTAP and the shell's time. Outputs of one program are the sides of one
table, each named by the line above it, the first is the base. Every number keeps its line; what is in
no table is told by lines, and where a report's own percentages are not what its figures give, that is
marked. Nothing is sent anywhere.

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
    Ok(if imported.tables.is_empty() { exit_code::NOTHING_SELECTED } else { exit_code::DONE })
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
