//! One execution: fork, the command's own place and rank, exec, its output, its end.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use kduel_protocol::{CommandSpec, TrialProblem};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::clock;
use crate::process::ENVIRONMENT;
use crate::sys::{Ended, Exec, Usage, fork_child, wait_usage};
use crate::text;
use crate::workload::cgroup_exec::{move_self, procs_of};
use crate::workload::partners::{pipe, write_all};
use crate::workload::{Window, failed};

/// How much standard output is kept.
pub const OUTPUT_MIB: usize = 1;
const OUTPUT_BYTES: usize = OUTPUT_MIB << 20;
/// How much standard error is kept, from its end.
const COMPLAINT_BYTES: usize = 2000;
/// The status of a child that could not become the command.
const NO_EXEC: i32 = 126;

/// Metric and unit of each of [`Execution::times`].
pub const TIMES: [(&str, &str); 4] =
    [("time", "ns"), ("user-time", "ns"), ("system-time", "ns"), ("context-switches", "count")];

/// The command, prepared as far as it can be.
pub struct Program {
    name: String,
    exec: Exec,
    cpus: Option<CpuSet>,
    nice: Option<i32>,
    procs: Option<CString>,
    place: Option<(PathBuf, PathBuf)>,
}

/// A file system of its own that a command runs in.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its root.
    pub root: &'a Path,
    /// The folder in it to start in.
    pub folder: &'a Path,
}

/// What one execution gave.
pub struct Execution {
    /// From before fork to the command's end.
    pub wall_ns: u64,
    /// What the command and its waited-for descendants used.
    pub usage: Usage,
    /// Its standard output, at most [`OUTPUT_MIB`].
    pub output: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
    /// The end of its standard error.
    complaints: Vec<u8>,
}

impl Execution {
    /// The values of [`TIMES`].
    pub fn times(&self) -> Vec<f64> {
        let Usage { user_ns, system_ns, context_switches } = self.usage;
        [self.wall_ns, user_ns, system_ns, context_switches].map(|value| value as f64).to_vec()
    }

    /// What it said last, on standard error or else on standard output.
    pub fn last_words(&self) -> String {
        let said = if self.complaints.is_empty() { &self.output } else { &self.complaints };
        let said = String::from_utf8_lossy(said);
        text::tail(said.trim_end(), COMPLAINT_BYTES).to_owned()
    }
}

impl Program {
    /// Looks the program up and lays its arguments out.
    pub fn new(spec: &CommandSpec, place: Option<Place<'_>>) -> Result<Self, TrialProblem> {
        let name = spec.argv.first().ok_or_else(|| failed("the command", "argv is empty"))?.clone();
        let overridden = |word: &&str| {
            let name = word.split_once('=').map_or(*word, |(name, _)| name);
            spec.env.iter().any(|own| own.split_once('=').is_some_and(|(own, _)| own == name))
        };
        let inherited = ENVIRONMENT.into_iter().filter(|word| !overridden(word));
        let environment: Vec<&str> = inherited.chain(spec.env.iter().map(String::as_str)).collect();
        let path = environment.iter().find_map(|word| word.strip_prefix("PATH=")).unwrap_or("");
        let file = find_program(&name, path, place.map(|place| place.root))?;
        let exec = Exec::new(&file, spec.argv.iter().map(String::as_str), environment)
            .map_err(|error| failed(&format!("preparing {name}"), error))?;
        let cpus = spec.cpus.as_deref().map(cpu_set).transpose()?;
        let procs = spec.cgroup.as_deref().map(procs_of).transpose()?;
        let place = place.map(|place| (place.root.to_owned(), place.folder.to_owned()));
        Ok(Self { name, exec, cpus, nice: spec.nice, procs, place })
    }

    /// Runs it once; fork, its life and wait are in the window.
    pub fn execute(&self, window: Window) -> Result<Execution, TrialProblem> {
        let (output, output_end) = pipe()?;
        let (complaints, complaints_end) = pipe()?;
        let open = window.open();
        let begin = clock::now_ns();
        let child = fork_child(|| self.become_command(&output_end, &complaints_end));
        let child = child.map_err(|error| failed("fork", error))?;
        drop((output_end, complaints_end));
        let mut output = Drain::new(output, OUTPUT_BYTES);
        let mut complaints = Drain::new(complaints, usize::MAX);
        let end = watch(child, &mut output, &mut complaints)
            .map_err(|error| failed(&format!("watching {}", self.name), error))?;
        let (ended, usage) = wait_usage(child).map_err(|error| failed("wait", error))?;
        open.close();
        let execution = Execution {
            wall_ns: end - begin,
            usage,
            output: output.kept,
            is_cut: output.is_cut,
            complaints: complaints.kept,
        };
        if ended != Ended::Exited(0) {
            let last_words = execution.last_words();
            return Err(failed(&self.name, format!("{ended}\n{last_words}").trim_end()));
        }
        Ok(execution)
    }

    /// In the child: everything between fork and exec; comes back only if that fails.
    fn become_command(&self, output: &OwnedFd, complaints: &OwnedFd) -> i32 {
        let error = match self.take_place(output, complaints) {
            Ok(()) => self.exec.replace(),
            Err(error) => error,
        };
        let _ = write_all(complaints, format!("starting {}: {error}\n", self.name).as_bytes());
        NO_EXEC
    }

    fn take_place(&self, output: &OwnedFd, complaints: &OwnedFd) -> io::Result<()> {
        let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(output)?;
        rustix::stdio::dup2_stderr(complaints)?;
        if let Some(procs) = &self.procs {
            move_self(procs)?;
        }
        if let Some(cpus) = &self.cpus {
            sched_setaffinity(None, cpus)?;
        }
        if let Some(nice) = self.nice {
            rustix::process::setpriority_process(None, nice)?;
        }
        if let Some((root, folder)) = &self.place {
            rustix::process::chroot(root)?;
            rustix::process::chdir(folder)?;
        }
        Ok(())
    }
}

/// As a shell would: a name with a slash is a path, any other is looked for in `path`, below `root`.
fn find_program(name: &str, path: &str, root: Option<&Path>) -> Result<PathBuf, TrialProblem> {
    if name.contains('/') {
        return Ok(name.into());
    }
    let mut candidates = path.split(':').map(|folder| Path::new(folder).join(name));
    candidates
        .find(|file| is_program(file, root))
        .ok_or_else(|| failed(name, format!("no such program in {path}")))
}

/// A link within another root may be absolute, and leads elsewhere from here.
fn is_program(file: &Path, root: Option<&Path>) -> bool {
    let Some(root) = root else { return file.is_file() };
    let inside = root.join(file.strip_prefix("/").unwrap_or(file));
    inside.symlink_metadata().is_ok_and(|meta| meta.is_file() || meta.is_symlink())
}

fn cpu_set(list: &str) -> Result<CpuSet, TrialProblem> {
    let numbers = text::number_list(list).unwrap_or_default();
    let mut set = CpuSet::new();
    for cpu in numbers.iter().filter_map(|cpu| usize::try_from(*cpu).ok()) {
        if cpu < CpuSet::MAX_CPU {
            set.set(cpu);
        }
    }
    if set.count() == 0 { Err(failed("cpus", format!("no CPU in \"{list}\""))) } else { Ok(set) }
}

/// Reads a pipe without ever waiting for it.
struct Drain {
    from: OwnedFd,
    kept: Vec<u8>,
    limit: usize,
    is_open: bool,
    is_cut: bool,
}

impl Drain {
    /// Keeps the first `limit` bytes, or the last few if there is no limit.
    fn new(from: OwnedFd, limit: usize) -> Self {
        let _ = rustix::fs::fcntl_setfl(&from, OFlags::NONBLOCK);
        Self { from, kept: Vec::new(), limit, is_open: true, is_cut: false }
    }

    /// Takes what is there now, at most `rounds` buffers of it.
    fn drain(&mut self, rounds: usize) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        for _ in 0..rounds {
            match rustix::io::read(&self.from, &mut chunk) {
                Ok(0) => {
                    self.is_open = false;
                    return Ok(());
                }
                Ok(read) => self.keep(&chunk[..read]),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn keep(&mut self, chunk: &[u8]) {
        let room = self.limit - self.kept.len();
        self.is_cut |= chunk.len() > room;
        self.kept.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if self.limit == usize::MAX && self.kept.len() > 2 * COMPLAINT_BYTES {
            self.kept.drain(..self.kept.len() - COMPLAINT_BYTES);
        }
    }
}

/// Takes the child's output until it ends, whoever else still holds the pipes; gives the time of
/// its end.
fn watch(child: Pid, output: &mut Drain, complaints: &mut Drain) -> io::Result<u64> {
    // A pipe holds 64 KiB: enough rounds to empty it once the command has ended.
    const LAST_ROUNDS: usize = 64;
    let process = pidfd_open(child, PidfdFlags::empty())?;
    loop {
        let mut ready = vec![PollFd::new(&process, PollFlags::IN)];
        for drain in [&*output, &*complaints].into_iter().filter(|drain| drain.is_open) {
            ready.push(PollFd::from_borrowed_fd(drain.from.as_fd(), PollFlags::IN));
        }
        match poll(&mut ready, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = clock::now_ns();
        let has_ended = ready[0].revents().contains(PollFlags::IN);
        let rounds = if has_ended { LAST_ROUNDS } else { 1 };
        output.drain(rounds)?;
        complaints.drain(rounds)?;
        if has_ended {
            return Ok(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_like_a_shell_does() {
        assert_eq!(find_program("./x", "", None).unwrap(), Path::new("./x"));
        assert!(find_program("sh", "/nowhere:/bin", None).unwrap().ends_with("sh"));
        assert!(find_program("surely-not-there", "/bin", None).is_err());
        let root = std::env::temp_dir().join(format!("kduel-root-{}", std::process::id()));
        std::fs::create_dir_all(root.join("opt")).unwrap();
        std::os::unix::fs::symlink("/etc/alternatives/x", root.join("opt/x")).unwrap();
        let found = find_program("x", "/bin:/opt", Some(&root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found.unwrap(), Path::new("/opt/x"));
    }

    #[test]
    fn cpu_lists_must_name_a_cpu() {
        assert_eq!(cpu_set("0,2-3").unwrap().count(), 3);
        assert!(cpu_set("").is_err());
        assert!(cpu_set("70000").is_err());
    }

    #[test]
    fn output_is_bounded_at_its_end_and_complaints_at_their_start() {
        let mut output = Drain::new(pipe().unwrap().0, 5);
        output.keep(b"abc");
        output.keep(b"defg");
        assert_eq!((output.kept.as_slice(), output.is_cut), (b"abcde".as_slice(), true));
        let mut complaints = Drain::new(pipe().unwrap().0, usize::MAX);
        complaints.keep(&[b'x'; 3 * COMPLAINT_BYTES]);
        complaints.keep(b"end");
        assert!(complaints.kept.len() <= 2 * COMPLAINT_BYTES && complaints.kept.ends_with(b"end"));
    }
}
