//! PID 1's duties once the guest is ready: reaping, and ending everything.

use std::process::Child;

use rustix::process::{Signal, WaitOptions};

use crate::clock;
use crate::sys::{Caught, Signals};

/// How long processes may take to end by themselves, in milliseconds.
const GRACE_MS: u64 = 300;
const POLL_MS: u64 = 10;

/// Reaps until somebody asks for the end.
pub fn until_asked(signals: &Signals, server: Child) -> Result<(), String> {
    loop {
        if reap().contains(&server.id()) {
            return Err("the SSH server ended".to_owned());
        }
        if signals.wait(60_000) == Caught::PowerOff {
            return Ok(());
        }
    }
}

/// Collects every child that has ended; gives their ids.
fn reap() -> Vec<u32> {
    let mut ended = Vec::new();
    while let Ok(Some((pid, _))) = rustix::process::wait(WaitOptions::NOHANG) {
        ended.push(pid.as_raw_nonzero().get().unsigned_abs());
    }
    ended
}

/// Asks all other processes to end, waits shortly, then kills what is left.
pub fn end_all() {
    // Lets the command that asked, and the SSH session it came through, end with their exit status.
    clock::sleep_ms(100);
    signal_all(Signal::TERM);
    for _ in 0..GRACE_MS / POLL_MS {
        reap();
        // No child is left, or the wait would have answered something else.
        if rustix::process::wait(WaitOptions::NOHANG).is_err() {
            return;
        }
        clock::sleep_ms(POLL_MS);
    }
    signal_all(Signal::KILL);
    reap();
}

/// To every process but this one; kernel threads ignore it.
fn signal_all(signal: Signal) {
    if !rustix::process::getpid().is_init() {
        return;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else { return };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    for pid in ids.filter(|id| *id > 1).filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
