//! A person's terminal, connected to a shell in the guest.

use std::io::{Read, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use ssh2::Channel;

use super::ssh::{Pulse, Ssh, Trouble, ready};
use crate::fault::{Failure, FailureClass};

/// For opening the shell.
const OPEN: Duration = Duration::from_secs(20);

/// Between two looks at the keyboard and at the guest.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// The terminal on standard input in raw mode; as it was again when dropped.
struct RawMode(Termios);

impl RawMode {
    fn enter() -> Result<Self, Failure> {
        let before = tcgetattr(std::io::stdin()).map_err(|_| {
            Failure::new(FailureClass::HostIo, "standard input is no terminal")
                .hint("a shell needs a person: run this in a terminal")
        })?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)
            .map_err(|error| io("set up the terminal", &error.into()))?;
        Ok(Self(before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // The terminal may have gone; then there is nothing to restore.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Connects the terminal to a shell in the guest until the shell ends.
///
/// # Errors
///
/// `HostIo` if standard input is no terminal; the connection's failures.
pub fn interact(ssh: &mut Ssh, pulse: Pulse<'_>) -> Result<(), Trouble> {
    let raw = RawMode::enter().map_err(Trouble::Certain)?;
    let mut channel = open(ssh, pulse)?;
    let mut keys = [0; 1024];
    let mut shown = [0; 16 * 1024];
    let mut out = std::io::stdout();
    loop {
        let read = ready(channel.read(&mut shown)).map_err(|error| ssh.cut(&error))?.unwrap_or(0);
        if read > 0 {
            out.write_all(&shown[..read])
                .and_then(|()| out.flush())
                .map_err(|error| Trouble::Certain(io("write to the terminal", &error)))?;
            continue;
        }
        if channel.eof() {
            break;
        }
        pulse()?;
        let stdin = std::io::stdin();
        let mut watched =
            [PollFd::new(&stdin, PollFlags::IN), PollFd::new(ssh.socket(), PollFlags::IN)];
        // A signal only means looking again.
        let _ = poll(&mut watched, Some(&PAUSE));
        if watched[0].revents().is_empty() {
            continue;
        }
        let typed = rustix::io::read(&stdin, &mut keys)
            .map_err(|error| Trouble::Certain(io("read from the terminal", &error.into())))?;
        if typed == 0 {
            break;
        }
        ssh.send_some(&mut channel, &keys[..typed], OPEN, pulse)?;
    }
    drop(raw);
    Ok(())
}

fn open(ssh: &mut Ssh, pulse: Pulse<'_>) -> Result<Channel, Trouble> {
    let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_col > 0);
    let size = size.map(|size| (size.ws_col.into(), size.ws_row.into(), 0, 0));
    let mut channel = ssh.channel(OPEN, pulse)?;
    ssh.drive(OPEN, pulse, |_| channel.request_pty("xterm-256color", None, size))?
        .map_err(|error| ssh.cut(&error))?;
    ssh.drive(OPEN, pulse, |_| channel.shell())?.map_err(|error| ssh.cut(&error))?;
    Ok(channel)
}

fn io(doing: &str, error: &std::io::Error) -> Failure {
    Failure::new(FailureClass::HostIo, format!("failed to {doing}: {error}"))
}
