//! git, asked about the user's repositories. Nothing is written into them: objects that are made go
//! into a store of kduel's own, which borrows those of the repository.

pub mod remote;
mod snapshot;
#[cfg(test)]
pub(crate) mod testing;
mod upstream;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::tool::{Tool, ToolOutput};
use crate::fault::{Failure, FailureClass};
use crate::text;

pub use snapshot::Snapshot;
pub use upstream::Upstream;

/// For one call: reading or writing a whole kernel tree, fetching a repository.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// What a caller may have set for a repository of its own, a hook of git for instance.
const VARIABLES: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// A local repository, with or without a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The top folder of its working tree, or the repository itself where it has none.
    pub top: PathBuf,
    git_dir: PathBuf,
    objects: PathBuf,
    has_work_tree: bool,
    store: PathBuf,
}

impl Repository {
    /// The repository that `folder` is in. Objects are made in a folder of its own below `store`.
    ///
    /// # Errors
    /// If git is missing or refuses the repository.
    pub fn find(folder: &Path, store: &Path) -> Result<Option<Self>, Failure> {
        let wanted = ["--is-inside-work-tree", "--absolute-git-dir", "--git-path", "objects"];
        let ask = ["rev-parse", "--path-format=absolute"].into_iter().chain(wanted);
        let output = git().args(ask).within(folder).run(LONGEST).map_err(missing)?;
        if !output.status.success() {
            return match output.stderr.contains("not a git repository") {
                true => Ok(None),
                false => Err(failed("read the repository", folder, &output)),
            };
        }
        let mut lines = output.stdout.split(|byte| *byte == b'\n');
        let mut next = || lines.next().unwrap_or_default().to_vec();
        let has_work_tree = next() == b"true";
        let (git_dir, objects) = (path(next()), path(next()));
        let top = match has_work_tree {
            true => {
                let output = git().args(["rev-parse", "--show-toplevel"]).within(folder);
                path(checked("read the repository", folder, output.run(LONGEST)?)?)
            }
            false => git_dir.clone(),
        };
        let name = crate::provision::sha256_of(git_dir.as_os_str().as_bytes());
        let store = store.join(&name[..16]);
        Ok(Some(Self { top, git_dir, objects, has_work_tree, store }))
    }

    /// The full id of the commit that `revision` means; none if it means none.
    ///
    /// # Errors
    /// If git fails.
    pub fn commit(&self, revision: &str) -> Result<Option<String>, Failure> {
        self.object(&format!("{revision}^{{commit}}"))
    }

    /// The id of a commit's tree.
    ///
    /// # Errors
    /// If git fails, or the commit is not there.
    pub fn tree(&self, commit: &str) -> Result<String, Failure> {
        let tree = self.object(&format!("{commit}^{{tree}}"))?;
        tree.ok_or_else(|| {
            let title = format!("{} has no commit {commit}", self.top.display());
            Failure::new(FailureClass::KernelUnusable, title)
                .hint("commits that nothing refers to are dropped by `git gc`")
        })
    }

    fn object(&self, name: &str) -> Result<Option<String>, Failure> {
        let ask = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
        let output = self.git().args(ask).run(LONGEST)?;
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !id.is_empty()).then_some(id))
    }

    /// Names that are near to `revision` among branches and tags, the nearest first.
    ///
    /// # Errors
    /// If git fails.
    pub fn near(&self, revision: &str) -> Result<Vec<String>, Failure> {
        const MOST: usize = 3;
        let ask = ["for-each-ref", "--format=%(refname:short)"];
        let refs = ["refs/tags", "refs/heads", "refs/remotes"];
        let names = self.text("list the names", ask.into_iter().chain(refs))?;
        let mut names: Vec<&str> = names.lines().collect();
        let mut near = Vec::new();
        while near.len() < MOST {
            let Some(name) = text::nearest(revision, names.iter().copied()) else { break };
            near.push(name.to_owned());
            names.retain(|other| *other != name);
        }
        Ok(near)
    }

    /// What people call a commit: a tag that is exactly there, or the first digits of its id.
    pub fn name_of(&self, commit: &str) -> String {
        let tag = self.text("name a commit", ["describe", "--tags", "--exact-match", commit]);
        tag.map_or_else(|_| short(commit).to_owned(), |tag| tag.trim().to_owned())
    }

    /// Writes all files of a commit into the empty folder `to`.
    ///
    /// # Errors
    /// If git fails, most likely for want of space.
    pub fn check_out(&self, commit: &str, to: &Path) -> Result<(), Failure> {
        let (index, scratch) = self.index_of(commit)?;
        let all = ["checkout-index", "--all", "--force", "--quiet"];
        let tool = self.writing(to).env("GIT_INDEX_FILE", &index).args(all);
        checked("check out files of", &self.top, tool.run(LONGEST)?)?;
        drop(scratch);
        Ok(())
    }

    /// Writes some files of a commit into the folder `to`.
    ///
    /// # Errors
    /// As of [`Self::check_out`].
    pub fn check_out_some(
        &self,
        commit: &str,
        paths: &[PathBuf],
        to: &Path,
    ) -> Result<(), Failure> {
        let (index, scratch) = self.index_of(commit)?;
        let list = scratch.path().join("paths");
        let mut bytes = Vec::new();
        for path in paths {
            bytes.extend_from_slice(path.as_os_str().as_bytes());
            bytes.push(0);
        }
        fs::write(&list, bytes).map_err(|error| Failure::host_io("write", &list, &error))?;
        let some = ["checkout-index", "-z", "--stdin", "--force", "--quiet"];
        let tool = self.writing(to).env("GIT_INDEX_FILE", &index).args(some).input(&list);
        checked("check out files of", &self.top, tool.run(LONGEST)?)?;
        Ok(())
    }

    /// An index of our own that holds a commit's files, in a folder that goes when it is dropped.
    fn index_of(&self, commit: &str) -> Result<(PathBuf, tempfile::TempDir), Failure> {
        let scratch = self.scratch()?;
        let index = scratch.path().join("index");
        let tool = self.git().env("GIT_INDEX_FILE", &index).args(["read-tree", commit]);
        checked("read a commit of", &self.top, tool.run(LONGEST)?)?;
        Ok((index, scratch))
    }

    /// What differs between two commits: files that the second has anew or otherwise, and those that
    /// it lacks.
    ///
    /// # Errors
    /// If git fails.
    pub fn changes(&self, from: &str, to: &str) -> Result<(Vec<PathBuf>, Vec<PathBuf>), Failure> {
        let ask = ["diff-tree", "-r", "-z", "--no-renames", "--name-status", from, to];
        let output = checked("compare commits of", &self.top, self.git().args(ask).run(LONGEST)?)?;
        let mut words = output.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let (mut changed, mut removed) = (Vec::new(), Vec::new());
        while let (Some(kind), Some(name)) = (words.next(), words.next()) {
            let list = if kind == b"D" { &mut removed } else { &mut changed };
            list.push(path(name.to_vec()));
        }
        Ok((changed, removed))
    }

    /// The difference between two commits as a patch.
    ///
    /// # Errors
    /// If git fails.
    pub fn diff(&self, from: &str, to: &str) -> Result<Vec<u8>, Failure> {
        let plain = ["diff", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index"];
        let ask = plain.into_iter().chain(["--binary", from, to, "--"]);
        checked("compare commits of", &self.top, self.git().args(ask).run(LONGEST)?)
    }

    /// What a command of git says.
    fn text(
        &self,
        doing: &str,
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<String, Failure> {
        let output = self.git().args(args).run(LONGEST)?;
        let doing = format!("{doing} of");
        Ok(String::from_utf8_lossy(&checked(&doing, &self.top, output)?).into_owned())
    }

    /// git on this repository, with what the store has.
    fn git(&self) -> Tool {
        let tool = git().within(&self.top).env("GIT_DIR", &self.git_dir);
        let tool = match self.has_work_tree {
            true => tool.env("GIT_WORK_TREE", &self.top),
            false => tool,
        };
        let own = self.store.join("objects");
        if !own.is_dir() {
            return tool;
        }
        tool.env("GIT_OBJECT_DIRECTORY", own)
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.objects))
    }

    /// git that takes `folder` for the working tree, and changes nothing of what it writes there.
    fn writing(&self, folder: &Path) -> Tool {
        let as_it_is = ["-c", "core.autocrlf=false", "-c", "core.symlinks=true"];
        self.git().env("GIT_WORK_TREE", folder).within(folder).args(as_it_is)
    }

    /// A folder in the store for what is needed for a moment.
    fn scratch(&self) -> Result<tempfile::TempDir, Failure> {
        let make = || {
            fs::create_dir_all(self.store.join("objects"))?;
            tempfile::tempdir_in(&self.store)
        };
        make().map_err(|error| Failure::host_io("make a folder in", &self.store, &error))
    }
}

/// The first digits of an id.
pub fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// git with nothing of the user's that could act by itself: no hooks, no watcher of files, no
/// housekeeping.
pub fn git() -> Tool {
    let settings = [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.splitIndex=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ];
    let tool = Tool::new("git").args(settings.into_iter().flat_map(|setting| ["-c", setting]));
    VARIABLES.into_iter().fold(tool, Tool::without_env).env("GIT_OPTIONAL_LOCKS", "0")
}

/// What to do without git.
pub fn missing(failure: Failure) -> Failure {
    match failure.class {
        FailureClass::ToolMissing => failure.hint("install git: kernels from source need it"),
        _ => failure,
    }
}

fn checked(doing: &str, what: &Path, output: ToolOutput) -> Result<Vec<u8>, Failure> {
    if output.status.success() { Ok(output.stdout) } else { Err(failed(doing, what, &output)) }
}

fn failed(doing: &str, what: &Path, output: &ToolOutput) -> Failure {
    let title = format!("git failed to {doing} {}", what.display());
    let no_space = output.stderr.contains("No space left on device");
    let class = if no_space { FailureClass::HostIo } else { FailureClass::KernelUnusable };
    let lines = output.stderr.lines().filter(|line| !line.trim().is_empty()).take(6);
    let failure = lines.fold(Failure::new(class, title), |failure, line| failure.detail(line));
    if no_space { failure.hint("make room: a kernel tree takes 1.5 GB") } else { failure }
}

/// The rest of a command's output as a path, without the newline at its end.
fn path(mut bytes: Vec<u8>) -> PathBuf {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// A path for a list that is separated by colons.
fn quoted(path: &Path) -> OsString {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b':' | b'"')) {
        return path.into();
    }
    let escaped = bytes.iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    });
    OsString::from_vec(std::iter::once(b'"').chain(escaped).chain([b'"']).collect())
}
