//! What a run keeps of the source of its kernels.

use std::fs;
use std::path::Path;

use super::{diff, git};
use crate::collect::SourceIdentity;
use crate::config::SourceSpec;
use crate::fault::Failure;

/// Of a difference with more files than this, only the commits are kept.
const MOST_FILES: usize = 2000;

/// What a kernel is built of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// For `run.json`; where the changes go is said by whoever writes them.
    pub identity: SourceIdentity,
    /// The changes as patches, in order; empty if there are none or too many.
    pub patches: Vec<u8>,
}

impl Record {
    /// Commits and patches of a kernel. What `over` it is built counts as its base if it is of the same
    /// repository; the base of a working tree is else its `HEAD`. `store` has kduel's own commits.
    ///
    /// # Errors
    /// If git fails, or a patch cannot be read.
    pub fn of(spec: &SourceSpec, store: &Path) -> Result<Self, Failure> {
        let mut record = Self::default();
        if let Some(commit) = git::commit(&spec.origin) {
            record.identity.commit = Some(commit.to_owned());
            record.add_commits(spec, commit, store)?;
        }
        for patch in &spec.patches {
            let path = Path::new(patch);
            let bytes = fs::read(path).map_err(|error| Failure::host_io("read", path, &error))?;
            record.patches.extend(bytes);
            record.patches.push(b'\n');
        }
        record.count();
        Ok(record)
    }

    fn add_commits(
        &mut self,
        spec: &SourceSpec,
        commit: &str,
        store: &Path,
    ) -> Result<(), Failure> {
        let repository = git::repository(&spec.origin, store)?;
        let over = spec.over.as_ref().filter(|over| over.is_beside(spec));
        let base = match over {
            Some(over) => {
                // Fetched, if it is elsewhere.
                git::repository(&over.origin, store)?;
                git::commit(&over.origin).map(str::to_owned)
            }
            None => repository.head_of_snapshot(commit)?,
        };
        let Some(base) = base.filter(|base| base != commit) else { return Ok(()) };
        let (changed, removed) = repository.changes(&base, commit)?;
        self.identity.files = changed.len() + removed.len();
        if self.identity.files <= MOST_FILES {
            self.patches = repository.diff(&base, commit)?;
        }
        self.identity.base = Some(base);
        Ok(())
    }

    fn count(&mut self) {
        let text = String::from_utf8_lossy(&self.patches);
        let parts = diff::parse(&text);
        if parts.is_empty() {
            return;
        }
        let lines = || parts.iter().flat_map(|part| &part.hunks).flat_map(|hunk| &hunk.text);
        self.identity.added = lines().filter(|line| line.starts_with('+')).count();
        self.identity.removed = lines().filter(|line| line.starts_with('-')).count();
        self.identity.files = diff::paths(&parts).len();
    }
}
