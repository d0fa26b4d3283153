//! The variables that kduel reads, and the folders they lead to.

#![expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

/// What kduel takes from its environment, read once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// Where downloads and images are kept; may be deleted.
    pub cache_dir: PathBuf,
    /// Where commits are made that stand for working trees, and repositories are fetched to.
    pub git_store: PathBuf,
    /// Where runs are kept.
    pub state_dir: PathBuf,
    /// Where what concerns the host as a whole is kept, for all its users: the state directory if
    /// `KDUEL_STATE_DIR` names one.
    pub host_state_dir: PathBuf,
    /// Groups of functions that the user adds, if there is a folder for such files; need not be there.
    pub groups: Option<PathBuf>,
    /// `KDUEL_AGENT`: the agent's binary, if it is not beside `kduel`.
    pub agent: Option<PathBuf>,
    /// `KDUEL_QEMU_PLUGIN`: the counting plugin, if it is not beside `kduel`.
    pub plugin: Option<PathBuf>,
    /// `KDUEL_LOCK_DIR`: where all runs of this host say which CPUs they measure on.
    pub lock_dir: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// CPUs that Slurm says this process has: `SLURM_CPUS_PER_TASK`, else `SLURM_CPUS_ON_NODE`.
    pub slurm_cpus: Option<u32>,
    /// `PATH`.
    pub path: OsString,
    /// `HOME`.
    pub home: Option<PathBuf>,
    /// `KDUEL_LOG`: what of the log is shown on standard error, as tracing's `EnvFilter`.
    pub log: Option<String>,
    /// `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// The folder that `kduel` was started in, absolute.
    pub current_dir: PathBuf,
}

impl Environment {
    /// Reads the process's environment. Folders follow the XDG specification unless
    /// `KDUEL_CACHE_DIR` and `KDUEL_STATE_DIR` say otherwise.
    ///
    /// # Errors
    ///
    /// There is no current folder, or no home folder where one is needed.
    pub fn read() -> Result<Self, EnvironmentError> {
        let current_dir = std::env::current_dir().map_err(EnvironmentError::CurrentDir)?;
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let base = etcetera::choose_base_strategy().ok();
        let folder = |name: &'static str, default: Option<PathBuf>| match var(name) {
            Some(path) => Ok(current_dir.join(path)),
            None => default.map(|base| base.join("kduel")).ok_or(EnvironmentError::NoHome { name }),
        };
        let cache_dir = folder("KDUEL_CACHE_DIR", base.as_ref().map(BaseStrategy::cache_dir))?;
        let state_dir = folder("KDUEL_STATE_DIR", base.as_ref().and_then(BaseStrategy::state_dir))?;
        Ok(Self {
            groups: base.as_ref().map(|base| base.config_dir().join("kduel/groups.yaml")),
            host_state_dir: match var("KDUEL_STATE_DIR") {
                Some(_) => state_dir.clone(),
                None => PathBuf::from("/var/lib/kduel"),
            },
            git_store: cache_dir.join("git"),
            cache_dir,
            state_dir,
            agent: var("KDUEL_AGENT").map(|path| current_dir.join(path)),
            plugin: var("KDUEL_QEMU_PLUGIN").map(|path| current_dir.join(path)),
            lock_dir: var("KDUEL_LOCK_DIR").map(|path| current_dir.join(path)),
            runtime_dir: var("XDG_RUNTIME_DIR")
                .map(PathBuf::from)
                .filter(|path| path.is_absolute()),
            slurm_cpus: ["SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"]
                .into_iter()
                .find_map(|name| var(name)?.to_str()?.parse().ok()),
            path: var("PATH").unwrap_or_default(),
            home: var("HOME").map(PathBuf::from),
            log: std::env::var("KDUEL_LOG").ok(),
            no_color: var("NO_COLOR").is_some(),
            current_dir,
        })
    }

    /// Where runs are kept, one folder each.
    pub fn runs_dir(&self) -> PathBuf {
        self.state_dir.join("runs")
    }

    /// What this host was calibrated to.
    pub fn calibration_file(&self) -> PathBuf {
        self.state_dir.join("calibration.json")
    }

    /// What of the host's settings is changed, and how to undo it.
    pub fn tune_file(&self) -> PathBuf {
        self.host_state_dir.join("tune.json")
    }

    /// Where results of exact boots are kept by what decides them.
    pub fn known_dir(&self) -> PathBuf {
        self.state_dir.join("exact")
    }

    /// Where kernels' symbols are kept.
    pub fn symbols_dir(&self) -> PathBuf {
        self.cache_dir.join("symbols")
    }

    /// An environment whose every folder is below `folder`, for tests.
    pub fn below(folder: &Path) -> Self {
        Self {
            cache_dir: folder.join("cache"),
            git_store: folder.join("cache/git"),
            state_dir: folder.join("state"),
            host_state_dir: folder.join("state"),
            home: Some(folder.to_owned()),
            current_dir: folder.to_owned(),
            ..Self::default()
        }
    }
}

/// Why the environment is not enough to work in.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// The folder was deleted or cannot be read.
    #[error("no current folder: {0}")]
    CurrentDir(#[source] std::io::Error),
    /// Neither the variable nor a home folder is there.
    #[error("neither {name} nor HOME is set\n  hint: set {name} to a folder")]
    NoHome {
        /// The variable that would do.
        name: &'static str,
    },
}
