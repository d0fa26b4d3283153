//! Where things are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

/// The repository.
pub fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_owned()
}

/// Where cargo builds.
pub fn target_folder() -> PathBuf {
    root().join(shell::variable("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// kduel's cache: `KDUEL_CACHE_DIR`, else the user's.
pub fn cache_folder() -> Result<PathBuf> {
    user_folder("KDUEL_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
}

/// kduel's state, which holds its runs: `KDUEL_STATE_DIR`, else the user's.
pub fn state_folder() -> Result<PathBuf> {
    user_folder("KDUEL_STATE_DIR", "XDG_STATE_HOME", ".local/state")
}

/// A relative folder counts from the repository, where all tasks start kduel.
fn user_folder(own: &str, xdg: &str, below_home: &str) -> Result<PathBuf> {
    if let Some(folder) = shell::variable(own) {
        return Ok(root().join(folder));
    }
    // The base directory specification: relative values are ignored.
    let given = shell::variable(xdg).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let home = || Some(PathBuf::from(shell::variable("HOME")?).join(below_home));
    let parent =
        given.or_else(home).with_context(|| format!("neither {own} nor {xdg} nor HOME is set"))?;
    Ok(parent.join("kduel"))
}
