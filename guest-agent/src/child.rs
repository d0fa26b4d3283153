//! The freshly exec'd, single-threaded process that a workload is measured in.
//!
//! The request comes as a line on standard input; answers are [`Event`]s, one per line, on standard output.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use kduel_protocol::{Event, Go, Monitor, TrialSpec};
use rustix::process::Signal;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{sys, workload};

/// What the child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// The trial.
    pub trial: TrialSpec,
    /// What to read around the kept iterations.
    pub monitors: Vec<Monitor>,
    /// Kept iterations wait for a [`Go`], on the line after the request.
    pub together: bool,
}

/// `kduel-agent child`: carries out the request.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "kduel-agent child: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> io::Result<()> {
    // Gone with the parent, which may be gone before this took effect; the closed pipe tells then.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Rust ignores it, and what is ignored stays so across execve: the user's programs want theirs.
    sys::default_sigpipe()?;
    let request: Request = read_line()?;
    let mut send = |event: &Event| {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        io::stdout().write_all(line.as_bytes())?;
        io::stdout().flush()
    };
    let trial = request.trial.id;
    let mut gate = |window_ns, send: workload::Send<'_>| {
        send(&Event::Waiting { trial, window_ns })?;
        read_line::<Go>()
    };
    let gate: Option<workload::Gate<'_>> = if request.together { Some(&mut gate) } else { None };
    let problem = workload::measure(&request.trial, &request.monitors, gate, &mut send).err();
    send(&Event::TrialEnd { trial, problem })
}

/// The next line of standard input.
fn read_line<T: DeserializeOwned>() -> io::Result<T> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
