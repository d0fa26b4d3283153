//! Commits: the tree that a kernel is built over, and what another commit changes in it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::super::Provisioner;
use super::super::cache::sha256_of;
use super::pristine::Pristine;
use crate::config::{Origin, SourceSpec};
use crate::fault::{Failure, FailureClass};
use crate::host::git::{self, Repository, remote};

/// Two commits of a repository.
pub struct Commits {
    repository: Repository,
    from: String,
    to: String,
}

impl Commits {
    /// The tree of the second.
    ///
    /// # Errors
    /// If git fails.
    pub fn tree(&self) -> Result<String, Failure> {
        self.repository.tree(&self.to)
    }

    /// Writes what the second has anew or otherwise into `files`, and notes what it lacks.
    ///
    /// # Errors
    /// If git fails.
    pub fn write(&self, files: &Path, removed: &mut BTreeSet<PathBuf>) -> Result<(), Failure> {
        let (changed, gone) = self.repository.changes(&self.from, &self.to)?;
        removed.extend(gone);
        self.repository.check_out_some(&self.to, &changed, files)
    }
}

impl Provisioner {
    /// The tree of the commit that a chain of kernels begins with, as [`Provisioner::pristine`].
    pub(super) fn pristine_of_git(&self, spec: &SourceSpec) -> Result<Pristine, Failure> {
        let repository = self.repository(&spec.origin)?;
        let (first, last) = (first(spec), spec);
        self.repository(&first.origin)?;
        let (Some(from), Some(to)) = (commit(&first.origin), commit(&last.origin)) else {
            return Err(Failure::new(FailureClass::Internal, "a commit was expected"));
        };
        let (tree, wanted) = (repository.tree(from)?, repository.tree(to)?);
        let shown = described(&repository, &first.origin)?;
        let (path, sha256) = self
            .tree_of(&format!("git {tree}"), &shown, |folder| repository.check_out(from, folder))?;
        let origin = described(&repository, &last.origin)?;
        let (from, to) = (from.to_owned(), to.to_owned());
        let commits = (tree != wanted).then_some(Commits { repository, from, to });
        Ok(Pristine { path, sha256, origin, commits })
    }

    /// The repository of a git origin, with its commit in it.
    pub(super) fn repository(&self, origin: &Origin) -> Result<Repository, Failure> {
        let Origin::Git { repository, revision, commit } = origin else {
            return Err(Failure::new(FailureClass::Internal, "a git repository was expected"));
        };
        let store = self.cache.folder("git")?;
        if !Path::new(repository).is_absolute() {
            let folder = store.join(&sha256_of(repository.as_bytes())[..16]);
            return remote::fetched(repository, revision, commit, &folder);
        }
        Repository::find(Path::new(repository), &store)?.ok_or_else(|| {
            let title = format!("{repository} is no git repository any more");
            Failure::new(FailureClass::KernelUnusable, title)
        })
    }
}

/// The kernel that others of the same repository lie over, which may be itself.
fn first(spec: &SourceSpec) -> &SourceSpec {
    let same = |over: &SourceSpec| match (&over.origin, &spec.origin) {
        (Origin::Git { repository: a, .. }, Origin::Git { repository: b, .. }) => a == b,
        _ => false,
    };
    match &spec.over {
        Some(over) if same(over) => first(over),
        _ => spec,
    }
}

fn commit(origin: &Origin) -> Option<&str> {
    match origin {
        Origin::Git { commit, .. } => Some(commit),
        _ => None,
    }
}

/// `~/src/linux at v6.1 (0123456789ab)`, `… at 0123456789ab and changes`.
fn described(repository: &Repository, origin: &Origin) -> Result<String, Failure> {
    let Origin::Git { repository: place, revision, commit } = origin else {
        return Ok(String::new());
    };
    if let Some(head) = repository.head_of_snapshot(commit)? {
        return Ok(format!("{place} at {} and changes", git::short(&head)));
    }
    let short = git::short(commit);
    if revision == "." || commit.starts_with(revision.as_str()) {
        return Ok(format!("{place} at {short}"));
    }
    Ok(format!("{place} at {revision} ({short})"))
}
