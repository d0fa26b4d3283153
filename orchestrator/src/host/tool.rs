//! Programs of the host that kduel asks something: started without a shell, given a deadline.

#![expect(clippy::disallowed_methods, reason = "tools are started here and nowhere else")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use crate::boot::die_with_parent;
use crate::clock::Deadline;
use crate::fault::{Failure, FailureClass};

const PAUSE: Duration = Duration::from_millis(5);

/// A program with its arguments.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    args: Vec<OsString>,
    directory: Option<PathBuf>,
    variables: Vec<(OsString, Option<OsString>)>,
    input: Option<PathBuf>,
}

/// What a tool left behind when it ended.
#[derive(Debug)]
pub struct ToolOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// All it wrote to its standard error, invalid UTF-8 replaced.
    pub stderr: String,
}

impl Tool {
    /// `program` without arguments.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            directory: None,
            variables: Vec::new(),
            input: None,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Runs in `directory`.
    #[must_use]
    pub fn within(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), Some(value.into())));
        self
    }

    /// Takes a variable out of its environment.
    #[must_use]
    pub fn without_env(mut self, name: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), None));
        self
    }

    /// Gives it a file as its standard input, which is empty else.
    #[must_use]
    pub fn input(mut self, file: impl Into<PathBuf>) -> Self {
        self.input = Some(file.into());
        self
    }

    /// Runs it to its end, at most `longest`; then it and its children are killed. Its output is in
    /// no language but English.
    ///
    /// # Errors
    ///
    /// [`FailureClass::ToolMissing`] if there is no such program; [`FailureClass::HostIo`] if it
    /// cannot be started or takes too long. A bad exit status is no error here.
    pub fn run(&self, longest: Duration) -> Result<ToolOutput, Failure> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(self.stdin()?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        die_with_parent(&mut command);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        for (name, value) in &self.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn().map_err(|error| self.not_started(&error))?;
        let stdout = reader(child.stdout.take());
        let stderr = reader(child.stderr.take());
        let status = self.wait(&mut child, longest)?;
        Ok(ToolOutput {
            status,
            stdout: stdout.join().unwrap_or_default(),
            stderr: String::from_utf8_lossy(&stderr.join().unwrap_or_default()).into_owned(),
        })
    }

    fn stdin(&self) -> Result<Stdio, Failure> {
        let Some(path) = &self.input else { return Ok(Stdio::null()) };
        let file = File::open(path).map_err(|error| Failure::host_io("open", path, &error))?;
        Ok(file.into())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env("LC_ALL", "C")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        die_with_parent(&mut command);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
    }

    /// Runs it to its end, however long that takes, and gives each line of its standard output to
    /// `heard`, invalid UTF-8 replaced. What comes back has an empty `stdout`.
    ///
    /// # Errors
    ///
    /// As [`Tool::run`].
    pub fn lines(&self, heard: &mut dyn FnMut(&str)) -> Result<ToolOutput, Failure> {
        let mut child = self.command().spawn().map_err(|error| self.not_started(&error))?;
        let stderr = reader(child.stderr.take());
        if let Some(pipe) = child.stdout.take() {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
                heard(String::from_utf8_lossy(&line).trim_end());
                line.clear();
            }
        }
        let status = child.wait().map_err(|error| self.not_started(&error))?;
        let stderr = String::from_utf8_lossy(&stderr.join().unwrap_or_default()).into_owned();
        Ok(ToolOutput { status, stdout: Vec::new(), stderr })
    }

    fn wait(&self, child: &mut Child, longest: Duration) -> Result<ExitStatus, Failure> {
        let deadline = Deadline::after(longest);
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) if deadline.passed() => break,
                Ok(None) => std::thread::sleep(PAUSE),
                Err(error) => return Err(self.not_started(&error)),
            }
        }
        // Not reaped yet, so the group's number is still the child's.
        let _ = rustix::process::kill_process_group(Pid::from_child(child), Signal::KILL);
        drop(child.wait());
        Err(Failure::new(
            FailureClass::HostIo,
            format!("{} did not end within {} s", self.program.display(), longest.as_secs_f64()),
        ))
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        let class = match error.kind() {
            std::io::ErrorKind::NotFound => FailureClass::ToolMissing,
            _ => FailureClass::HostIo,
        };
        Failure::new(class, format!("failed to run {}: {error}", self.program.display()))
    }
}

/// The first executable file called `name` in the folders of `path`, the value of `PATH`.
pub fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe
            && let Err(error) = pipe.read_to_end(&mut bytes)
        {
            tracing::warn!("failed to read a tool's output: {error}");
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Tool {
        Tool::new("/bin/sh").args(["-c", script])
    }

    #[test]
    fn output_and_status_come_back() {
        let output = shell("echo out; echo err >&2; exit 3").run(Duration::from_secs(5)).unwrap();
        assert_eq!((output.stdout.as_slice(), output.stderr.as_str()), (&b"out\n"[..], "err\n"));
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_tool_gets_the_input_and_the_variables_that_it_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("input");
        std::fs::write(&file, "read").unwrap();
        let tool = shell("cat; echo \" $ONE ${PATH-none}\"").env("ONE", "1").without_env("PATH");
        let output = tool.clone().run(Duration::from_secs(5)).unwrap();
        assert!(output.stdout.starts_with(b" 1 "), "PATH is the shell's own default");
        let output = tool.input(&file).env("PATH", "/bin").run(Duration::from_secs(5)).unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "read 1 /bin\n");
    }

    #[test]
    fn lines_are_heard_as_they_come() {
        let mut heard = Vec::new();
        let script = "echo one; echo err >&2; printf two; exit 4";
        let output = shell(script).lines(&mut |line| heard.push(line.to_owned())).unwrap();
        assert_eq!((heard, output.stderr.as_str()), (vec!["one".into(), "two".into()], "err\n"));
        assert_eq!(output.status.code(), Some(4));
    }

    #[test]
    fn a_tool_that_hangs_is_killed_with_its_children() {
        let failure =
            shell("sleep 65 & sleep 66; wait").run(Duration::from_millis(100)).unwrap_err();
        assert_eq!(failure.title, "/bin/sh did not end within 0.1 s");
    }

    #[test]
    fn a_tool_ends_with_the_thread_that_waits_for_it() {
        let mut command = Command::new("/bin/sleep");
        command.arg("67");
        let started = std::thread::spawn(move || {
            die_with_parent(&mut command);
            command.spawn()
        });
        let mut child = started.join().unwrap().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    #[test]
    fn only_executable_files_are_found() {
        let path = OsString::from("/nonexistent:/etc:/bin");
        assert_eq!(find("sh", &path), Some("/bin/sh".into()));
        assert_eq!(find("passwd", OsStr::new("/etc")), None);
        assert_eq!(
            Tool::new("/nonexistent/x").run(Duration::ZERO).unwrap_err().class,
            FailureClass::ToolMissing
        );
    }
}
