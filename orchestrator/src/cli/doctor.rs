//! `kduel doctor`: is this host fit, and which accelerator really works.

use std::path::PathBuf;

use serde::Serialize;

use super::{CliError, accelerator, prepare, report};
use crate::boot::Accel;
use crate::config::Environment;
use crate::exit_code;
use crate::host::accel::KvmState;
use crate::host::examine::{self, Finding, State};
use crate::host::files::HostFiles;
use crate::host::qemu::Qemu;
use crate::provision::GuestPrograms;

/// `kduel doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kduel doctor
  kduel doctor --json | jq '.checks[] | select(.state != \"good\")'

What the host does to measurements is good, fair, worse or BAD here; what matters with KVM only is moot
where guests are emulated. `kduel tune apply` changes some of it, as root, and `kduel tune undo` restores it.
Ends with 0 if timed runs are possible here, with 69 if something they need is missing.")]
pub struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Use this QEMU instead of the one in PATH.
    #[arg(long, value_name = "PATH")]
    qemu: Option<PathBuf>,
    /// Look at the host whose files are below this folder.
    #[arg(long, hide = true, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Findings {
    format: &'static str,
    accelerator: &'static str,
    checks: Vec<Finding>,
}

/// Looks and tells.
///
/// # Errors
///
/// Standard output is closed.
pub fn run(args: &DoctorArgs, environment: &Environment) -> Result<u8, CliError> {
    let (mut checks, accel) = tools(args, environment);
    checks.extend(examine::examine(&HostFiles::new(&args.root), accel));
    let missing = checks.iter().any(|check| check.state == State::Missing);
    let text = if args.json {
        let findings = Findings { format: "kduel-doctor/1", accelerator: accel.name(), checks };
        let mut text = serde_json::to_string_pretty(&findings)
            .map_err(|error| CliError::Output(error.into()))?;
        text.push('\n');
        text
    } else {
        let found = examine::render(&checks);
        format!("{found}\ntimed runs here use: {}\n", accel.name())
    };
    report::emit(&text)?;
    Ok(if missing { exit_code::RIG } else { exit_code::DONE })
}

/// What kduel itself needs, and what executes guests.
fn tools(args: &DoctorArgs, environment: &Environment) -> (Vec<Finding>, Accel) {
    let mut checks = Vec::new();
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path);
    match &qemu {
        Ok(qemu) => checks
            .push(Finding::good("QEMU", format!("{} at {}", qemu.version, qemu.program.display()))),
        Err(failure) => checks.push(Finding::missing("QEMU", &failure.title, failure.hint.clone())),
    }
    match prepare::find_agent(environment) {
        Ok(agent) => checks.push(Finding::good("agent", agent.display().to_string())),
        Err(failure) => {
            checks.push(Finding::missing("agent", &failure.title, failure.hint.clone()))
        }
    }
    checks.push(match (&qemu, prepare::find_plugin(environment)) {
        (Ok(qemu), Ok(_)) => {
            Finding::good("exact runs", format!("possible, with QEMU {}", qemu.version))
        }
        (Err(_), _) => Finding::missing("exact runs", "not possible without QEMU", None),
        (Ok(_), Err(failure)) => {
            Finding::missing("exact runs", &failure.title, failure.hint.clone())
        }
    });
    for (program, package, found) in [
        ("busybox", "busybox-static", GuestPrograms::find_busybox()),
        ("dropbear", "dropbear-bin", GuestPrograms::find_dropbear()),
    ] {
        checks.push(match found {
            Some(path) => Finding::good(program, path.display().to_string()),
            None => Finding::missing(program, "not found", Some(format!("apt install {package}"))),
        });
    }
    checks.push(match prepare::find_program("apt-get", environment) {
        Some(_) => Finding::good("apt", "kernels of Debian suites can be fetched".to_owned()),
        None => Finding::new(
            "apt",
            State::Worse,
            "not found: kernels of Debian suites cannot be fetched".to_owned(),
            Some("use a .deb file, a bzImage, a built tree or `host`".to_owned()),
        ),
    });
    let mut accel = Accel::Tcg;
    if let Ok(qemu) = &qemu {
        let (check, found) = accelerators(environment, qemu);
        checks.push(check);
        accel = found;
    }
    (checks, accel)
}

fn accelerators(environment: &Environment, qemu: &Qemu) -> (Finding, Accel) {
    let fix = "timed runs are emulated here: every number is marked, margins are wide";
    let slow =
        |found: String| Finding::new("accelerator", State::Worse, found, Some(fix.to_owned()));
    match accelerator::probe_kvm(qemu, environment) {
        Ok(Some(report)) => match &report.kvm {
            KvmState::Works => (Finding::good("accelerator", report.line()), Accel::Kvm),
            KvmState::Broken { seen } => {
                (slow(format!("kvm is there but does not boot a kernel: {seen}")), Accel::Tcg)
            }
            KvmState::Absent { why } => (slow(format!("no kvm: {why}")), Accel::Tcg),
        },
        Ok(None) => (
            Finding::new(
                "accelerator",
                State::Worse,
                "not known: finding out takes a kernel, and none is in the cache".to_owned(),
                Some("kduel kernels fetch debian:bookworm".to_owned()),
            ),
            Accel::Tcg,
        ),
        Err(failure) => (slow(failure.title), Accel::Tcg),
    }
}
