//! What lies over a pristine tree: one folder each in the cache, whole or not there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::super::Provisioner;
use super::super::cache::{sha256_of, sha256_of_file, sweep};
use super::folder::List;
use super::patch::Changing;
use super::pristine::Pristine;
use super::{SourceTree, broken};
use crate::config::SourceSpec;
use crate::fault::{Failure, FailureClass};

/// Changes as such; part of the key, to be renewed with how they are made.
const FORMAT: &str = "changes 1";

const ABOUT: &str = "changes.json";

/// Stored beside the files.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct About {
    /// [`SourceTree::removed`].
    removed: Vec<PathBuf>,
    /// [`SourceTree::sha256`].
    sha256: String,
}

impl Provisioner {
    /// The commits and patches of `spec` over a tree. For whoever holds the lock of the trees.
    pub(super) fn changed(
        &self,
        spec: &SourceSpec,
        pristine: Pristine,
    ) -> Result<SourceTree, Failure> {
        let origin = with_patches(&pristine.origin, &spec.patches);
        if pristine.commits.is_none() && spec.patches.is_empty() {
            return Ok(SourceTree {
                sha256: pristine.sha256.clone(),
                pristine: pristine.path,
                pristine_sha256: pristine.sha256,
                changed: None,
                removed: Vec::new(),
                origin,
            });
        }
        let all = self.cache.folder("changes")?;
        let dir = all.join(key(spec, &pristine)?);
        let about = match stored(&dir, &pristine) {
            Some(about) => about,
            None => {
                sweep(&all);
                self.make(spec, &pristine, &all, &dir)?
            }
        };
        let files = dir.join("files");
        let is_empty =
            fs::read_dir(&files).map_err(|error| broken("read", &files, &error))?.next().is_none();
        Ok(SourceTree {
            pristine: pristine.path,
            pristine_sha256: pristine.sha256,
            changed: (!is_empty).then_some(files),
            removed: about.removed,
            sha256: about.sha256,
            origin,
        })
    }

    fn make(
        &self,
        spec: &SourceSpec,
        pristine: &Pristine,
        all: &Path,
        dir: &Path,
    ) -> Result<About, Failure> {
        let temporary = tempfile::tempdir_in(all).map_err(|error| broken("write", all, &error))?;
        let making = temporary.path().join("changes");
        let files = making.join("files");
        fs::create_dir_all(&files).map_err(|error| broken("write", &files, &error))?;
        let mut removed = BTreeSet::new();
        if let Some(commits) = &pristine.commits {
            commits.write(&files, &mut removed)?;
        }
        let origin = pristine.origin.as_str();
        let mut changing = Changing { pristine: &pristine.path, origin, files: &files, removed };
        for patch in &spec.patches {
            changing.apply(Path::new(patch))?;
        }
        let removed = std::mem::take(&mut changing.removed);
        let about = finish(&files, pristine, removed)?;
        let path = making.join(ABOUT);
        let json = serde_json::to_vec(&about)
            .map_err(|error| Failure::new(FailureClass::Internal, error.to_string()))?;
        fs::write(&path, json).map_err(|error| broken("write", &path, &error))?;
        let _ = fs::remove_dir_all(dir);
        fs::rename(&making, dir).map_err(|error| broken("write", dir, &error))?;
        Ok(about)
    }
}

/// `linux-source-6.1 6.1.176-1 (bookworm) with a.patch and 2 more`.
fn with_patches(origin: &str, patches: &[String]) -> String {
    let name = |patch: &String| {
        let path = Path::new(patch);
        path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    match patches {
        [] => origin.to_owned(),
        [one] => format!("{origin} with {}", name(one)),
        [first, more @ ..] => format!("{origin} with {} and {} more", name(first), more.len()),
    }
}

/// Stands for what the changes are made of.
fn key(spec: &SourceSpec, pristine: &Pristine) -> Result<String, Failure> {
    let mut parts = vec![FORMAT.to_owned(), pristine.sha256.clone()];
    if let Some(commits) = &pristine.commits {
        parts.push(format!("tree {}", commits.tree()?));
    }
    for patch in &spec.patches {
        let digest = sha256_of_file(Path::new(patch))
            .map_err(|error| Failure::host_io("read", Path::new(patch), &error))?;
        parts.push(format!("patch {digest}"));
    }
    Ok(sha256_of(parts.join("\n").as_bytes()))
}

/// What was made before, if it is still what it was.
fn stored(dir: &Path, pristine: &Pristine) -> Option<About> {
    let about: About = serde_json::from_slice(&fs::read(dir.join(ABOUT)).ok()?).ok()?;
    let files = List::read(&dir.join("files"), &|_| false).ok()?;
    (digest(pristine, &files, &about.removed) == about.sha256).then_some(about)
}

/// Takes out what turned out to be as it was.
fn finish(files: &Path, pristine: &Pristine, removed: BTreeSet<PathBuf>) -> Result<About, Failure> {
    let all = List::read(files, &|_| false)?;
    let changed = all.other_than(&pristine.path);
    let kept: BTreeSet<&Path> = changed.paths().collect();
    for path in all.paths().filter(|path| !kept.contains(path)) {
        let path = files.join(path);
        fs::remove_file(&path).map_err(|error| broken("delete", &path, &error))?;
    }
    remove_empty_folders(files);
    // Something in its place, or in the place of its folder, says it already.
    let replaced = |path: &PathBuf| {
        let place = files.join(path);
        let is_file = |place: &Path| place.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        place.symlink_metadata().is_ok()
            || path.ancestors().skip(1).any(|above| is_file(&files.join(above)))
    };
    let removed: Vec<PathBuf> = removed.into_iter().filter(|path| !replaced(path)).collect();
    let sha256 = digest(pristine, &changed, &removed);
    Ok(About { removed, sha256 })
}

/// Removes the folders below `folder` that have nothing in them.
fn remove_empty_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty_folders(&entry.path());
            // Refused where there is something in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// [`SourceTree::sha256`]: of a tree that nothing changes, its own.
fn digest(pristine: &Pristine, changed: &List, removed: &[PathBuf]) -> String {
    if changed.paths().next().is_none() && removed.is_empty() {
        return pristine.sha256.clone();
    }
    let mut parts = vec![pristine.sha256.clone(), changed.sha256()];
    parts.extend(removed.iter().map(|path| path.display().to_string()));
    sha256_of(parts.join("\n").as_bytes())
}
