//! The static program inside a kduel guest: init, knobs, workloads.

mod child;
mod clock;
mod facts;
mod init;
mod knobs;
mod monitor;
mod process;
mod serve;
mod settle;
mod sys;
mod text;
mod trial;
mod workload;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: kduel-agent run [PLAN] | poweroff | version";

fn main() -> ExitCode {
    if rustix::process::getpid().is_init() {
        init::run();
    }
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run"] => serve::run(Path::new(kduel_protocol::PLAN_PATH)),
        ["run", plan] => serve::run(Path::new(plan)),
        ["child"] => child::run(),
        ["poweroff"] => init::request_power_off(),
        // Usually caught before Rust's own start-up, see `sys::early`.
        ["noop"] => ExitCode::SUCCESS,
        ["version" | "--version"] => {
            let _ = writeln!(std::io::stdout(), "kduel-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            let _ = writeln!(std::io::stderr(), "{USAGE}");
            ExitCode::from(2)
        }
    }
}
