//! The only place where the agent starts programs outside measured loops.
#![expect(clippy::disallowed_methods, reason = "the guest's own daemons and shells start here")]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::fs::MemfdFlags;

use crate::text;

/// The environment of everything that the agent starts, measured or not: always the same.
pub const ENVIRONMENT: [&str; 3] =
    ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C"];

/// The shell that set-up commands are for.
pub const SHELL: &str = "/bin/sh";

/// What starts it elsewhere.
const BUSYBOX: &str = "/bin/busybox";

/// How much of a program's last output is kept for a message, in bytes.
const TAIL_BYTES: u16 = 2000;

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    let words = ENVIRONMENT.iter().filter_map(|word| word.split_once('='));
    command.env_clear().envs(words).stdin(Stdio::null());
    command
}

/// Output that a program and whatever it leaves behind may write to for as long as they like: a
/// pipe would make us wait for the last of them.
#[derive(Debug)]
pub struct Scratch(OwnedFd);

impl Scratch {
    /// An empty one, in memory.
    pub fn new() -> io::Result<Self> {
        Ok(Self(rustix::fs::memfd_create(c"kduel-output", MemfdFlags::CLOEXEC)?))
    }

    /// One more descriptor of it, for a program to write to.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }

    /// The last two thousand bytes of what was written.
    pub fn tail(&self) -> String {
        let length = rustix::fs::fstat(&self.0).map_or(0, |stat| stat.st_size.unsigned_abs());
        let mut buffer = vec![0; usize::from(TAIL_BYTES)];
        let start = length.saturating_sub(u64::from(TAIL_BYTES));
        let read = rustix::io::pread(&self.0, buffer.as_mut_slice(), start).unwrap_or(0);
        String::from_utf8_lossy(&buffer[..read]).trim_end().to_owned()
    }
}

/// Runs a shell command to its end, `extra` (`NAME=value`) added to its environment; gives its
/// status and the end of its output, both streams mixed. What it leaves running in the background
/// goes on. In the file system at `root`, if there is one.
pub fn shell(
    line: &str,
    extra: &[String],
    root: Option<&Path>,
) -> io::Result<(ExitStatus, String)> {
    let output = Scratch::new()?;
    let mut shell = command(if root.is_some() { BUSYBOX } else { SHELL });
    if let Some(root) = root {
        shell.arg("chroot").arg(root).arg(SHELL);
    }
    let status = shell
        .envs(extra.iter().filter_map(|word| word.split_once('=')))
        .args(["-c", line])
        .stdout(output.writer()?)
        .stderr(output.writer()?)
        .status()?;
    Ok((status, output.tail()))
}

/// Starts the SSH server in the foreground, its log on our standard error.
pub fn ssh_server(program: &str, arguments: &[&str]) -> io::Result<Child> {
    command(program).args(arguments).stdout(Stdio::null()).spawn()
}

/// Starts another copy of this program in a process group of its own, `complaints` its standard
/// error, pipes its standard input and output.
pub fn own_child(argument: &str, complaints: &Scratch) -> io::Result<Child> {
    command("/proc/self/exe")
        .arg(argument)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(complaints.writer()?)
        .process_group(0)
        .spawn()
}

/// Starts `kduel-agent run` in a process group of its own, `output` its standard output.
pub fn plan_runner(output: OwnedFd) -> io::Result<Child> {
    command("/proc/self/exe").arg("run").stdout(output).process_group(0).spawn()
}

/// The last line of some output, bounded.
pub fn last_line(output: &str) -> &str {
    text::tail(output.trim_end().lines().last().unwrap_or(""), 500)
}
