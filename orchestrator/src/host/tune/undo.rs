use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Change;
use crate::collect::write_atomically;
use crate::fault::{Failure, FailureClass};

const FORMAT: &str = "kduel-tune/1";

/// What was changed and has not been undone: the content of the undo file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Undo {
    format: String,
    /// The host's boot in which it was changed; another one has forgotten it.
    pub host_boot: String,
    /// Not all changes were seen to be done: kduel was stopped meanwhile.
    pub unfinished: bool,
    /// In the order in which they are done.
    pub changes: Vec<Change>,
}

impl Undo {
    /// Of nothing yet.
    pub(super) fn new(host_boot: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            host_boot: host_boot.to_owned(),
            unfinished: true,
            changes: Vec::new(),
        }
    }

    /// Adds what is about to be changed. The first old value of a file is the one to return to.
    pub(super) fn add(&mut self, changes: &[Change]) {
        self.unfinished = true;
        for change in changes {
            match self.changes.iter_mut().find(|known| known.path == change.path) {
                Some(known) => known.new.clone_from(&change.new),
                None => self.changes.push(change.clone()),
            }
        }
    }

    /// The settings that were changed, each once.
    pub fn settings(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for change in &self.changes {
            if !names.contains(&change.what.as_str()) {
                names.push(&change.what);
            }
        }
        names
    }
}

/// The file that says how to undo what was changed.
#[derive(Debug, Clone)]
pub struct UndoFile(PathBuf);

impl UndoFile {
    /// The file at `path`.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What is to be undone; `None` if nothing is.
    ///
    /// # Errors
    ///
    /// It is there and cannot be read, or says what this kduel does not know.
    pub fn read(&self) -> Result<Option<Undo>, Failure> {
        let bytes = match fs::read(&self.0) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::host_io("read", &self.0, &error)),
        };
        let unknown = |why: String| {
            let title = format!("{} is no undo file: {why}", self.0.display());
            Failure::new(FailureClass::HostIo, title)
                .hint("see what it says and restore that by hand, or reboot; then remove the file")
        };
        let undo: Undo =
            serde_json::from_slice(&bytes).map_err(|error| unknown(error.to_string()))?;
        if undo.format != FORMAT {
            return Err(unknown(format!("its format is {:?}", undo.format)));
        }
        Ok(Some(undo))
    }

    /// Writes it durably, or removes it if nothing is left to undo.
    pub(super) fn write(&self, undo: &Undo) -> Result<(), Failure> {
        if undo.changes.is_empty() {
            return self.remove();
        }
        let text = serde_json::to_vec_pretty(undo).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to write as JSON: {error}"))
        })?;
        write_atomically(&self.0, &text)
    }

    pub(super) fn remove(&self) -> Result<(), Failure> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Failure::host_io("remove", &self.0, &error))
            }
            _ => Ok(()),
        }
    }

    /// Keeps others from changing the host at the same time, until the answer is dropped.
    pub(super) fn lock(&self) -> Result<File, Failure> {
        let folder = self.0.parent().unwrap_or_else(|| Path::new("."));
        fs::create_dir_all(folder).map_err(|error| Failure::host_io("make", folder, &error))?;
        let path = self.0.with_extension("lock");
        let file =
            File::create(&path).map_err(|error| Failure::host_io("create", &path, &error))?;
        file.try_lock().map_err(|error| {
            let title = format!("failed to lock {}: {error}", path.display());
            Failure::new(FailureClass::HostIo, title)
                .hint("another kduel changes this host: wait for it")
        })?;
        Ok(file)
    }
}
