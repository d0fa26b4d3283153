use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::setup::archive::Archive;
use crate::shell::{self, Tool};
use crate::workspace;

/// Far more than a boot takes even on a busy host.
const DEADLINE: Duration = Duration::from_secs(300);

/// virtme-ng with a kernel for it, both in kduel's cache; the host stays as it is.
pub struct Virtme {
    folder: PathBuf,
    kernel: PathBuf,
}

impl Virtme {
    /// Installs what is not there yet.
    pub fn prepare() -> Result<Self> {
        let folder = workspace::cache_folder()?.join("bench");
        fs::create_dir_all(folder.join("bin"))
            .with_context(|| format!("failed to create {}", folder.display()))?;
        if !folder.join("venv/bin/vng").is_file() {
            install_virtme(&folder)?;
        }
        if find_kernel(&folder).is_none() || !folder.join("bin/modprobe").is_file() {
            unpack_kernel(&folder)?;
        }
        let kernel = find_kernel(&folder).context("the kernel's package holds no kernel")?;
        Ok(Self { folder, kernel })
    }

    /// From its start until `uname -r` has answered, in seconds.
    ///
    /// The answer goes into a file that guest and host share: without udev on the host virtme-ng
    /// finds neither the streams nor the exit status of what it runs.
    pub fn seconds_to_answer(&self) -> Result<f64> {
        let name = self.kernel.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let release = name.trim_start_matches("vmlinuz-");
        let shared = tempfile::tempdir_in(&self.folder).context("failed to create a folder")?;
        let file = shared.path().join("answer");
        let vng = Tool::new(self.folder.join("venv/bin/vng"))
            .arg("--run")
            .arg(&self.kernel)
            .args(["--disable-kvm", "--cpus", "2"])
            .arg(format!("--rwdir={}", shared.path().display()))
            .args(["--", &format!("uname -r > {}", file.display())])
            .env("PATH", self.path()?)
            .in_folder(&self.folder);
        let answered = || fs::read_to_string(&file).is_ok_and(|answer| answer.trim() == release);
        let time = vng.time_until(DEADLINE, answered)?;
        time.as_ref()
            .map(Duration::as_secs_f64)
            .with_context(|| format!("virtme-ng's guest did not answer `uname -r` with {release}"))
    }

    /// With virtme-ng's own programs, and kmod's.
    fn path(&self) -> Result<OsString> {
        let own = [self.folder.join("bin"), self.folder.join("venv/bin")];
        let inherited = shell::variable("PATH").unwrap_or_default();
        std::env::join_paths(own.into_iter().chain(std::env::split_paths(&inherited)))
            .context("failed to put virtme-ng into PATH")
    }
}

fn install_virtme(folder: &Path) -> Result<()> {
    eprintln!("installing virtme-ng into {}", folder.display());
    Tool::new("python3").args(["-m", "venv", "venv"]).in_folder(folder).run().context(
        "failed to make an environment for virtme-ng; Debian has what is needed in python3-venv",
    )?;
    Tool::new(folder.join("venv/bin/pip")).args(["install", "--quiet", "virtme-ng"]).run()
}

/// The generic kernel, and kmod, which virtme-ng needs to find modules.
fn unpack_kernel(folder: &Path) -> Result<()> {
    let archive = Archive::of_suite("bookworm", folder)?;
    let kernel = archive.dependency("linux-image-amd64", "linux-image-")?;
    eprintln!("fetching {kernel} for virtme-ng");
    for package in [&kernel, "kmod"] {
        let file = archive.download(package)?;
        Tool::new("dpkg-deb").arg("-x").arg(&file).arg(folder.join("root")).run()?;
        fs::remove_file(&file).with_context(|| format!("failed to remove {}", file.display()))?;
    }
    for program in ["depmod", "insmod", "modprobe"] {
        let link = folder.join("bin").join(program);
        if fs::symlink_metadata(&link).is_err() {
            symlink("../root/bin/kmod", &link)
                .with_context(|| format!("failed to create {}", link.display()))?;
        }
    }
    ensure!(folder.join("bin/modprobe").is_file(), "the package of kmod is not laid out as known");
    Ok(())
}

fn find_kernel(folder: &Path) -> Option<PathBuf> {
    let files = fs::read_dir(folder.join("root/boot")).ok()?;
    let mut paths = files.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
    })
}
