use std::fs;
use std::path::{Path, PathBuf};

use crate::fault::Failure;
use crate::id::RunId;

use super::RunInfo;
use super::folder::{is_running, lock, read_info, write_json};
use super::write::host_io;

/// A run's folder, whole or not.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedRun {
    /// The folder's name.
    pub id: RunId,
    /// The folder.
    pub path: PathBuf,
    /// `run.json`; absent where it cannot be read.
    pub info: Option<RunInfo>,
    /// Whether some kduel writes it now.
    pub running: bool,
    /// Bytes in all of its files.
    pub bytes: u64,
}

impl ListedRun {
    /// The run in the folder `path`.
    pub fn at(path: &Path) -> Self {
        Self {
            id: RunId(path.file_name().unwrap_or_default().to_string_lossy().into_owned()),
            info: read_info(path).ok(),
            running: is_running(path),
            bytes: size(path),
            path: path.to_owned(),
        }
    }

    /// How long ago it started, at `now`.
    pub fn age(&self, now: jiff::Timestamp) -> Option<std::time::Duration> {
        let started = self.info.as_ref().map(|info| info.started);
        let started = started.or_else(|| start_in_id(&self.id))?;
        Some(now.duration_since(started).unsigned_abs())
    }

    /// The user's own name for the run.
    pub fn label(&self) -> Option<&str> {
        self.info.as_ref()?.label.as_deref()
    }
}

/// The runs in `runs_dir`, newest first; none if the folder is not there.
///
/// # Errors
///
/// `HostIo`.
pub fn list_runs(runs_dir: &Path) -> Result<Vec<ListedRun>, Failure> {
    let entries = match fs::read_dir(runs_dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(host_io("read", runs_dir, &error)),
    };
    let mut runs = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| host_io("read", runs_dir, &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && is_run_id(&name) {
            runs.push(ListedRun::at(&entry.path()));
        }
    }
    // Ids of one second are in no order, so the start itself comes first.
    runs.sort_by_key(|run| {
        let started = run.info.as_ref().map(|info| info.started);
        std::cmp::Reverse((started.or_else(|| start_in_id(&run.id)), run.id.clone()))
    });
    Ok(runs)
}

/// Deletes a run's folder.
///
/// # Errors
///
/// `HostIo`, also if the run is going on.
pub fn remove_run(run: &ListedRun) -> Result<(), Failure> {
    let _lock = lock(&run.path)?;
    fs::remove_dir_all(&run.path).map_err(|error| host_io("remove", &run.path, &error))?;
    // `last` may point at it; a dangling name helps nobody.
    if let Some(runs_dir) = run.path.parent() {
        let last = runs_dir.join("last");
        if fs::read_link(&last).is_ok_and(|target| target.as_os_str() == run.id.0.as_str()) {
            fs::remove_file(&last).map_err(|error| host_io("remove", &last, &error))?;
        }
    }
    Ok(())
}

/// Gives the run in `path` a name of the user's own; an empty one takes it away.
///
/// # Errors
///
/// `HostIo`.
pub fn set_label(path: &Path, label: &str) -> Result<(), Failure> {
    let mut info = read_info(path)?;
    info.label = (!label.is_empty()).then(|| label.to_owned());
    write_json(&path.join("run.json"), &info)
}

/// `20261130-164501-3fa9`.
fn is_run_id(name: &str) -> bool {
    let shape = name.split('-').map(str::len).eq([8, 6, 4]);
    shape && name.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

fn start_in_id(id: &RunId) -> Option<jiff::Timestamp> {
    let time = format!("{}+0000", id.0.get(..15)?);
    jiff::Timestamp::strptime("%Y%m%d-%H%M%S%z", time).ok()
}

fn size(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => size(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
