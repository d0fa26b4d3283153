//! `kduel doctor`: is this host fit, and which accelerator really works.

use std::path::Path;

use serde::Serialize;

use super::{CliError, prepare, report};
use crate::collect::HostInfo;
use crate::config::Environment;
use crate::exit_code;
use crate::host::accel::KvmState;
use crate::host::inventory::Inventory;
use crate::host::qemu::Qemu;
use crate::provision::GuestPrograms;

/// `kduel doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kduel doctor
  kduel doctor --json | jq '.checks[] | select(.state != \"good\")'

Ends with 0 if timed runs are possible here, with 69 if something they need is missing.")]
pub struct DoctorArgs {
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
    /// Use this QEMU instead of the one in PATH.
    #[arg(long, value_name = "PATH")]
    qemu: Option<std::path::PathBuf>,
}

/// How a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// As it should be.
    Good,
    /// Runs work, but numbers are worse or something is slower for it.
    Worse,
    /// Runs do not work without it.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Check {
    what: &'static str,
    state: State,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Findings {
    format: &'static str,
    accelerator: &'static str,
    checks: Vec<Check>,
}

/// Looks and tells.
///
/// # Errors
///
/// Standard output is closed.
pub fn run(args: &DoctorArgs, environment: &Environment) -> Result<u8, CliError> {
    let findings = examine(args, environment);
    let text = if args.json {
        let mut text = serde_json::to_string_pretty(&findings)
            .map_err(|error| CliError::Output(error.into()))?;
        text.push('\n');
        text
    } else {
        findings.text()
    };
    report::emit(&text)?;
    let missing = findings.checks.iter().any(|check| check.state == State::Missing);
    Ok(if missing { exit_code::RIG } else { exit_code::DONE })
}

fn examine(args: &DoctorArgs, environment: &Environment) -> Findings {
    let host = HostInfo::read(Path::new("/"));
    let inventory = Inventory::read(Path::new("/"));
    let mut checks = vec![processors(&host), load(&host, &inventory), memory(&inventory)];
    let mut accelerator = "none";
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path);
    match &qemu {
        Ok(qemu) => {
            checks.push(good("QEMU", format!("{} at {}", qemu.version, qemu.program.display())))
        }
        Err(failure) => checks.push(missing("QEMU", &failure.title, failure.hint.clone())),
    }
    match prepare::find_agent(environment) {
        Ok(agent) => checks.push(good("agent", agent.display().to_string())),
        Err(failure) => checks.push(missing("agent", &failure.title, failure.hint.clone())),
    }
    checks.push(match (&qemu, prepare::find_plugin(environment)) {
        (Ok(qemu), Ok(_)) => good("exact runs", format!("possible, with QEMU {}", qemu.version)),
        (Err(_), _) => missing("exact runs", "not possible without QEMU", None),
        (Ok(_), Err(failure)) => missing("exact runs", &failure.title, failure.hint.clone()),
    });
    for (program, package, found) in [
        ("busybox", "busybox-static", GuestPrograms::find_busybox()),
        ("dropbear", "dropbear-bin", GuestPrograms::find_dropbear()),
    ] {
        checks.push(match found {
            Some(path) => good(program, path.display().to_string()),
            None => missing(program, "not found", Some(format!("apt install {package}"))),
        });
    }
    checks.push(match prepare::find_program("apt-get", environment) {
        Some(_) => good("apt", "kernels of Debian suites can be fetched".to_owned()),
        None => Check {
            what: "apt",
            state: State::Worse,
            found: "not found: kernels of Debian suites cannot be fetched".to_owned(),
            fix: Some("use a .deb file, a bzImage, a built tree or `host`".to_owned()),
        },
    });
    if let Ok(qemu) = &qemu {
        let (check, name) = accelerators(environment, qemu);
        checks.push(check);
        accelerator = name;
    }
    Findings { format: "kduel-doctor/1", accelerator, checks }
}

fn accelerators(environment: &Environment, qemu: &Qemu) -> (Check, &'static str) {
    let fix = "timed runs are emulated here: every number is marked, margins are wide";
    let slow = |found: String| Check {
        what: "accelerator",
        state: State::Worse,
        found,
        fix: Some(fix.to_owned()),
    };
    match prepare::probe_kvm(qemu, environment) {
        Ok(Some(report)) => match &report.kvm {
            KvmState::Works => (good("accelerator", report.line()), "kvm"),
            KvmState::Broken { seen } => {
                (slow(format!("kvm is there but does not boot a kernel: {seen}")), "tcg")
            }
            KvmState::Absent { why } => (slow(format!("no kvm: {why}")), "tcg"),
        },
        Ok(None) => (
            Check {
                what: "accelerator",
                state: State::Worse,
                found: "not known: finding out takes a kernel, and none is in the cache".to_owned(),
                fix: Some("kduel kernels fetch debian:bookworm".to_owned()),
            },
            "tcg",
        ),
        Err(failure) => (slow(failure.to_string()), "tcg"),
    }
}

fn processors(host: &HostInfo) -> Check {
    good("processors", format!("{} x {}", host.cpus, host.cpu_model))
}

fn load(host: &HostInfo, inventory: &Inventory) -> Check {
    let busy = inventory.load > 0.5 * f64::from(host.cpus.max(1));
    Check {
        what: "load",
        state: if busy { State::Worse } else { State::Good },
        found: format!("{:.2} over one minute", inventory.load),
        fix: busy.then(|| "end what else runs here before a timed run".to_owned()),
    }
}

fn memory(inventory: &Inventory) -> Check {
    let little = inventory.available_mib < 1024;
    Check {
        what: "memory",
        state: if little { State::Worse } else { State::Good },
        found: format!("{} MiB can be had", inventory.available_mib),
        fix: little.then(|| "a guest of the default topology takes 512 MiB".to_owned()),
    }
}

fn good(what: &'static str, found: String) -> Check {
    Check { what, state: State::Good, found, fix: None }
}

fn missing(what: &'static str, found: &str, fix: Option<String>) -> Check {
    Check { what, state: State::Missing, found: found.to_owned(), fix }
}

impl Findings {
    fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let mark = match check.state {
                State::Good => "good   ",
                State::Worse => "worse  ",
                State::Missing => "MISSING",
            };
            text.push_str(&format!("{mark}  {:<12} {}\n", check.what, check.found));
            if let Some(fix) = &check.fix {
                text.push_str(&format!("{:23}{fix}\n", ""));
            }
        }
        text.push_str(&format!("\ntimed runs here use: {}\n", self.accelerator));
        text
    }
}
