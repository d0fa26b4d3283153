//! The kernels of a case, which tests use where they are built.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::build::Profile;
use crate::shell::Tool;
use crate::workspace;

/// A folder of `cases/`, and the kernels that its document builds.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    name: &'static str,
    kernels: &'static [&'static str],
}

impl Case {
    /// Its kernels differ by a patch that is known line by line.
    pub const TASK_CLASSES: Self =
        Self { name: "task-classes", kernels: &["vanilla", "without-counter", "with-counter"] };

    /// Builds what is missing: minutes for the first kernel.
    pub fn build(self) -> Result<()> {
        self.kduel(&[]).run()
    }

    /// Whether there is nothing to build. An error if that cannot be known.
    pub fn is_built(self) -> Result<bool> {
        let status = self.kduel(&["--check"]).status()?;
        match status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => bail!("failed to find out whether cases/{} is built: {status}", self.name),
        }
    }

    /// What is said where they are not built.
    pub fn skipped(self) -> String {
        let name = self.name;
        format!(
            "    SKIPPED: the tests of cases/{name}, whose kernels are not in the cache. To build them, some \
             minutes: cargo xtask test --all\n"
        )
    }

    fn kduel(self, words: &[&str]) -> Tool {
        let document = PathBuf::from("cases").join(self.name).join("kernels.yaml");
        Tool::new(Profile::Debug.kduel())
            .args(["kernels", "build", "-f"])
            .arg(document)
            .args(words.iter().chain(self.kernels))
            .in_folder(&workspace::root())
    }
}
