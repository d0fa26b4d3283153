//! `cargo xtask build`: kduel, and beside it the agent that goes into its guests.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use tempfile::NamedTempFile;

use crate::elf;
use crate::shell::{self, Tool};
use crate::workspace;

/// A side's guest may be of another architecture than the host one day: kduel looks for this name.
const AGENT: &str = "kduel-agent.x86_64";
const AGENT_TARGET: &str = "x86_64-unknown-linux-gnu";

/// Counts in exact runs; kduel looks for this name beside itself.
const PLUGIN: &str = "libkduel_qemu_plugin.so";

/// How kduel is built; the agent is always built small, the plugin always quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Quick to run.
    Release,
    /// Quick to build.
    Debug,
}

impl Profile {
    fn folder(self) -> PathBuf {
        workspace::target_folder().join(match self {
            Self::Release => "release",
            Self::Debug => "debug",
        })
    }

    /// Where kduel is once it is built.
    pub fn kduel(self) -> PathBuf {
        self.folder().join("kduel")
    }
}

/// Builds kduel, its agent and its plugin.
pub fn build(profile: Profile) -> Result<()> {
    let cargo = Tool::cargo().args(["build", "--package", "kduel"]).in_folder(&workspace::root());
    match profile {
        Profile::Release => cargo.arg("--release").run()?,
        Profile::Debug => cargo.run()?,
    }
    let agent = build_agent()?;
    let plugin = build_plugin()?;
    for folder in [Profile::Release, Profile::Debug].map(Profile::folder) {
        if folder.is_dir() {
            install(&agent, &folder.join(AGENT))?;
            install(&plugin, &folder.join(PLUGIN))?;
        }
    }
    Ok(())
}

/// Quick whatever kduel is: it runs at each block that a guest executes.
fn build_plugin() -> Result<PathBuf> {
    let target = workspace::target_folder().join("plugin");
    Tool::cargo()
        .args(["build", "--package", "kduel-qemu-plugin", "--release", "--target-dir"])
        .arg(&target)
        .in_folder(&workspace::root())
        .run()?;
    Ok(target.join("release").join(PLUGIN))
}

/// The agent needs flags of its own, and so a target folder of its own: in the common one they
/// would make cargo build everything anew each time.
fn build_agent() -> Result<PathBuf> {
    let target = workspace::target_folder().join("agent");
    let (variable, flags) = flags_for_agent();
    Tool::cargo()
        .args(["build", "--package", "kduel-agent", "--profile", "agent"])
        .args(["--target", AGENT_TARGET, "--target-dir"])
        .arg(&target)
        .env(variable, flags)
        .in_folder(&workspace::root())
        .run()?;
    let agent = target.join(AGENT_TARGET).join("agent/kduel-agent");
    ensure!(
        elf::is_static(&agent)?,
        "{} needs a loader: no guest could run it\n\
         hint: look for flags that undo crt-static in cargo's configuration",
        agent.display()
    );
    Ok(agent)
}

/// The user's flags and ours. Cargo reads the encoded ones alone where they are set.
fn flags_for_agent() -> (&'static str, String) {
    const OURS: [&str; 2] = ["-C", "target-feature=+crt-static"];
    let with_ours = |name: &'static str, separator: &str| {
        let theirs = shell::variable(name).map(|flags| flags.to_string_lossy().into_owned());
        let flags: Vec<&str> = theirs.as_deref().into_iter().chain(OURS).collect();
        (name, flags.join(separator))
    };
    match shell::variable("CARGO_ENCODED_RUSTFLAGS") {
        Some(_) => with_ours("CARGO_ENCODED_RUSTFLAGS", "\x1f"),
        None => with_ours("RUSTFLAGS", " "),
    }
}

/// Puts a file at `destination` in one move, so that no run ever reads half of it.
fn install(file: &Path, destination: &Path) -> Result<()> {
    let folder = destination.parent().unwrap_or(destination);
    let describe = || format!("failed to write {}", destination.display());
    let temporary = NamedTempFile::new_in(folder).with_context(describe)?;
    fs::copy(file, temporary.path()).with_context(describe)?;
    fs::set_permissions(temporary.path(), Permissions::from_mode(0o755)).with_context(describe)?;
    temporary.persist(destination).with_context(describe)?;
    Ok(())
}
