//! What the integration tests share: a place of their own to run kduel in, and the proof that
//! nothing of it is left.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "tests start the program as a user does, and fail by panicking"
)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

use kduel::clock::Deadline;
use tempfile::TempDir;
use xtask::leftovers::{self, Guest};

mod chromium;
mod fake;
mod host;
mod sealed;

pub use chromium::{Chromium, Loaded, artefacts};
pub use fake::{AD_HOC, Said};
pub use host::{AskedQemu, BusyLoops, OtherQemu, WrappedQemu};
pub use sealed::{Sealed, silent};

/// Both outputs of a program, to be shown when a test fails.
pub fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("stdout:\n{}\nstderr:\n{}", text(&output.stdout), text(&output.stderr))
}

/// Runs kduel to its end, with words that are parted by single spaces.
///
/// # Panics
///
/// It cannot be started.
pub fn kduel(sandbox: &Sandbox, words: &str) -> Output {
    let started = sandbox.kduel().args(words.split(' ')).output();
    started.unwrap_or_else(|error| panic!("failed to start kduel: {error}"))
}

/// How long guests may take to follow a kduel that was killed.
const GRACE: Duration = Duration::from_secs(10);

/// Folders of one test alone, beside the cache that all share; removed at its end.
///
/// Tests that boot guests belong into files whose names begin with `vm`: these run one at a time.
pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    /// With empty folders for work, state and temporary files.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap_or_else(|error| {
            panic!("failed to create a folder for the test: {error}");
        });
        leftovers::adopt_orphans().unwrap_or_else(|error| {
            panic!("failed to become the parent of what the test leaves: {error}");
        });
        let sandbox = Self { folder };
        for part in [sandbox.work(), sandbox.state(), sandbox.temporary()] {
            fs::create_dir(&part).unwrap_or_else(|error| {
                panic!("failed to create {}: {error}", part.display());
            });
        }
        sandbox
    }

    /// Where kduel is run: a folder without a document.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// kduel's state, which holds its runs.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("temporary")
    }

    /// kduel without arguments, in [`Self::work`].
    pub fn kduel(&self) -> Command {
        let mut command = Command::new(program());
        command
            .current_dir(self.work())
            .env("KDUEL_STATE_DIR", self.state())
            .env("KDUEL_LOCK_DIR", self.folder.path().join("locks"))
            .env("TMPDIR", self.temporary())
            .env_remove("RUST_BACKTRACE")
            .env_remove("RUST_LOG");
        command
    }

    /// The guests that this test has started and that are there now, however they lost their kduel.
    pub fn guests(&self) -> Vec<Guest> {
        leftovers::own_guests()
    }

    /// The folders of all runs, in the order of their names; links are none.
    pub fn runs(&self) -> Vec<PathBuf> {
        let mut runs = folders(&self.state().join("runs"));
        runs.sort();
        runs
    }

    /// Fails the test if a guest, a port it listens on, or a temporary file of kduel is left.
    #[track_caller]
    pub fn assert_nothing_left(&self) {
        self.assert_nothing_left_after(GRACE);
    }

    /// The same, with another time for guests to follow a kduel that was killed.
    #[track_caller]
    pub fn assert_nothing_left_after(&self, grace: Duration) {
        let deadline = Deadline::after(grace);
        let mut left = self.left();
        while !left.is_empty() && !deadline.passed() {
            thread::sleep(Duration::from_millis(50));
            left = self.left();
        }
        assert!(left.is_empty(), "left behind:\n{}", left.join("\n"));
    }

    fn left(&self) -> Vec<String> {
        let guest = |guest: &Guest| {
            let ports = leftovers::listening_ports(guest.pid);
            format!("guest {guest}, listening on ports {ports:?}")
        };
        let guests = self.guests();
        let files = entries(&self.temporary()).map(|path| format!("file {}", path.display()));
        guests.iter().map(guest).chain(files).collect()
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

/// The program as `cargo xtask build --debug` leaves it, beside the folder of this test's program.
#[track_caller]
fn program() -> PathBuf {
    let test = env::current_exe().unwrap_or_else(|error| panic!("where is this test: {error}"));
    let built = test.parent().and_then(Path::parent).map(|folder| folder.join("kduel"));
    match built {
        Some(program) if program.is_file() => program,
        _ => panic!(
            "there is no kduel for {}\nhint: run `cargo xtask build --debug` first",
            test.display()
        ),
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    entries(folder).filter(|path| path.is_dir() && !path.is_symlink()).collect()
}
