//! Changes settings of the host, and changes them back: the old values are on disk before anything is
//! changed.

mod setting;
#[cfg(test)]
mod tests;
mod undo;

use std::fs;
use std::io::Write as _;

pub use setting::{Change, SETTINGS, Setting, find};
pub use undo::{Undo, UndoFile};

use super::files::HostFiles;
use crate::fault::{Failure, FailureClass};

/// Whether the setting called `what` is there and not as it should be.
pub fn can_change(files: &HostFiles, what: &str) -> bool {
    let changes = find(what).and_then(|setting| setting.changes(files));
    changes.is_some_and(|changes| !changes.is_empty())
}

/// A host whose settings are changed.
#[derive(Debug)]
pub struct Tuner {
    files: HostFiles,
    file: UndoFile,
    host_boot: String,
}

/// Whether something is changed now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pending {
    /// Nothing is.
    Nothing,
    /// This is.
    Changed(Undo),
    /// This was, before the host was booted again, which restored it.
    Forgotten(Undo),
}

impl Tuner {
    /// The host of `files`, with its undo file.
    pub fn new(files: HostFiles, file: UndoFile) -> Self {
        let host_boot = files.text("proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self { files, file, host_boot }
    }

    /// The file that says how to undo what was changed.
    pub fn file(&self) -> &UndoFile {
        &self.file
    }

    /// What is changed now.
    ///
    /// # Errors
    ///
    /// The undo file cannot be read.
    pub fn pending(&self) -> Result<Pending, Failure> {
        Ok(match self.file.read()? {
            None => Pending::Nothing,
            Some(undo) if undo.host_boot == self.host_boot => Pending::Changed(undo),
            Some(undo) => Pending::Forgotten(undo),
        })
    }

    /// Forgets what the host itself has forgotten by being booted again.
    ///
    /// # Errors
    ///
    /// The undo file cannot be read or removed.
    pub fn forget(&self) -> Result<(), Failure> {
        let _lock = self.file.lock()?;
        match self.pending()? {
            Pending::Forgotten(_) => self.file.remove(),
            Pending::Nothing | Pending::Changed(_) => Ok(()),
        }
    }

    /// Does `changes`, and reads each back. What could not be done as a whole is undone.
    ///
    /// # Errors
    ///
    /// The old values could not be kept: nothing was changed then. A file could not be written, or
    /// holds something else afterwards.
    pub fn apply(&self, changes: &[Change]) -> Result<(), Failure> {
        if changes.is_empty() {
            return Ok(());
        }
        let _lock = self.file.lock()?;
        let before = match self.pending()? {
            Pending::Changed(undo) => undo,
            Pending::Nothing | Pending::Forgotten(_) => Undo::new(&self.host_boot),
        };
        let mut undo = before.clone();
        undo.add(changes);
        self.file.write(&undo)?;
        for (at, change) in changes.iter().enumerate() {
            if let Err(failure) = self.set(&change.path, &change.new) {
                return Err(self.back_out(changes.get(..=at).unwrap_or(changes), &before, failure));
            }
        }
        undo.unfinished = false;
        self.file.write(&undo)
    }

    /// After `failure`: restores what `tried` has changed, and the undo file of `before`.
    fn back_out(&self, tried: &[Change], before: &Undo, failure: Failure) -> Failure {
        let left: Vec<Failure> = tried
            .iter()
            .rev()
            .filter_map(|change| self.restore(&change.path, &change.old).err())
            .collect();
        // Where something is left, the undo file goes on telling of it.
        let kept = if left.is_empty() { self.file.write(before).err() } else { None };
        let hint = match left.is_empty() && kept.is_none() {
            true => "nothing is changed: what was done before it was undone",
            false => "`kduel tune undo` tries again to restore the rest",
        };
        left.into_iter()
            .chain(kept)
            .fold(failure, |failure, left| failure.detail(format!("then: {left}")))
            .hint(hint)
    }

    /// Restores everything that was changed, the last first, and says what.
    ///
    /// # Errors
    ///
    /// Something could not be restored: it stays in the undo file.
    pub fn undo(&self) -> Result<Vec<Change>, Failure> {
        let _lock = self.file.lock()?;
        let Pending::Changed(mut undo) = self.pending()? else { return Ok(Vec::new()) };
        let (mut done, mut left, mut failures) = (Vec::new(), Vec::new(), Vec::new());
        for change in undo.changes.drain(..).rev() {
            match self.restore(&change.path, &change.old) {
                Ok(()) => done.push(change),
                Err(failure) => {
                    failures.push(failure);
                    left.push(change);
                }
            }
        }
        left.reverse();
        undo.changes = left;
        self.file.write(&undo)?;
        let mut failures = failures.into_iter();
        match failures.next() {
            None => Ok(done),
            Some(first) => Err(failures
                .fold(first, |first, other| first.detail(format!("then: {other}")))
                .hint("the rest is restored; a reboot of the host restores this, too")),
        }
    }

    /// [`Self::set`], unless it is so already: a change that never happened needs no undoing.
    fn restore(&self, path: &str, value: &str) -> Result<(), Failure> {
        match setting::value(&self.files, path) {
            Some(found) if found == value => Ok(()),
            _ => self.set(path, value),
        }
    }

    /// Writes `value`, and reads it back.
    fn set(&self, path: &str, value: &str) -> Result<(), Failure> {
        let file = self.files.path(path);
        // Never made: what is not there is no setting.
        let write = || {
            fs::OpenOptions::new()
                .write(true)
                .truncate(true)
                .open(&file)?
                .write_all(value.as_bytes())
        };
        write().map_err(|error| Failure::host_io("write", &file, &error))?;
        let found = setting::value(&self.files, path);
        if found.as_deref() == Some(value) {
            return Ok(());
        }
        let found = found.map_or_else(|| "nothing".to_owned(), |found| format!("{found:?}"));
        let title = format!("{} did not take {value:?}: it reads back as {found}", file.display());
        Err(Failure::new(FailureClass::HostIo, title))
    }
}
