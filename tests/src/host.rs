//! What hosts differ in: what else runs on them, which QEMU they have, and who asks it.

use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kduel::config::Environment;
use kduel::host::Qemu;
use tempfile::TempDir;

/// Loops that take the host's processors until they are dropped.
#[derive(Debug)]
pub struct BusyLoops(Vec<Child>);

impl BusyLoops {
    /// Three.
    pub fn start() -> Self {
        let one = || {
            Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("start a loop")
        };
        Self((0..3).map(|_| one()).collect())
    }

    /// One, on these CPUs alone: as `taskset` writes them.
    pub fn on(cpus: &str) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", cpus, "sh", "-c", "while :; do :; done"]);
        Self(vec![command.spawn().expect("start a loop")])
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            child.kill().expect("end a busy loop");
            child.wait().expect("reap a busy loop");
        }
    }
}

/// A QEMU that does the same and is another file.
#[derive(Debug)]
pub struct OtherQemu(TempDir);

impl OtherQemu {
    /// The host's own with one byte more.
    pub fn make() -> Self {
        let program = own().canonicalize().expect("QEMU's own place");
        let other = Self(open_folder(0o755));
        std::fs::create_dir(other.0.path().join("bin")).expect("make a folder");
        std::fs::copy(&program, other.program()).expect("copy QEMU");
        let file = File::options().append(true).open(other.program());
        file.and_then(|mut file| file.write_all(b"x")).expect("add a byte");
        // Where it looks for its firmware.
        let share = program.with_file_name("../share");
        std::os::unix::fs::symlink(share, other.0.path().join("share")).expect("make a link");
        other
    }

    /// Its path.
    pub fn program(&self) -> PathBuf {
        self.0.path().join("bin/qemu-system-x86_64")
    }
}

/// The host's QEMU behind a shell script that changes its arguments first.
#[derive(Debug)]
pub struct WrappedQemu(TempDir);

impl WrappedQemu {
    /// `change` is shell, and `$folder` one that QEMU may write to.
    pub fn make(change: &str) -> Self {
        let wrapped = Self(open_folder(0o777));
        let script =
            format!("#!/bin/sh\nfolder=${{0%/*}}\n{change}\nexec {} \"$@\"\n", own().display());
        std::fs::write(wrapped.program(), script).expect("write a script");
        let mode = Permissions::from_mode(0o755);
        std::fs::set_permissions(wrapped.program(), mode).expect("make it executable");
        wrapped
    }

    /// Its path.
    pub fn program(&self) -> PathBuf {
        self.0.path().join("qemu")
    }
}

fn own() -> PathBuf {
    let environment = Environment::read().expect("the environment");
    Qemu::find(None, &environment.path).expect("a QEMU").program
}

/// QEMU has a user of its own.
fn open_folder(mode: u32) -> TempDir {
    let folder = tempfile::tempdir().expect("make a folder");
    let mode = Permissions::from_mode(mode);
    std::fs::set_permissions(folder.path(), mode).expect("open the folder");
    folder
}

/// A QEMU with a monitor that is asked about the guest all the time, until it is dropped.
#[derive(Debug)]
pub struct AskedQemu {
    wrapped: WrappedQemu,
    done: Arc<AtomicBool>,
    answers: JoinHandle<usize>,
}

impl AskedQemu {
    /// Begins to ask whatever guest there is.
    pub fn start() -> Self {
        let monitor = "-qmp unix:$folder/$$.qmp,server=on,wait=off";
        let wrapped =
            WrappedQemu::make(&format!("case \"$*\" in *-kernel*) set -- \"$@\" {monitor};; esac"));
        let done = Arc::new(AtomicBool::new(false));
        let (until, sockets) = (done.clone(), wrapped.0.path().to_owned());
        let answers = std::thread::spawn(move || ask(&sockets, &until));
        Self { wrapped, done, answers }
    }

    /// Its path.
    pub fn program(&self) -> PathBuf {
        self.wrapped.program()
    }

    /// How many questions were answered.
    pub fn end(self) -> usize {
        self.done.store(true, Ordering::Relaxed);
        self.answers.join().expect("the one who asks")
    }
}

/// Asks every guest with a socket in `folder`, at odd moments; gives the number of answers.
fn ask(folder: &Path, until: &AtomicBool) -> usize {
    let mut monitors: BTreeMap<PathBuf, BufReader<UnixStream>> = BTreeMap::new();
    let (mut answers, mut random) = (0, 1_u64);
    while !until.load(Ordering::Relaxed) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "qmp")
                && !monitors.contains_key(&path)
                && let Ok(socket) = UnixStream::connect(&path)
            {
                let longest = Some(Duration::from_secs(2));
                socket.set_read_timeout(longest).expect("a time-out");
                let mut monitor = BufReader::new(socket);
                if monitor.read_line(&mut String::new()).is_ok() {
                    _ = told_by(&mut monitor, "qmp_capabilities");
                    monitors.insert(path, monitor);
                }
            }
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let questions = ["query-status", "query-cpus-fast", "query-chardev", "query-commands"];
        let question = questions[(random >> 33) as usize % questions.len()];
        for monitor in monitors.values_mut() {
            answers += usize::from(told_by(monitor, question));
        }
        std::thread::sleep(Duration::from_millis(random >> 57));
    }
    answers
}

fn told_by(monitor: &mut BufReader<UnixStream>, question: &str) -> bool {
    let asked = format!("{{\"execute\":\"{question}\"}}\n");
    let mut answer = String::new();
    monitor.get_mut().write_all(asked.as_bytes()).is_ok()
        && monitor.read_line(&mut answer).is_ok()
        && answer.starts_with("{\"return\"")
}
