//! A working tree as it is, as a commit.

use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};

use super::{LONGEST, Repository, checked, path};
use crate::fault::{Failure, FailureClass};

/// The subject of the commits that stand for working trees, by which they are known again.
const SUBJECT: &str = "working tree, committed by kduel";

/// A working tree as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The commit that holds it: that of `HEAD` if nothing is changed.
    pub commit: String,
    /// What `HEAD` was; absent before the first commit.
    pub head: Option<String>,
}

impl Snapshot {
    /// Whether anything is changed since `HEAD`.
    pub fn is_changed(&self) -> bool {
        self.head.as_ref() != Some(&self.commit)
    }
}

impl Repository {
    /// The working tree as it is: `HEAD`, what is changed, and new files that git does not ignore.
    /// The commit is made in the store; the same content gives the same commit. Tree, index and
    /// repository stay as they are, and may be in any state.
    ///
    /// # Errors
    /// If there is no working tree, or a file of it cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, Failure> {
        if !self.has_work_tree {
            let title = format!("{} has no working tree", self.top.display());
            return Err(Failure::new(FailureClass::KernelUnusable, title)
                .hint("name a revision instead of `.`"));
        }
        let head = self.commit("HEAD")?;
        let scratch = self.scratch()?;
        let index = scratch.path().join("index");
        self.copy_index(&index)?;
        let git = || self.git().env("GIT_INDEX_FILE", &index);
        checked("read the files of", &self.top, git().args(["add", "--all", "."]).run(LONGEST)?)?;
        let tree = checked("record", &self.top, git().args(["write-tree"]).run(LONGEST)?)?;
        let tree = String::from_utf8_lossy(&tree).trim().to_owned();
        let same = match &head {
            Some(head) => self.tree(head)? == tree,
            None => false,
        };
        let commit = match &head {
            Some(head) if same => head.clone(),
            _ => self.commit_tree(&tree, head.as_deref())?,
        };
        Ok(Snapshot { commit, head })
    }

    /// The commit that a snapshot was made on, if `commit` is a snapshot.
    ///
    /// # Errors
    /// If git fails.
    pub fn head_of_snapshot(&self, commit: &str) -> Result<Option<String>, Failure> {
        let ask = ["log", "-1", "--format=%P%n%s", commit, "--"];
        let text = self.text("read a commit", ask)?;
        let (parent, subject) = text.trim_end().split_once('\n').unwrap_or_default();
        Ok((subject == SUBJECT && !parent.is_empty()).then(|| parent.to_owned()))
    }

    /// A copy of the user's index, so that files which it knows need not be read again. By its time
    /// stamp git tells which files may have changed right after it was written.
    fn copy_index(&self, to: &Path) -> Result<(), Failure> {
        let ask = ["rev-parse", "--path-format=absolute", "--git-path", "index"];
        let output = checked("read", &self.top, self.git().args(ask).run(LONGEST)?)?;
        let from: PathBuf = path(output);
        let copy = || -> io::Result<()> {
            let modified = fs::metadata(&from)?.modified()?;
            fs::write(to, fs::read(&from)?)?;
            File::options().write(true).open(to)?.set_times(FileTimes::new().set_modified(modified))
        };
        match copy() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::host_io("copy", &from, &error))
            }
            _ => Ok(()),
        }
    }

    fn commit_tree(&self, tree: &str, head: Option<&str>) -> Result<String, Failure> {
        let time = match head {
            Some(head) => self.text("read a commit", ["log", "-1", "--format=%ct", head, "--"])?,
            None => "0".to_owned(),
        };
        let mut tool = self.git().args(["commit-tree", tree, "-m", SUBJECT]);
        if let Some(head) = head {
            tool = tool.args(["-p", head]);
        }
        for who in ["AUTHOR", "COMMITTER"] {
            tool = tool
                .env(format!("GIT_{who}_NAME"), "kduel")
                .env(format!("GIT_{who}_EMAIL"), "kduel@localhost")
                .env(format!("GIT_{who}_DATE"), format!("@{} +0000", time.trim()));
        }
        let commit = checked("record", &self.top, tool.run(LONGEST)?)?;
        Ok(String::from_utf8_lossy(&commit).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{commit, put, repository, run};
    use super::*;
    use std::collections::BTreeMap;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    /// Digest, mode, time stamp and inode of everything below a folder, `.git` included. Of objects git
    /// renews the time stamps when they are written once more.
    fn everything(folder: &Path) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                let meta = path.symlink_metadata().unwrap();
                let is_object = path.starts_with(folder.join(".git/objects")) && meta.is_file();
                let content = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                if meta.is_dir() {
                    folders.push(path.clone());
                }
                let stamp = (meta.mtime(), meta.mtime_nsec());
                let stamp = (!is_object).then_some(stamp);
                let digest = crate::provision::sha256_of(&content);
                let about = format!("{digest} {:o} {stamp:?} {}", meta.mode(), meta.ino());
                found.insert(path, about);
            }
        }
        found
    }

    /// What of a folder is not as it was.
    fn touched(folder: &Path, before: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
        let now = everything(folder);
        let names = before.keys().chain(now.keys());
        let touched = names.filter(|path| before.get(*path) != now.get(*path));
        touched.cloned().collect()
    }

    fn files(repository: &Repository, commit: &str) -> Vec<String> {
        let to = tempfile::tempdir().unwrap();
        repository.check_out(commit, to.path()).unwrap();
        let mut names: Vec<String> = everything(to.path())
            .into_keys()
            .filter(|path| path.is_file())
            .map(|path| path.strip_prefix(to.path()).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_snapshot_has_all_that_git_does_not_ignore_and_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("linux");
        fs::create_dir(&tree).unwrap();
        repository(&tree);
        // Staged, not staged, new, removed, executable, and what an in-tree build leaves.
        put(&tree, "Kconfig", "staged\n");
        run(&tree, &["add", "Kconfig"]);
        put(&tree, "Kconfig", "staged, then changed\n");
        put(&tree, "kernel/new.c", "int n;\n");
        put(&tree, "kernel/fork.o", "object");
        put(&tree, "arch/x86/boot/bzImage", "image");
        put(&tree, ".config", "CONFIG_SMP=y\n");
        put(&tree, "scripts/run.sh", "#!/bin/sh\n");
        let script = tree.join("scripts/run.sh");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(tree.join("arch/x86/Makefile")).unwrap();
        let before = everything(&tree);

        let store = dir.path().join("store");
        let found = Repository::find(&tree.join("kernel"), &store).unwrap().unwrap();
        assert_eq!(found.top, tree.canonicalize().unwrap());
        let snapshot = found.snapshot().unwrap();
        assert!(touched(&tree, &before).is_empty());
        assert!(snapshot.is_changed());
        let head = snapshot.head.clone().unwrap();
        assert_eq!(found.head_of_snapshot(&snapshot.commit).unwrap(), Some(head.clone()));
        assert_eq!(found.head_of_snapshot(&head).unwrap(), None);
        let expected = [
            ".gitignore",
            "Kconfig",
            "Makefile",
            "kernel/fork.c",
            "kernel/new.c",
            "scripts/run.sh",
        ];
        assert_eq!(files(&found, &snapshot.commit), expected);
        let (mut changed, removed) = found.changes(&head, &snapshot.commit).unwrap();
        changed.sort();
        assert_eq!(changed, ["Kconfig", "kernel/new.c", "scripts/run.sh"].map(PathBuf::from));
        assert_eq!(removed, [PathBuf::from("arch/x86/Makefile")]);
        let diff = String::from_utf8(found.diff(&head, &snapshot.commit).unwrap()).unwrap();
        assert!(diff.contains("+staged, then changed") && diff.contains("new file mode 100755"));

        assert_eq!(found.snapshot().unwrap(), snapshot, "the same content is the same commit");
        assert!(touched(&tree, &before).is_empty());
    }

    #[test]
    fn a_clean_tree_is_its_head_and_a_change_right_after_a_commit_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("linux");
        fs::create_dir(&tree).unwrap();
        repository(&tree);
        let found = Repository::find(&tree, &dir.path().join("store")).unwrap().unwrap();
        let clean = found.snapshot().unwrap();
        assert!(!clean.is_changed());
        // Of the same length, and within the grain of time stamps.
        for round in 0..20 {
            put(&tree, "kernel/fork.c", &format!("int a{round:02};\n"));
            commit(&tree, "round");
            put(&tree, "kernel/fork.c", &format!("int b{round:02};\n"));
            assert!(found.snapshot().unwrap().is_changed(), "round {round}");
        }
    }

    #[test]
    fn a_folder_without_git_has_no_repository_and_a_bare_one_no_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        assert_eq!(Repository::find(dir.path(), &store).unwrap(), None);
        let bare = dir.path().join("bare.git");
        fs::create_dir(&bare).unwrap();
        run(&bare, &["init", "--quiet", "--bare", "."]);
        let failure = Repository::find(&bare, &store).unwrap().unwrap().snapshot().unwrap_err();
        assert!(failure.title.contains("no working tree"), "{failure}");
    }
}
