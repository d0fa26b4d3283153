use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::{Failure, FailureClass};
use crate::id::{BootId, RunId};
use crate::plan::{PLAN_FORMAT, Plan};

use super::export::ENDING;
use super::journal::{Cut, Journal, recover_file};
use super::reference::{RunRef, find_run};
use super::write::{host_io, sync_folder, write_atomically};
use super::{BootRecord, RUN_FORMAT, RunInfo};

/// The folder of a run that this process writes. Locked until it is dropped; no other kduel can write
/// it meanwhile.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    journal: Journal,
    _lock: File,
}

/// A run as it lies on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredRun {
    /// Its folder.
    pub path: PathBuf,
    /// `run.json`.
    pub info: RunInfo,
    /// `plan.json`.
    pub plan: Plan,
    /// The good part of `journal.jsonl`.
    pub records: Vec<BootRecord>,
    /// What is behind the good part. In a run that is still going on this may be a line that is
    /// being written.
    pub cut: Option<Cut>,
    /// Where an exported run lies for as long as this is there.
    pub unpacked: Option<UnpackedRun>,
}

/// The folder that an exported run was unpacked into; removed with the last of its owners.
#[derive(Debug, Clone)]
pub struct UnpackedRun(Arc<tempfile::TempDir>);

impl PartialEq for UnpackedRun {
    fn eq(&self, other: &Self) -> bool {
        self.0.path() == other.0.path()
    }
}

impl RunFolder {
    /// Makes the folder of a new run in `runs_dir`, with `run.json`, `plan.json` and an empty
    /// journal, and points `last` at it. Gives `info` its id and start.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn create(runs_dir: &Path, plan: &Plan, mut info: RunInfo) -> Result<Self, Failure> {
        fs::create_dir_all(runs_dir).map_err(|error| host_io("make", runs_dir, &error))?;
        let (id, path, started) = make_folder(runs_dir)?;
        (info.id, info.started) = (id, started);
        let filled = Self::fill(runs_dir, &path, plan, &info);
        if filled.is_err() {
            // Half a run helps nobody; the first error is the one to tell.
            _ = fs::remove_dir_all(&path);
        }
        filled
    }

    fn fill(runs_dir: &Path, path: &Path, plan: &Plan, info: &RunInfo) -> Result<Self, Failure> {
        let lock = lock(path)?;
        write_json(&path.join("plan.json"), plan)?;
        let (journal, _) = Journal::open(&path.join("journal.jsonl"))?;
        for part in ["console", "profile"] {
            let part = path.join(part);
            fs::create_dir(&part).map_err(|error| host_io("make", &part, &error))?;
        }
        // Last: a folder with a run.json is a whole one.
        write_json(&path.join("run.json"), info)?;
        sync_folder(runs_dir)?;
        point_last(runs_dir, &info.id)?;
        Ok(Self { path: path.to_owned(), journal, _lock: lock })
    }

    /// Goes on with a stored run: locks its folder, cuts its journal behind the last good record and
    /// reads the rest.
    ///
    /// # Errors
    ///
    /// `HostIo`, also if another kduel writes the run, or another version wrote it.
    pub fn resume(runs_dir: &Path, run: &RunRef) -> Result<(Self, StoredRun), Failure> {
        let path = find_run(runs_dir, run)?;
        let lock = lock(&path)?;
        // Before the journal, which is cut when it is opened: that of another version must not be.
        let (mut info, plan) = (read_info(&path)?, read_plan(&path)?);
        if !std::mem::take(&mut info.ended).is_empty() {
            write_json(&path.join("run.json"), &info)?;
        }
        let (journal, found) = Journal::open(&path.join("journal.jsonl"))?;
        let stored = StoredRun {
            info,
            plan,
            records: found.records,
            cut: found.cut,
            path: path.clone(),
            unpacked: None,
        };
        Ok((Self { path, journal, _lock: lock }, stored))
    }

    /// Writes plan and information anew, for a run that gets one more side. Records stay.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn extend(&self, plan: &Plan, info: &RunInfo) -> Result<(), Failure> {
        write_json(&self.path.join("plan.json"), plan)?;
        write_json(&self.path.join("run.json"), info)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The run's id.
    pub fn id(&self) -> RunId {
        RunId(self.path.file_name().unwrap_or_default().to_string_lossy().into_owned())
    }

    /// Appends one finished boot to the journal, durably.
    ///
    /// # Errors
    ///
    /// As [`Journal::append`].
    pub fn append(&mut self, record: &BootRecord) -> Result<(), Failure> {
        self.journal.append(record)
    }

    /// Keeps why an experiment ended early, in a sentence.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn ends_early(&self, why: &str) -> Result<(), Failure> {
        let mut info = read_info(&self.path)?;
        info.ended.push(why.to_owned());
        write_json(&self.path.join("run.json"), &info)
    }

    /// Writes `console/<boot>.log`, raw and durably.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn write_console(&self, boot: &BootId, console: &str) -> Result<(), Failure> {
        let path = self.path.join("console").join(format!("{}.log", file_name(&boot.0)));
        write_atomically(&path, console.as_bytes())
    }

    /// Writes the changes that a kernel was built with, where its [`super::SourceIdentity`] says.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn write_changes(&self, place: &Path, patches: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(place);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| host_io("make", folder, &error))?;
        }
        write_atomically(&path, patches)
    }

    /// Writes a file that can be had again from the journal: `samples.jsonl`, `report.json`.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn write_derived(&self, name: &str, content: &str) -> Result<(), Failure> {
        write_atomically(&self.path.join(name), content.as_bytes())
    }
}

impl StoredRun {
    /// Reads a run without locking it; it may be going on.
    ///
    /// # Errors
    ///
    /// `HostIo`; `Usage` for a reference that fits no run or several.
    pub fn open(runs_dir: &Path, run: &RunRef) -> Result<Self, Failure> {
        match exported(run) {
            Some(file) => Self::read_exported(file),
            None => Self::read(&find_run(runs_dir, run)?),
        }
    }

    /// Reads a run that `kduel export` wrote into the file `path`.
    ///
    /// # Errors
    ///
    /// `HostIo`, also if it is not as it was written.
    pub fn read_exported(path: &Path) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("kduel-run-")
            .tempdir()
            .map_err(|error| host_io("make", &std::env::temp_dir(), &error))?;
        super::export::unpack(path, folder.path())?;
        let mut stored = Self::read(folder.path())?;
        for file in stored.plan.experiments.iter_mut().flat_map(|one| &mut one.files) {
            let own = file.sha256.as_ref().map(|sum| folder.path().join("files").join(sum));
            if let Some(own) = own.filter(|own| own.is_file()) {
                file.host = own.display().to_string();
            }
        }
        // What is said of it names what the user has.
        stored.info.out = None;
        stored.info.exported = Some(path.to_owned());
        stored.unpacked = Some(UnpackedRun(Arc::new(folder)));
        Ok(stored)
    }

    /// A file that came with an exported run, by its digest: of a kernel, or the user's own.
    pub fn file(&self, kind: &str, sha256: &str) -> Option<PathBuf> {
        let path = self.path.join(kind).join(file_name(sha256));
        (self.unpacked.is_some() && path.is_file()).then_some(path)
    }

    /// Reads the run in the folder `path`.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let info = read_info(path)?;
        let plan = read_plan(path)?;
        let found = recover_file(&path.join("journal.jsonl"))?;
        Ok(Self {
            path: path.to_owned(),
            info,
            plan,
            records: found.records,
            cut: found.cut,
            unpacked: None,
        })
    }
}

/// The file, if that is what the reference names.
fn exported(run: &RunRef) -> Option<&Path> {
    match run {
        RunRef::Path(path) if path.is_file() => Some(path),
        RunRef::Named(name) if name.ends_with(ENDING) && Path::new(name).is_file() => {
            Some(Path::new(name))
        }
        _ => None,
    }
}

/// A folder with a name that no other run has.
fn make_folder(runs_dir: &Path) -> Result<(RunId, PathBuf, jiff::Timestamp), Failure> {
    loop {
        let started = crate::clock::now();
        let mut random = [0; 2];
        rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty()).map_err(
            |error| Failure::new(FailureClass::HostIo, format!("no random bytes: {error}")),
        )?;
        let time = started.strftime("%Y%m%d-%H%M%S");
        let id = RunId(format!("{time}-{:04x}", u16::from_be_bytes(random)));
        let path = runs_dir.join(&id.0);
        match fs::create_dir(&path) {
            Ok(()) => return Ok((id, path, started)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(host_io("make", &path, &error)),
        }
    }
}

/// Locks the run in `path` for writing. Tries for a moment: a `kduel runs` that looks whether the run
/// is going on holds the lock for as long as it takes to ask.
pub(super) fn lock(path: &Path) -> Result<File, Failure> {
    let folder = File::open(path).map_err(|error| host_io("open", path, &error))?;
    for _ in 0..10 {
        match folder.try_lock() {
            Ok(()) => return Ok(folder),
            Err(TryLockError::Error(error)) => return Err(host_io("lock", path, &error)),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    let busy = format!("run {} is going on in another kduel", path.display());
    Err(Failure::new(FailureClass::HostIo, busy).hint("wait for it, or stop it with Ctrl-C"))
}

/// Whether some kduel writes the run in `path` now.
pub(super) fn is_running(path: &Path) -> bool {
    let folder = File::open(path);
    folder.is_ok_and(|folder| matches!(folder.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// `last` is for people and their scripts; kduel itself finds the newest run by its start.
fn point_last(runs_dir: &Path, id: &RunId) -> Result<(), Failure> {
    let last = runs_dir.join("last");
    let temporary = runs_dir.join(format!(".last-{id}"));
    symlink(&id.0, &temporary)
        .and_then(|()| fs::rename(&temporary, &last))
        .map_err(|error| host_io("point", &last, &error))
}

/// A name that stays within its folder, whatever the user called sides and experiments.
pub(super) fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
    name.chars().map(safe).collect()
}

pub(super) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut json = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(FailureClass::Internal, error.to_string()))?;
    json.push('\n');
    write_atomically(path, json.as_bytes())
}

pub(super) fn read_info(path: &Path) -> Result<RunInfo, Failure> {
    read_json(&path.join("run.json"), RUN_FORMAT)
}

fn read_plan(path: &Path) -> Result<Plan, Failure> {
    read_json(&path.join("plan.json"), PLAN_FORMAT)
}

/// Reads a stored file, whose `format` must be the one this kduel writes.
fn read_json<T: DeserializeOwned>(path: &Path, format: &str) -> Result<T, Failure> {
    let text = fs::read_to_string(path).map_err(|error| host_io("read", path, &error))?;
    let broken = |error: &dyn std::fmt::Display| {
        Failure::new(FailureClass::HostIo, format!("failed to read {}: {error}", path.display()))
    };
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| broken(&error))?;
    let found = value.get("format").and_then(|format| format.as_str()).unwrap_or("none");
    if found != format {
        let why = format!("its format is {found}, this kduel reads {format}");
        return Err(broken(&why).hint("use the kduel that wrote it"));
    }
    serde_json::from_value(value).map_err(|error| broken(&error))
}
