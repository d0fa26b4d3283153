//! The agent as PID 1: from the kernel's hands to a guest that can be reached.

mod image;
mod kallsyms;
mod modules;
mod mounts;
mod network;
mod port;
mod sealed;
mod ssh;
mod supervise;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use kduel_protocol::{GuestPlan, KALLSYMS_WORD, PLAN_PATH, PROTOCOL, READY_MARKER, Transport};
use rustix::process::{Pid, Signal};
use rustix::system::RebootCommand;

use crate::{clock, sys::Signals};

/// Writes one line to the console, in one go so that kernel messages do not cut it.
fn say(message: &str) {
    let line = format!("kduel-agent: {message}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Runs the guest until it is told to end, then powers it off. Never returns: a kernel whose PID 1
/// ends panics.
pub fn run() -> ! {
    std::panic::set_hook(Box::new(|info| {
        say(&format!("failed: {info}"));
        power_off()
    }));
    if let Err(message) = boot() {
        say(&format!("failed: {message}"));
    }
    power_off()
}

/// Everything up to the request to power off.
fn boot() -> Result<(), String> {
    for complaint in mounts::early() {
        say(&complaint);
    }
    mounts::use_console();
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    let has_word = |wanted: &str| cmdline.split_whitespace().any(|word| word == wanted);
    if has_word("kduel.probe") {
        say_ready(nonce_of(&cmdline));
        return Ok(());
    }
    for complaint in mounts::late() {
        say(&complaint);
    }
    let plan = plan()?;
    let modparams = plan.as_ref().map(|plan| plan.knobs.modparam.clone()).unwrap_or_default();
    for complaint in modules::load(&modparams) {
        say(&complaint);
    }
    if has_word(KALLSYMS_WORD) {
        return kallsyms::send();
    }
    if let Some(image) = plan.as_ref().and_then(|plan| plan.image.as_ref()) {
        image::mount_image(image)?;
    }
    match &plan {
        Some(plan) if plan.transport == Transport::Sealed => {
            say_ready(&plan.nonce);
            sealed::run(plan)
        }
        plan => serve_logins(plan.as_ref(), &cmdline),
    }
}

/// Waits for logins until somebody asks for the end.
fn serve_logins(plan: Option<&GuestPlan>, cmdline: &str) -> Result<(), String> {
    network::bring_up()?;
    let server = ssh::start()?;
    // Not earlier: the server would inherit the block and never hear of its own children's end.
    let signals = Signals::block().map_err(|error| format!("blocking signals: {error}"))?;
    match plan {
        Some(plan) => say_ready(&plan.nonce),
        None => {
            say(&format!("no plan at {PLAN_PATH}: only waiting for logins"));
            say_ready(nonce_of(cmdline));
        }
    }
    supervise::until_asked(&signals, server)
}

fn say_ready(nonce: &str) {
    let _ = std::io::stderr().write_all(format!("{READY_MARKER}{nonce}\n").as_bytes());
}

/// The nonce of a guest without a plan.
fn nonce_of(cmdline: &str) -> &str {
    cmdline.split_whitespace().find_map(|word| word.strip_prefix("kduel.nonce=")).unwrap_or("-")
}

fn plan() -> Result<Option<GuestPlan>, String> {
    let text = match fs::read_to_string(PLAN_PATH) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("reading {PLAN_PATH}: {error}")),
    };
    read_plan(&text).map(Some)
}

/// Reads a plan and checks that it speaks our protocol.
pub fn read_plan(text: &str) -> Result<GuestPlan, String> {
    let plan: GuestPlan =
        serde_json::from_str(text).map_err(|error| format!("reading the plan: {error}"))?;
    if plan.protocol != PROTOCOL {
        return Err(format!(
            "the plan speaks protocol {}, this agent {PROTOCOL}: build both from one tree",
            plan.protocol
        ));
    }
    Ok(plan)
}

/// Ends everything in order and powers the machine off.
fn power_off() -> ! {
    say("powering off");
    supervise::end_all();
    rustix::fs::sync();
    let _ = rustix::system::reboot(RebootCommand::PowerOff);
    loop {
        clock::sleep_ms(1000);
    }
}

/// `kduel-agent poweroff`: asks PID 1 to end the guest.
pub fn request_power_off() -> ExitCode {
    // Outside a guest PID 1 is somebody else's.
    let is_ours = fs::read_link("/proc/1/exe").is_ok_and(|exe| is_agent(&exe));
    let sent = is_ours && rustix::process::kill_process(Pid::INIT, Signal::USR2).is_ok();
    if sent {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "kduel-agent: process 1 is no kduel-agent, nothing done");
    ExitCode::FAILURE
}

/// Whether `exe` is the same file as this program.
fn is_agent(exe: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    identity(exe).is_some() && identity(exe) == identity(Path::new("/proc/self/exe"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_come_from_the_command_line() {
        assert_eq!(nonce_of("quiet kduel.nonce=ab12 kduel.probe"), "ab12");
        assert_eq!(nonce_of("quiet"), "-");
    }

    #[test]
    fn another_protocol_is_refused() {
        let text = r#"{"protocol":99,"nonce":"n","knobs":{},"settle":{"quiet-s":1,"at-least-s":0,"at-most-s":0},
                "trials":[],"monitors":[]}"#;
        let message = read_plan(text).unwrap_err();
        assert!(message.contains("protocol 99"), "{message}");
        assert!(read_plan(&text.replace("99", &PROTOCOL.to_string())).is_ok());
    }
}
