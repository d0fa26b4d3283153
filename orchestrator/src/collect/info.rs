use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::analyse::Options;
use crate::boot::Accel;
use crate::id::RunId;
use crate::provision::Kernel;

/// The format of [`RunInfo`].
pub const RUN_FORMAT: &str = "kduel-run/1";

/// What a run is, where it runs and with which versions. Stored as `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunInfo {
    /// [`RUN_FORMAT`].
    pub format: String,
    /// Also the folder's name. Given by [`super::RunFolder::create`].
    pub id: RunId,
    /// Wall clock at the start: a label. Given by [`super::RunFolder::create`].
    pub started: jiff::Timestamp,
    /// The user's own name for the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub label: Option<String>,
    /// Where its folder was put, if not into the state directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub out: Option<PathBuf>,
    /// The folder of the case that it was a run of, absolute.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub case: Option<PathBuf>,
    /// kduel's own version.
    pub kduel: String,
    /// The command that started it, program first.
    pub command: Vec<String>,
    /// What executes the guests.
    pub accelerator: Accel,
    /// Absent where no QEMU is used.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub qemu: Option<QemuInfo>,
    /// Where it runs.
    pub host: HostInfo,
    /// Why experiments ended before their last pair without being decided, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ended: Vec<String>,
    /// By the name the plan's sides have for it.
    pub kernels: BTreeMap<String, KernelIdentity>,
    /// By the same names what their configs do not have in common, and what spoils measurements; kernels
    /// whose config is not known left out.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub configs: BTreeMap<String, Options>,
    /// Ids of the runs whose sides are compared; empty for a run that was carried out.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub compared: Vec<String>,
    /// The file that it was read from, if it was exported.
    #[serde(skip)]
    pub exported: Option<PathBuf>,
}

impl RunInfo {
    /// A run of this kduel, yet without a folder.
    pub fn new(accelerator: Accel, command: Vec<String>) -> Self {
        Self {
            format: RUN_FORMAT.to_owned(),
            id: RunId(String::new()),
            started: jiff::Timestamp::UNIX_EPOCH,
            label: None,
            out: None,
            case: None,
            kduel: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            accelerator,
            qemu: None,
            host: HostInfo::default(),
            ended: Vec::new(),
            kernels: BTreeMap::new(),
            configs: BTreeMap::new(),
            compared: Vec::new(),
            exported: None,
        }
    }

    /// How a command names this run: its id, or its folder if it is not in the state directory, or
    /// the file that it was exported into.
    pub fn reference(&self) -> String {
        if let Some(file) = &self.exported {
            return file.display().to_string();
        }
        match &self.out {
            Some(out) => out.join(&self.id.0).display().to_string(),
            None => self.id.0.clone(),
        }
    }
}

/// The host, as far as it may matter to a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HostInfo {
    /// `uname -r`.
    pub kernel: String,
    /// `model name` of the first CPU.
    pub cpu_model: String,
    /// CPUs that are online.
    pub cpus: u32,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
}

impl HostInfo {
    /// Reads the host below `root`, which is `/` outside of tests. What cannot be read stays empty.
    pub fn read(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let cpuinfo = read("proc/cpuinfo");
        let value = |line: &str| line.split_once(':').map(|(_, value)| value.trim().to_owned());
        let is = |key: &'static str| move |line: &&str| line.starts_with(key);
        Self {
            kernel: read("proc/sys/kernel/osrelease").trim().to_owned(),
            cpu_model: cpuinfo.lines().find(is("model name")).and_then(value).unwrap_or_default(),
            cpus: u32::try_from(cpuinfo.lines().filter(is("processor")).count())
                .unwrap_or(u32::MAX),
            boot_id: read("proc/sys/kernel/random/boot_id").trim().to_owned(),
        }
    }
}

/// The QEMU in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct QemuInfo {
    /// The program.
    pub path: PathBuf,
    /// As it tells it: `10.0.2`.
    pub version: String,
}

/// Which files a kernel was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct KernelIdentity {
    /// `uname -r`.
    pub release: String,
    /// Package and version, or path: for people.
    pub origin: String,
    /// SHA-256 of the bzImage, lower-case hex.
    pub image_sha256: String,
    /// SHA-256 of the base initramfs, lower-case hex.
    pub initramfs_sha256: String,
    /// What it was built of; absent if it was not built here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source: Option<SourceIdentity>,
}

/// What a kernel was built of, as far as it can be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SourceIdentity {
    /// The commit, by its full id; that of a working tree is known to kduel's cache alone. Absent where
    /// the source is not from git.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
    /// The commit that the changes are counted from; absent if that is `commit`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub base: Option<String>,
    /// The changes in the run's folder, as patches. Absent if there are none, or too many to be kept:
    /// then both commits name them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub changes: Option<PathBuf>,
    /// Files that the changes touch.
    pub files: usize,
    /// Lines that they add.
    pub added: usize,
    /// Lines that they remove.
    pub removed: usize,
}

impl From<&Kernel> for KernelIdentity {
    fn from(kernel: &Kernel) -> Self {
        Self {
            release: kernel.release.clone(),
            origin: kernel.origin.clone(),
            image_sha256: kernel.image_sha256.clone(),
            initramfs_sha256: kernel.initramfs_sha256.clone(),
            source: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_as_far_as_it_can_be() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(HostInfo::read(root.path()), HostInfo::default());
        let random = root.path().join("proc/sys/kernel/random");
        std::fs::create_dir_all(&random).unwrap();
        std::fs::write(random.join("boot_id"), "5f-6a\n").unwrap();
        let cpuinfo = "processor\t: 0\nmodel name\t: A: B\n\nprocessor\t: 1\nmodel name\t: A: B\n";
        std::fs::write(root.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        let host = HostInfo::read(root.path());
        assert_eq!(
            (host.cpu_model.as_str(), host.cpus, host.boot_id.as_str()),
            ("A: B", 2, "5f-6a")
        );
        assert_eq!(host.kernel, "");
    }
}
