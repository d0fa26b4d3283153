//! Patches, applied to copies of the files that they touch.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::broken;
use super::diff::{self, Part};
use super::folder::copy_file;
use super::mail::{self, Patch};
use crate::fault::{Failure, FailureClass};
use crate::host::git::{git, missing};

const LONGEST: Duration = Duration::from_secs(300);

/// Hunks that are shown of a patch that does not apply, and lines of each.
const HUNKS_SHOWN: usize = 3;
const LINES_SHOWN: usize = 16;

/// A tree that is being changed.
pub struct Changing<'a> {
    /// The tree without changes.
    pub pristine: &'a Path,
    /// What the tree is called.
    pub origin: &'a str,
    /// Files that are changed or new.
    pub files: &'a Path,
    /// Files of the tree that are gone.
    pub removed: BTreeSet<PathBuf>,
}

impl Changing<'_> {
    /// Applies the patches in `file`.
    ///
    /// # Errors
    /// If one does not apply: which, and the hunks that do not fit.
    pub fn apply(&mut self, file: &Path) -> Result<(), Failure> {
        let scratch = tempfile::tempdir().map_err(|error| broken("read", file, &error))?;
        let patches = mail::split(file, scratch.path())?;
        patches.iter().try_for_each(|patch| self.apply_one(patch))
    }

    fn apply_one(&mut self, patch: &Patch) -> Result<(), Failure> {
        let bytes =
            fs::read(&patch.file).map_err(|error| Failure::host_io("read", &patch.file, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        let parts = diff::parse(&text);
        let paths = diff::paths(&parts);
        for path in &paths {
            self.bring(path).map_err(|error| broken("copy", &self.files.join(path), &error))?;
        }
        let above = self.files.parent().unwrap_or(self.files);
        let tool = git()
            .within(self.files)
            .env("GIT_CEILING_DIRECTORIES", above)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(["apply", "--whitespace=nowarn", "-p1"])
            .args([&patch.file]);
        let output = tool.run(LONGEST).map_err(missing)?;
        if !output.status.success() {
            return Err(self.refused(patch, &parts, &output.stderr));
        }
        for path in paths {
            if exists(&self.files.join(&path)) {
                self.removed.remove(&path);
            } else if exists(&self.pristine.join(&path)) {
                self.removed.insert(path);
            }
        }
        Ok(())
    }

    /// Makes a file of the tree one that can be changed, unless it is one or is gone. What lies behind
    /// a link is somewhere else.
    fn bring(&self, path: &Path) -> io::Result<()> {
        let (from, to) = (self.pristine.join(path), self.files.join(path));
        let is_link = |folder: &&Path| {
            self.pristine.join(folder).is_symlink() || self.files.join(folder).is_symlink()
        };
        let behind_link = path.ancestors().skip(1).any(|folder| is_link(&folder));
        let is_file = from.symlink_metadata().is_ok_and(|meta| !meta.is_dir());
        if behind_link || !is_file || exists(&to) || self.removed.contains(path) {
            return Ok(());
        }
        copy_file(&from, &to)
    }

    fn refused(&self, patch: &Patch, parts: &[Part<'_>], said: &str) -> Failure {
        let title = format!("{} does not apply to {}", patch.name, self.origin);
        let mut failure = Failure::new(FailureClass::KernelUnusable, title);
        let mut shown = 0;
        for line in said.lines().filter_map(|line| line.strip_prefix("error: ")) {
            let place = line.strip_prefix("patch failed: ").and_then(|at| at.rsplit_once(':'));
            let Some((file, at)) = place else {
                if !line.ends_with("patch does not apply") {
                    failure = failure.detail(line);
                }
                continue;
            };
            let hunk = at.parse().ok().and_then(|at| diff::hunk(parts, file, at));
            let Some((number, of, hunk)) = hunk else {
                failure = failure.detail(format!("{file}:{at}"));
                continue;
            };
            failure = failure.detail(format!("{file}:{at}, hunk {number} of {of}:"));
            shown += 1;
            if shown <= HUNKS_SHOWN {
                let lines = hunk.text.iter().take(LINES_SHOWN);
                failure = lines.fold(failure, |f, line| f.detail(format!("  {line}")));
                if hunk.text.len() > LINES_SHOWN {
                    failure = failure.detail("  …");
                }
            }
        }
        failure.hint(
            "the lines that it expects are not there: is it for another version, or in already?",
        )
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
