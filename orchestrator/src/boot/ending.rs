//! Why a guest or its QEMU has ended, as a failure.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use kduel_protocol::GAVE_UP_MARKER;

use super::console::Console;
use super::process::Process;
use crate::fault::{Failure, FailureClass};

/// For a QEMU that is about to end.
const LONGEST: Duration = Duration::from_millis(500);

/// Why the agent gave the guest up, if it said so on the console.
pub(super) fn last_words(console_tail: &[String]) -> Option<String> {
    let line = console_tail.iter().rev().find(|line| line.contains(GAVE_UP_MARKER))?;
    let (_, words) = line.split_once(GAVE_UP_MARKER)?;
    Some(format!("the agent gave up: {}", words.trim()))
}

/// With what the console has to say about it.
pub(super) fn with_console(mut failure: Failure, console: &Console) -> Failure {
    failure.console_tail = console.tail();
    if failure.console_tail.is_empty() {
        failure.details.push("the console is empty".to_owned());
    }
    if let Some(note) = console.note() {
        failure.details.push(format!("last warning on the console: {note}"));
    }
    failure
}

/// Whether a program brings this signal upon itself: a failed assertion, a bad access, a call that its
/// sandbox forbids.
fn is_of_its_own(signal: i32) -> bool {
    use rustix::process::Signal;
    [Signal::ABORT, Signal::SEGV, Signal::BUS, Signal::ILL, Signal::FPE, Signal::TRAP, Signal::SYS]
        .iter()
        .any(|own| own.as_raw() == signal)
}

/// QEMU ended by itself or by a signal.
pub(super) fn ended(process: &mut Process, console: &Console) -> Failure {
    let stderr = process.stderr();
    let (class, how) = match process.end(LONGEST) {
        Ok(status) => match (status.signal(), status.code()) {
            (Some(signal), _) if is_of_its_own(signal) => {
                (FailureClass::QemuFailed, format!("QEMU crashed with signal {signal}"))
            }
            (Some(signal), _) => {
                (FailureClass::QemuKilled, format!("QEMU was ended by signal {signal}"))
            }
            (None, Some(code)) => {
                (FailureClass::QemuFailed, format!("QEMU ended with status {code}"))
            }
            (None, None) => (FailureClass::QemuFailed, format!("QEMU ended: {status}")),
        },
        Err(failure) => return failure,
    };
    let title = match stderr.lines().last() {
        Some(last) => format!("{how}: {last}"),
        None => how,
    };
    let mut failure = with_console(Failure::new(class, title), console);
    failure.details.extend(stderr.lines().map(str::to_owned));
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_last_words_say_why_a_guest_switched_itself_off() {
        let tail = ["[    2.3] Run /init", "kduel-agent: failed: no network device appeared"];
        let words = last_words(&tail.map(str::to_owned));
        assert_eq!(words.as_deref(), Some("the agent gave up: no network device appeared"));
        assert_eq!(last_words(&["kduel-agent: powering off".to_owned()]), None);
    }
}
