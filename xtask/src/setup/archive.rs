//! Fetches single packages, as any user, without installing them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::apt;
use crate::shell::Tool;

/// One suite of the host's archive, with lists and downloads in a folder of our own.
pub struct Archive {
    folder: PathBuf,
    options: Vec<String>,
}

impl Archive {
    /// Of `suite`, as it is now; keeps its things in `folder`.
    pub fn of_suite(suite: &str, folder: &Path) -> Result<Self> {
        let apt = folder.join("apt");
        for part in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(apt.join(part))
                .with_context(|| format!("failed to create {}", apt.display()))?;
        }
        let list = apt::write_list(&apt, &[apt::main_archive(suite)?])?;
        let archive = Self { folder: folder.to_owned(), options: apt::options(&list, &apt) };
        archive.tool("apt-get").args(["--quiet", "update"]).output()?;
        Ok(archive)
    }

    /// The first package that `package` depends on and whose name begins with `prefix`.
    pub fn dependency(&self, package: &str, prefix: &str) -> Result<String> {
        let answer = self.tool("apt-cache").args(["depends", package]).output()?;
        let mut names = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
        let found = names.find(|name| name.starts_with(prefix));
        found.map(str::to_owned).with_context(|| format!("{package} depends on no {prefix}*"))
    }

    /// The package's file, checked by apt.
    pub fn download(&self, package: &str) -> Result<PathBuf> {
        // Root's folder is closed to apt's own user, as apt would say at each file otherwise.
        let sandbox = ["-o", "APT::Sandbox::User=root"];
        self.tool("apt-get").args(sandbox).args(["--quiet", "download", package]).output()?;
        let prefix = format!("{package}_");
        let listed = fs::read_dir(&self.folder)
            .with_context(|| format!("failed to list {}", self.folder.display()))?;
        let mut files: Vec<PathBuf> = listed
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&prefix))
            })
            .collect();
        ensure!(files.len() == 1, "expected one file of {package} in {}", self.folder.display());
        Ok(files.remove(0))
    }

    fn tool(&self, program: &str) -> Tool {
        Tool::new(program).args(&self.options).in_folder(&self.folder)
    }
}
