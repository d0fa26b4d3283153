//! The signals that PID 1 waits for, and the one that Rust ignores.

use std::io;

use super::check;

/// Signals that are blocked and fetched one by one.
#[derive(Debug)]
pub struct Signals {
    set: libc::sigset_t,
}

/// Gives SIGPIPE its default action again.
pub fn default_sigpipe() -> io::Result<()> {
    // SAFETY: the default action needs no handler to be kept alive.
    if unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Gives SIGUSR1 a handler that does nothing.
pub fn handle_user_signal() -> io::Result<()> {
    extern "C" fn handler(_: libc::c_int) {}
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler lives for ever and does nothing, so it may interrupt anything.
    if unsafe { libc::signal(libc::SIGUSR1, handler as libc::sighandler_t) } == libc::SIG_ERR {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A signal that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caught {
    /// A child ended.
    Child,
    /// Somebody asks for the end: SIGUSR2, SIGTERM, or SIGINT for Ctrl-Alt-Del.
    PowerOff,
    /// Nothing within the time.
    Nothing,
}

impl Signals {
    /// Blocks the signals from here on, so that none is lost between two waits.
    pub fn block() -> io::Result<Self> {
        // SAFETY: sigemptyset makes a valid set of it before it is used.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: `set` is live and writable, the signal numbers are valid.
        unsafe {
            check(libc::sigemptyset(&raw mut set))?;
            for signal in [libc::SIGCHLD, libc::SIGUSR2, libc::SIGTERM, libc::SIGINT] {
                check(libc::sigaddset(&raw mut set, signal))?;
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        }
        Ok(Self { set })
    }

    /// Waits for the next one, at most `timeout_ms`.
    pub fn wait(&self, timeout_ms: u32) -> Caught {
        let timeout = libc::timespec {
            tv_sec: i64::from(timeout_ms / 1000),
            tv_nsec: i64::from(timeout_ms % 1000) * 1_000_000,
        };
        // SAFETY: set and timeout are valid; no siginfo is asked for.
        let signal = unsafe {
            libc::sigtimedwait(&raw const self.set, std::ptr::null_mut(), &raw const timeout)
        };
        match signal {
            libc::SIGCHLD => Caught::Child,
            libc::SIGUSR2 | libc::SIGTERM | libc::SIGINT => Caught::PowerOff,
            _ => Caught::Nothing,
        }
    }
}
