//! Starts programs, reads the environment, and takes the time.

#![expect(clippy::disallowed_methods, reason = "tasks run tools, and this is where they do")]

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// A program with its arguments, run to its end.
pub struct Tool {
    command: Command,
    shown: String,
}

impl Tool {
    /// `program` as found in PATH.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let shown = quoted(&program.as_ref().to_string_lossy());
        Self { command: Command::new(program), shown }
    }

    /// The cargo that runs this task.
    pub fn cargo() -> Self {
        let mut tool = Self::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
        "cargo".clone_into(&mut tool.shown);
        tool
    }

    /// Adds one argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.shown.push(' ');
        self.shown.push_str(&quoted(&argument.as_ref().to_string_lossy()));
        self.command.arg(argument);
        self
    }

    /// Adds several arguments.
    pub fn args<S: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = S>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Takes a variable out of its environment.
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it in `folder`.
    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Runs it on our own streams; any end but exit status 0 is an error.
    pub fn run(mut self) -> Result<()> {
        let status = self.status()?;
        self.succeeded(status)
    }

    /// Runs it on our own streams.
    pub fn status(&mut self) -> Result<ExitStatus> {
        self.command.status().with_context(|| format!("failed to start `{}`", self.shown))
    }

    /// Runs it with its own standard output caught and given back.
    pub fn output(mut self) -> Result<String> {
        let output = self
            .command
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("failed to start `{}`", self.shown))?;
        self.succeeded(output.status)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What it prints, if it can be run and exits with 0; its complaints are not shown.
    pub fn probe(mut self) -> Option<String> {
        let output = self.command.stdin(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs it on our own streams, but shows each line of its standard error to `see` as well.
    pub fn run_seeing(mut self, mut see: impl FnMut(&str)) -> Result<()> {
        let mut child = self
            .command
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start `{}`", self.shown))?;
        for line in
            child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n'))
        {
            let line =
                line.with_context(|| format!("failed to read what `{}` says", self.shown))?;
            let line = String::from_utf8_lossy(&line);
            eprintln!("{line}");
            see(&line);
        }
        let status =
            child.wait().with_context(|| format!("failed to wait for `{}`", self.shown))?;
        self.succeeded(status)
    }

    /// Runs it to its end without any stream of ours, and gives the time from its start until
    /// `done`. None if it ended before, whatever its exit status; after `deadline` it is killed with
    /// all its children.
    pub fn time_until(
        mut self,
        deadline: Duration,
        done: impl Fn() -> bool,
    ) -> Result<Option<Duration>> {
        let start = Instant::now();
        let command = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command
            .process_group(0)
            .spawn()
            .with_context(|| format!("failed to start `{}`", self.shown))?;
        let mut seen = None;
        loop {
            let ended =
                child.try_wait().with_context(|| format!("failed to wait for `{}`", self.shown))?;
            if seen.is_none() && done() {
                seen = Some(start.elapsed());
            }
            if ended.is_some() {
                return Ok(seen);
            }
            if start.elapsed() > deadline {
                kill_process_group(Pid::from_child(&child), Signal::KILL)?;
                child.wait()?;
                bail!("`{}` did not end within {} s", self.shown, deadline.as_secs());
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn succeeded(&self, status: ExitStatus) -> Result<()> {
        if !status.success() {
            bail!("`{}` ended with {status}", self.shown);
        }
        Ok(())
    }
}

/// `words` as one line that a shell takes back apart.
pub fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A variable of our environment; an empty one counts as absent.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Where `program` is: PATH, and the folders of system programs that a user's PATH often lacks.
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Whether a person sits before us who can be asked.
pub fn interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Whether what is said on standard error may be coloured.
pub fn coloured() -> bool {
    std::io::stderr().is_terminal() && variable("NO_COLOR").is_none()
}

/// What `work` gives, and how long it took.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_split_are_quoted() {
        assert_eq!(shell_line(["apt-get", "-o", "Dir::X=/a b"]), "apt-get -o 'Dir::X=/a b'");
        assert_eq!(shell_line(["it's", ""]), r"'it'\''s' ''");
    }

    #[test]
    fn a_failure_names_the_command_and_its_status() {
        let failure = Tool::new("sh").args(["-c", "exit 3"]).run().unwrap_err();
        assert_eq!(failure.to_string(), "`sh -c 'exit 3'` ended with exit status: 3");
    }

    #[test]
    fn the_time_until_something_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("made");
        let run = |script: &str, deadline| {
            let tool = Tool::new("sh").args(["-c", script]).in_folder(folder.path());
            tool.time_until(Duration::from_millis(deadline), || file.exists())
        };
        assert_eq!(run("exit 1", 5000).unwrap(), None);
        assert!(run("sleep 60 & wait", 50).unwrap_err().to_string().contains("did not end"));
        let seen = run("sleep 0.2; touch made; sleep 0.5", 5000).unwrap().unwrap();
        assert!((200..700).contains(&seen.as_millis()), "{seen:?}");
    }

    #[test]
    fn lines_of_standard_error_are_seen() {
        let mut seen = Vec::new();
        let tool = Tool::new("sh").args(["-c", "echo one >&2; echo two >&2"]);
        tool.run_seeing(|line| seen.push(line.to_owned())).unwrap();
        assert_eq!(seen, ["one", "two"]);
    }
}
