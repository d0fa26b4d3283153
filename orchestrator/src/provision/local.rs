//! Kernels that lie on this host: package files, an image, a built tree, the running kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::lock::LockedPackage;
use super::modules::ModuleTree;
use super::unpacked::Unpacked;
use super::{Provisioner, Source, bzimage, deb};
use crate::fault::{Failure, FailureClass};

impl Provisioner {
    /// The kernel in package files.
    pub(super) fn deb_files(&self, file: &str, also: &[String]) -> Result<Source, Failure> {
        let mut debs = Vec::new();
        let mut packages = Vec::new();
        for file in std::iter::once(file).chain(also.iter().map(String::as_str)) {
            let (path, sha256) = self.cache.put(&read_kernel(Path::new(file))?)?;
            let (name, version) = deb::name_and_version(&path, Path::new(file))?;
            debs.push(path);
            packages.push(LockedPackage { name, version, sha256 });
        }
        let _held = self.lock_unpacking()?;
        let unpacked = Unpacked::get(&self.cache, &debs, &packages, &|what| self.tell(what))?;
        Source::of_unpacked(unpacked, file.to_owned())
    }

    /// A bzImage with what belongs to it. The image is copied, so that a new build in the middle
    /// of a run does not change it.
    pub(super) fn image(
        &self,
        image: &Path,
        modules: Option<&Path>,
        config: Option<&Path>,
    ) -> Result<Source, Failure> {
        let content = read_kernel(image)?;
        let release = bzimage::release(&content, image)?;
        let (cached, image_sha256) = self.cache.put(&content)?;
        let modules_dir = modules.map(|dir| folder_of_release(dir, &release));
        let modules = modules_dir.as_deref().map(ModuleTree::scan).transpose()?;
        let config = config.map(|path| self.cache.put_file(path)).transpose()?;
        Ok(Source {
            image: cached,
            image_sha256,
            release,
            modules,
            modules_dir,
            config: config.map(|(path, _)| path),
            origin: image.display().to_string(),
        })
    }

    /// A built kernel tree.
    pub(super) fn tree(&self, tree: &Path) -> Result<Source, Failure> {
        let image = tree.join("arch/x86/boot/bzImage");
        if !image.exists() {
            let what = if tree.join("Kconfig").exists() {
                "is not built: arch/x86/boot/bzImage is not there"
            } else {
                "is no kernel tree"
            };
            return Err(Failure::new(
                FailureClass::KernelUnusable,
                format!("{} {what}", tree.display()),
            )
            .hint("build it: make bzImage modules"));
        }
        let config = Some(tree.join(".config")).filter(|path| path.exists());
        let mut source = self.image(&image, Some(tree), config.as_deref())?;
        source.origin = tree.display().to_string();
        Ok(source)
    }

    /// The running kernel.
    pub(super) fn host(&self) -> Result<Source, Failure> {
        let uname = rustix::system::uname();
        let release = uname.release().to_string_lossy().into_owned();
        let below = |path: String| self.host_root.join(path);
        let images = [
            below(format!("boot/vmlinuz-{release}")),
            below(format!("lib/modules/{release}/vmlinuz")),
        ];
        let Some(image) = images.iter().find(|path| path.exists()) else {
            return Err(Failure::new(
                FailureClass::KernelUnusable,
                format!("the image of the running kernel {release} is not on this host"),
            )
            .detail(format!("looked for {} and {}", images[0].display(), images[1].display()))
            .hint(
                "name a kernel by another SPEC: debian:bookworm, deb:FILE, ./bzImage, a built tree",
            ));
        };
        let existing = |path: PathBuf| Some(path).filter(|path| path.exists());
        let modules = existing(below(format!("lib/modules/{release}")));
        let config = existing(below(format!("boot/config-{release}")));
        self.image(image, modules.as_deref(), config.as_deref())
    }
}

fn read_kernel(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| {
        let title = format!("failed to read {}: {error}", path.display());
        let failure = Failure::new(FailureClass::KernelUnusable, title);
        match error.kind() {
            io::ErrorKind::PermissionDenied => failure.hint(format!(
                "kernel images are often readable for root only: sudo cp {} . and name the copy",
                path.display()
            )),
            _ => failure,
        }
    })
}

/// The folder for `release` at or below `dir`, if there is one of that name; else `dir` itself.
fn folder_of_release(dir: &Path, release: &str) -> PathBuf {
    ["", "lib/modules", "usr/lib/modules"]
        .iter()
        .map(|below| dir.join(below).join(release))
        .find(|path| path.is_dir())
        .unwrap_or_else(|| dir.to_owned())
}
