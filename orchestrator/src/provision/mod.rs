//! Kernels and images: found, fetched, checked by SHA-256, cached by digest.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::config::{DebianSpec, KernelSpec};
use crate::fault::Failure;

mod apt;
mod archive;
mod bzimage;
mod cache;
mod compression;
mod deb;
mod debian;
mod debug_info;
mod elf;
pub mod image;
mod initramfs;
mod kconfig;
pub mod keys;
mod libraries;
mod local;
mod lock;
mod modules;
mod overlay;
mod packages;
pub mod source;
#[cfg(test)]
mod testing;
mod unpacked;
mod version;

pub use cache::{Cache, CacheLock, sha256_of, sha256_of_file};
pub use debug_info::DebugInfo;
pub use initramfs::GuestPrograms;
pub use lock::{KernelsLock, LockedKernel, LockedPackage};
pub use modules::{ModuleTree, image_modules};
pub use overlay::{GuestKeys, HOST_KEY_PATH, Overlay, pin_files};
pub use unpacked::{About, Unpacked};

/// A kernel that can be booted: files in the cache, each checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Kernel {
    /// The bzImage.
    pub image: PathBuf,
    /// SHA-256 of the bzImage, lower-case hex.
    pub image_sha256: String,
    /// `uname -r`, read from the image's header.
    pub release: String,
    /// The folder whose `kernel/` holds the modules; absent if everything is built in.
    pub modules: Option<PathBuf>,
    /// The kernel's config where it can be had.
    pub config: Option<PathBuf>,
    /// Package and version, or path: for people.
    pub origin: String,
    /// The base initramfs made for this kernel: agent, busybox, dropbear, modules.
    pub initramfs: PathBuf,
    /// SHA-256 of the base initramfs.
    pub initramfs_sha256: String,
}

impl Kernel {
    /// Stands for the kernel of a side whose machine plays a script: there is no file behind it.
    pub fn scripted() -> Self {
        let nothing = sha256_of(b"");
        Self {
            image: PathBuf::new(),
            image_sha256: nothing.clone(),
            release: "scripted".to_owned(),
            modules: None,
            config: None,
            origin: "no kernel: a script is played".to_owned(),
            initramfs: PathBuf::new(),
            initramfs_sha256: nothing,
        }
    }
}

/// A kernel's files before there is an initramfs for it.
struct Source {
    image: PathBuf,
    image_sha256: String,
    release: String,
    modules: Option<ModuleTree>,
    modules_dir: Option<PathBuf>,
    config: Option<PathBuf>,
    origin: String,
}

impl Source {
    fn of_unpacked(unpacked: Unpacked, origin: String) -> Result<Self, Failure> {
        let config = unpacked.digest("config").map(|_| unpacked.dir.join("config"));
        Ok(Self {
            image: unpacked.dir.join("vmlinuz"),
            image_sha256: unpacked.digest("vmlinuz").unwrap_or_default().to_owned(),
            release: unpacked.about.release.clone(),
            modules: Some(unpacked.modules()?),
            modules_dir: Some(unpacked.dir.join("modules")),
            config,
            origin,
        })
    }
}

/// Makes kernels ready to boot.
pub struct Provisioner {
    cache: Cache,
    agent: PathBuf,
    tell: Arc<dyn Fn(String) + Send + Sync>,
    host_root: PathBuf,
    /// Modules that guests need besides those that all need.
    modules: &'static [&'static str],
}

impl Provisioner {
    /// With a cache folder, the agent's file (a static program for this machine), and a listener
    /// for what takes time.
    pub fn new(
        cache_dir: impl Into<PathBuf>,
        agent: PathBuf,
        tell: Arc<dyn Fn(String) + Send + Sync>,
    ) -> Self {
        Self {
            cache: Cache::new(cache_dir),
            agent,
            tell,
            host_root: PathBuf::from("/"),
            modules: &[],
        }
    }

    /// For guests that need these modules, too.
    #[must_use]
    pub fn with_modules(self, modules: &'static [&'static str]) -> Self {
        Self { modules, ..self }
    }

    /// The cache.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Makes the kernel that the user calls `name` ready: found or fetched, checked, with a base
    /// initramfs. With a lock, a Debian kernel in it is taken as pinned, one that is not is pinned;
    /// the caller saves the lock. Files that the user names are taken as they are and not pinned.
    ///
    /// # Errors
    /// If the kernel cannot be had, or is nothing that can be booted here.
    pub fn kernel(
        &self,
        name: &str,
        spec: &KernelSpec,
        lock: Option<&mut KernelsLock>,
    ) -> Result<Kernel, Failure> {
        let source = self.source(name, spec, lock)?;
        self.with_initramfs(source)
    }

    /// The newest of the kernels that were fetched before, with a base initramfs.
    ///
    /// # Errors
    /// If the cache cannot be read, or the agent is not there.
    pub fn newest_cached(&self) -> Result<Option<Kernel>, Failure> {
        let newest = Unpacked::all(&self.cache)?
            .into_iter()
            .max_by(|a, b| version::compare(&a.about.release, &b.about.release));
        newest
            .map(|unpacked| {
                let origin = unpacked.about.name();
                self.with_initramfs(Source::of_unpacked(unpacked, origin)?)
            })
            .transpose()
    }

    /// The Debian kernel with this image, if it was fetched before: what a run began with, whatever
    /// its suite has by now. With a base initramfs.
    ///
    /// # Errors
    /// If the cache cannot be read, or the agent is not there.
    pub fn cached(&self, spec: &DebianSpec, image_sha256: &str) -> Result<Option<Kernel>, Failure> {
        let source = self.cached_source(spec, image_sha256)?;
        source.map(|source| self.with_initramfs(source)).transpose()
    }

    fn cached_source(
        &self,
        spec: &DebianSpec,
        image_sha256: &str,
    ) -> Result<Option<Source>, Failure> {
        let is_it = |unpacked: &Unpacked| {
            unpacked.digest("vmlinuz") == Some(image_sha256) && unpacked.verify_kernel().is_ok()
        };
        let Some(found) = Unpacked::all(&self.cache)?.into_iter().find(is_it) else {
            return Ok(None);
        };
        let origin = format!("{} ({})", found.about.name(), spec.suite);
        Source::of_unpacked(found, origin).map(Some)
    }

    fn source(
        &self,
        name: &str,
        spec: &KernelSpec,
        lock: Option<&mut KernelsLock>,
    ) -> Result<Source, Failure> {
        let as_path = |text: &Option<String>| text.as_ref().map(PathBuf::from);
        match spec {
            KernelSpec::Debian(debian) => self.debian(name, spec, debian, lock),
            KernelSpec::Deb { file, also } => self.deb_files(file, also),
            KernelSpec::Image { image, modules, config } => {
                let (modules, config) = (as_path(modules), as_path(config));
                self.image(image.as_ref(), modules.as_deref(), config.as_deref())
            }
            KernelSpec::Tree { path } => self.tree(path.as_ref()),
            KernelSpec::Host => self.host(),
            KernelSpec::Source(spec) => self.built(&self.pinned(name, spec, lock)?),
        }
    }

    fn debian(
        &self,
        name: &str,
        spec: &KernelSpec,
        debian: &DebianSpec,
        lock: Option<&mut KernelsLock>,
    ) -> Result<Source, Failure> {
        let pinned = lock.as_ref().and_then(|lock| lock.get(name, spec)).cloned();
        let (debs, packages) = match &pinned {
            Some(pinned) => (self.locked(name, debian, pinned)?, pinned.packages.clone()),
            None => self.resolved(debian)?,
        };
        let held = self.lock_unpacking()?;
        let unpacked = Unpacked::get(&self.cache, &debs, &packages, &|what| self.tell(what))?;
        drop(held);
        if let (Some(lock), None) = (lock, pinned) {
            let files = unpacked.kernel_digests();
            let release = unpacked.about.release.clone();
            lock.set(name, LockedKernel { release, spec: spec.clone(), files, packages });
        }
        let origin = format!("{} ({})", unpacked.about.name(), debian.suite);
        Source::of_unpacked(unpacked, origin)
    }

    fn with_initramfs(&self, source: Source) -> Result<Kernel, Failure> {
        let modules = source.modules.filter(|tree| !tree.is_empty());
        if let Some(path) = &source.config {
            let config = std::fs::read_to_string(path)
                .map_err(|error| Failure::host_io("read", path, &error))?;
            kconfig::check(&config, modules.is_some(), &source.origin)?;
        } else if modules.is_none() {
            self.tell(format!(
                "{}: neither config nor modules are known; virtio drivers must be built in",
                source.origin
            ));
        }
        let programs = GuestPrograms::find(self.agent.clone())?;
        let loaded = match &modules {
            Some(tree) => {
                tree.closure(&[modules::NEEDED, self.modules].concat(), &source.release)?
            }
            None => Vec::new(),
        };
        let archive = initramfs::base(&programs, &source.release, &loaded)?;
        let (initramfs, initramfs_sha256) = self.cache.put(&archive)?;
        Ok(Kernel {
            image: source.image,
            image_sha256: source.image_sha256,
            release: source.release,
            modules: modules.and(source.modules_dir),
            config: source.config,
            origin: source.origin,
            initramfs,
            initramfs_sha256,
        })
    }

    fn lock_unpacking(&self) -> Result<CacheLock, Failure> {
        self.cache.lock("kernels", || {
            self.tell("waiting for another kduel that unpacks a kernel".to_owned());
        })
    }

    fn tell(&self, what: String) {
        (self.tell)(what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FailureClass;
    use std::fs;
    use std::path::Path;

    /// On a host without apt, and without a mirror.
    fn provisioner(dir: &Path) -> Provisioner {
        Provisioner {
            cache: Cache::new(dir.join("cache")),
            agent: PathBuf::from("agent"),
            tell: Arc::new(|_| {}),
            host_root: dir.join("no-host"),
            modules: &[],
        }
    }

    fn debian() -> KernelSpec {
        let (suite, flavour) = ("bookworm".to_owned(), "cloud-amd64".to_owned());
        KernelSpec::Debian(DebianSpec { suite, flavour, version: None })
    }

    #[test]
    fn a_pinned_kernel_is_served_from_the_cache_without_any_mirror() {
        let dir = tempfile::tempdir().unwrap();
        let provisioner = provisioner(dir.path());
        let mut lock = KernelsLock::load(&dir.path().join("kernels.lock")).unwrap();
        let (_, sha256) = provisioner.cache.put(&testing::kernel_deb("6.1.0-9-test")).unwrap();
        let pinned = LockedKernel {
            release: "6.1.0-9-test".to_owned(),
            spec: debian(),
            files: Default::default(),
            packages: vec![testing::package("linux-image-6.1.0-9-test", "6.1.9-1", &sha256)],
        };
        lock.set("old", pinned);
        let source = provisioner.source("old", &debian(), Some(&mut lock)).unwrap();
        assert_eq!(source.release, "6.1.0-9-test");
        assert_eq!(source.origin, "linux-image-6.1.0-9-test 6.1.9-1 (bookworm)");
        assert_eq!(source.image_sha256, cache::sha256_of_file(&source.image).unwrap());

        let KernelSpec::Debian(spec) = debian() else { unreachable!("see above") };
        let again = provisioner.cached_source(&spec, &source.image_sha256).unwrap().unwrap();
        assert_eq!((again.image, again.origin), (source.image, source.origin));
        assert!(provisioner.cached_source(&spec, &sha256).unwrap().is_none(), "no kernel's digest");

        let failure = provisioner.source("new", &debian(), Some(&mut lock)).err().unwrap();
        assert_eq!(failure.class, FailureClass::ToolMissing, "not pinned: needs apt");
    }

    #[test]
    fn a_package_file_is_named_by_its_path_and_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let provisioner = provisioner(dir.path());
        let file = dir.path().join("k.deb").display().to_string();
        fs::write(&file, testing::kernel_deb("6.1.0-9-test")).unwrap();
        let spec = KernelSpec::Deb { file: file.clone(), also: Vec::new() };
        let source = provisioner.source("k", &spec, None).unwrap();
        assert_eq!(source.origin, file);
        let about = &Unpacked::all(&provisioner.cache).unwrap()[0].about;
        assert_eq!(about.name(), "linux-image-6.1.0-9-test 6.1.9-1");
    }

    #[test]
    fn the_running_kernel_is_found_by_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let provisioner = provisioner(dir.path());
        let failure = provisioner.source("h", &KernelSpec::Host, None).err().unwrap();
        assert_eq!(failure.class, FailureClass::KernelUnusable);
        let release = rustix::system::uname().release().to_str().unwrap().to_owned();
        let modules = provisioner.host_root.join("lib/modules").join(&release);
        fs::create_dir_all(&modules).unwrap();
        fs::write(modules.join("vmlinuz"), testing::bzimage(&release)).unwrap();
        let source = provisioner.source("h", &KernelSpec::Host, None).unwrap();
        assert_eq!(source.release, release);
        assert_eq!(source.modules_dir, Some(modules));
    }

    #[test]
    fn an_image_is_copied_so_that_a_new_build_does_not_change_it() {
        let dir = tempfile::tempdir().unwrap();
        let provisioner = provisioner(dir.path());
        let tree = dir.path().join("linux");
        let image = tree.join("arch/x86/boot/bzImage");
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        let spec = KernelSpec::Tree { path: tree.display().to_string() };
        let said = |provisioner: &Provisioner| provisioner.source("t", &spec, None).err().unwrap();
        assert!(said(&provisioner).title.contains("is no kernel tree"));
        fs::write(tree.join("Kconfig"), "").unwrap();
        assert!(said(&provisioner).title.contains("is not built"));
        fs::write(&image, testing::bzimage("6.6.1-mine")).unwrap();
        let first = provisioner.source("t", &spec, None).unwrap();
        fs::write(&image, testing::bzimage("6.6.2-mine")).unwrap();
        let second = provisioner.source("t", &spec, None).unwrap();
        assert_eq!((first.release.as_str(), second.release.as_str()), ("6.6.1-mine", "6.6.2-mine"));
        assert_eq!(cache::sha256_of_file(&first.image).unwrap(), first.image_sha256);
    }
}
