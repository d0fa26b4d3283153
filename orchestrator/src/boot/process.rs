//! A child that is started confined, watched, and ended with all that it may have started.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use super::guest_user::{GuestUser, mapped};
use crate::clock::Deadline;
use crate::fault::{Failure, FailureClass};

/// How much of the end of the child's standard error is kept, in bytes.
const STDERR_BYTES: usize = 16 * 1024;

const PAUSE: Duration = Duration::from_millis(5);

/// What is to be started.
#[derive(Debug)]
pub struct Launch {
    /// The program's path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Open in the child under the same numbers; everything else but the standard streams is not.
    pub inherited: Vec<OwnedFd>,
    /// The most that each file it writes may hold, in bytes; what is beyond is refused.
    pub file_bytes: u64,
}

/// For a program that writes no files: what it must tell goes through pipes and sockets.
pub const NO_FILES: u64 = 1 << 20;

/// A running child: leader of its own session and process group, with an empty environment, tight
/// limits, as a user of its own if we are root. It is killed when the thread that started it ends,
/// so that thread has to live as long as the child shall.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    status: Option<ExitStatus>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    reader: Option<JoinHandle<()>>,
    _user: Option<GuestUser>,
}

impl Process {
    /// Starts `launch`.
    ///
    /// # Errors
    ///
    /// [`FailureClass::ToolMissing`] if there is no such program, [`FailureClass::QemuFailed`] if it
    /// cannot be started.
    pub fn start(launch: Launch) -> Result<Self, Failure> {
        let program = launch.program.clone();
        let user = own_user()?;
        let mut child =
            super::launch::spawn(launch, user.as_ref().map(GuestUser::uid)).map_err(|error| {
                let class = match error.kind() {
                    std::io::ErrorKind::NotFound => FailureClass::ToolMissing,
                    _ => FailureClass::QemuFailed,
                };
                Failure::new(class, format!("failed to start {}: {error}", program.display()))
            })?;
        let pid = Pid::from_child(&child);
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let pipe = child.stderr.take();
        let mut process = Self {
            child,
            pid,
            status: None,
            stderr: Arc::clone(&stderr),
            reader: None,
            _user: user,
        };
        if let Some(pipe) = pipe {
            let reader = std::thread::Builder::new()
                .name("stderr".into())
                .spawn(move || drain(pipe, &stderr))
                .map_err(|error| {
                    Failure::new(FailureClass::HostIo, format!("failed to start a thread: {error}"))
                })?;
            process.reader = Some(reader);
        }
        Ok(process)
    }

    /// Its process id, which is its group's as well.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended. Does not reap it, so that its group's number stays ours.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.status.is_some()
            || !matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Whether it is stopped, or was and goes on: job control, a debugger. Stays so once it is.
    pub fn was_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED
            | WaitIdOptions::CONTINUED
            | WaitIdOptions::NOHANG
            | WaitIdOptions::NOWAIT;
        self.status.is_none()
            && matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(Some(_)))
    }

    /// Waits until it has ended, at most `longest`; says whether it has.
    pub fn wait(&self, longest: Duration) -> bool {
        let deadline = Deadline::after(longest);
        while !self.has_ended() {
            if deadline.passed() {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// Ends it and its group: SIGTERM, after `grace` SIGKILL, and waits until nothing is left.
    /// Gives the status of the child. May be called again.
    ///
    /// # Errors
    ///
    /// [`FailureClass::QemuStuck`] if something survives SIGKILL for `grace`.
    pub fn end(&mut self, grace: Duration) -> Result<ExitStatus, Failure> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        if !self.has_ended() {
            self.signal(Signal::TERM);
            self.wait(grace);
        }
        self.signal(Signal::KILL);
        if !self.wait(grace) {
            return Err(self.survives());
        }
        let status = self.child.wait().map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to reap a child: {error}"))
        })?;
        self.status = Some(status);
        let deadline = Deadline::after(grace);
        while group_lives(self.pid) {
            if deadline.passed() {
                return Err(self.survives());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(status)
    }

    /// The end of what it wrote to its standard error, complete once it has ended.
    pub fn stderr(&mut self) -> String {
        if self.has_ended()
            && let Some(reader) = self.reader.take_if(|reader| finished(reader))
            && reader.join().is_err()
        {
            tracing::error!("the reader of standard error ended with a panic");
        }
        let bytes = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes.iter().copied().collect::<Vec<_>>()).into_owned()
    }

    fn signal(&self, signal: Signal) {
        if let Err(error) = rustix::process::kill_process_group(self.pid, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!("failed to send {signal:?} to process group {}: {error}", self.id());
        }
    }

    fn survives(&self) -> Failure {
        Failure::new(
            FailureClass::QemuStuck,
            format!("something of process group {} survives SIGKILL", self.id()),
        )
        .hint(format!("see what it waits for with `ps -o pid,stat,wchan:32,args -g {}`", self.id()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.signal(Signal::KILL);
            if let Err(failure) = self.end(Duration::from_secs(5)) {
                tracing::error!("{failure}");
            }
        }
    }
}

/// Whether a process of the group is more than a dead entry that its new parent has not reaped yet.
fn group_lives(group: Pid) -> bool {
    if rustix::process::test_kill_process_group(group).is_err() {
        return false;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    processes.flatten().any(|process| {
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        // Behind the name, which may hold anything: state, parent, group.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let dead = matches!(fields.next(), Some("Z" | "X"));
        !dead && fields.nth(1) == Some(&group.as_raw_pid().to_string())
    })
}

/// A user for the child if we are root and the user exists in our namespace.
fn own_user() -> Result<Option<GuestUser>, Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let user = GuestUser::take().ok_or_else(|| {
        Failure::new(FailureClass::Internal, "more than sixteen guests run at a time")
    })?;
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if mapped(&map, user.uid()) {
        return Ok(Some(user));
    }
    tracing::warn!("guests run as the present user: this container has no user {}", user.uid());
    Ok(None)
}

fn drain(mut pipe: impl Read, kept: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(read) = pipe.read(&mut buffer) {
        if read == 0 {
            break;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..read]);
        let over = kept.len().saturating_sub(STDERR_BYTES);
        kept.drain(..over);
    }
}

/// Gives a reader whose child has ended a moment to see the end of its pipe.
fn finished(reader: &JoinHandle<()>) -> bool {
    let deadline = Deadline::after(Duration::from_millis(200));
    while !reader.is_finished() {
        if deadline.passed() {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::sync::mpsc;

    use super::*;
    use crate::clock::Stopwatch;

    const GRACE: Duration = Duration::from_millis(300);

    fn shell(script: &str) -> Process {
        let args = vec!["-c".to_owned(), script.to_owned()];
        Process::start(Launch {
            program: "/bin/sh".into(),
            args,
            inherited: Vec::new(),
            file_bytes: NO_FILES,
        })
        .unwrap()
    }

    fn proc_status(pid: u32, key: &str) -> String {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with(key)).unwrap();
        line.split_once(':').unwrap().1.trim().to_owned()
    }

    fn until(condition: impl Fn() -> bool) {
        let deadline = Deadline::after(Duration::from_secs(5));
        while !condition() {
            assert!(!deadline.passed(), "waited in vain");
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn leads_its_own_group_and_session_without_privileges() {
        let mut process = shell("exec sleep 60");
        let pid = Pid::from_raw(process.id().cast_signed()).unwrap();
        assert_eq!(rustix::process::getpgid(Some(pid)).unwrap(), pid);
        assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
        assert_eq!(proc_status(process.id(), "NoNewPrivs"), "1");
        if rustix::process::geteuid().is_root() {
            let uid = proc_status(process.id(), "Uid");
            let uid: u32 = uid.split_whitespace().next().unwrap().parse().unwrap();
            assert!((0x7000_0000..=0x73ff_ffff).contains(&uid), "{uid}");
            assert_eq!(proc_status(process.id(), "Groups"), "");
        }
        assert_eq!(process.end(GRACE).unwrap().signal(), Some(libc::SIGTERM));
        assert!(process.end(GRACE).is_ok(), "a second end is none the worse");
    }

    #[test]
    fn inherits_what_is_listed_and_nothing_else() {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let stray = std::fs::File::open("/dev/null").unwrap();
        rustix::io::fcntl_setfd(&stray, rustix::io::FdFlags::empty()).unwrap();
        let theirs: OwnedFd = theirs.into();
        let args = vec!["-c".to_owned(), "ls /proc/self/fd >&2; env >&2".to_owned()];
        let number = std::os::fd::AsRawFd::as_raw_fd(&theirs);
        let launch = Launch {
            program: "/bin/sh".into(),
            args,
            inherited: vec![theirs],
            file_bytes: NO_FILES,
        };
        let mut process = Process::start(launch).unwrap();
        assert!(process.wait(Duration::from_secs(5)));
        let seen = process.stderr();
        let numbers: Vec<i32> = seen.lines().filter_map(|line| line.parse().ok()).collect();
        assert_eq!(numbers.len(), 5, "standard streams, the listed one, and the folder: {seen}");
        assert!(numbers.contains(&number));
        assert!(!["HOME=", "CARGO", "USER="].iter().any(|name| seen.contains(name)), "{seen}");
        drop(ours);
    }

    #[test]
    fn what_ignores_sigterm_is_killed_with_its_children() {
        let mut process = shell("trap '' TERM; sleep 61 & sleep 62 & echo up >&2; wait; wait");
        let pid = process.pid;
        until(|| process.stderr.lock().unwrap().len() >= 3);
        assert_eq!(process.end(GRACE).unwrap().signal(), Some(libc::SIGKILL));
        assert!(!group_lives(pid));
    }

    #[test]
    fn children_left_behind_by_a_dead_leader_are_killed() {
        let mut process = shell("sleep 63 & exit 3");
        assert!(process.wait(Duration::from_secs(5)));
        assert_eq!(process.end(GRACE).unwrap().code(), Some(3));
        assert!(!group_lives(process.pid));
    }

    #[test]
    fn dies_with_the_thread_that_started_it() {
        let (send, receive) = mpsc::channel();
        let starter = std::thread::spawn(move || send.send(shell("exec sleep 64")).unwrap());
        let process = receive.recv().unwrap();
        starter.join().unwrap();
        assert!(process.wait(Duration::from_secs(5)), "the child outlived its thread");
    }

    #[test]
    fn dropping_kills_and_reaps_at_once() {
        let process = shell("trap '' TERM; while :; do sleep 1; done");
        let (pid, watch) = (process.pid, Stopwatch::start());
        drop(process);
        assert!(rustix::process::test_kill_process(pid).is_err());
        assert!(watch.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_flood_on_standard_error_does_not_block_and_keeps_its_end() {
        let mut process =
            shell("i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done");
        assert!(process.wait(Duration::from_secs(20)));
        let stderr = process.stderr();
        assert!(stderr.ends_with("line 19999\n") && stderr.len() <= STDERR_BYTES);
    }

    #[test]
    fn a_file_at_its_limit_refuses_more_and_the_program_lives() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        file.as_file().set_permissions(mode).unwrap();
        let script = format!(
            "exec 7>>/proc/self/fd/$0; i=0; while [ $i -lt 3 ]; do echo {} >&7; i=$((i+1)); done; exit 4",
            "x".repeat(80)
        );
        let theirs: OwnedFd = file.reopen().unwrap().into();
        let number = std::os::fd::AsRawFd::as_raw_fd(&theirs).to_string();
        let args = vec!["-c".to_owned(), script, number];
        let launch =
            Launch { program: "/bin/sh".into(), args, inherited: vec![theirs], file_bytes: 100 };
        let mut process = Process::start(launch).unwrap();
        assert!(process.wait(Duration::from_secs(5)));
        assert_eq!(process.end(GRACE).unwrap().code(), Some(4));
        assert_eq!(file.as_file().metadata().unwrap().len(), 100);
    }

    #[test]
    fn a_missing_program_is_a_missing_tool() {
        let launch = Launch {
            program: "/nonexistent/qemu".into(),
            args: Vec::new(),
            inherited: Vec::new(),
            file_bytes: NO_FILES,
        };
        assert_eq!(Process::start(launch).unwrap_err().class, FailureClass::ToolMissing);
    }
}
