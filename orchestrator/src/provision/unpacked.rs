//! Kernel packages unpacked in the cache: one folder per set of packages, with a `SHA256SUMS` that
//! `sha256sum -c` reads.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::cache::{Cache, is_temporary, read_verified, sha256_of, sweep};
use super::lock::LockedPackage;
use super::modules::ModuleTree;
use super::{bzimage, deb};
use crate::clock;
use crate::fault::{Failure, FailureClass};

const FOLDER: &str = "kernels";
const SUMS: &str = "SHA256SUMS";
const ABOUT: &str = "kernel.json";

/// What is known of an unpacked kernel. Stored in its folder as `kernel.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    /// `uname -r`.
    pub release: String,
    /// The packages, in the order in which they were given.
    pub packages: Vec<LockedPackage>,
    /// How many modules there are.
    pub modules: usize,
}

impl About {
    /// Name and version of the first package: for people.
    pub fn name(&self) -> String {
        name(&self.packages)
    }
}

fn name(packages: &[LockedPackage]) -> String {
    packages.first().map_or_else(String::new, |first| format!("{} {}", first.name, first.version))
}

/// A kernel's folder in the cache; its files are checked when they are read.
#[derive(Debug, Clone)]
pub struct Unpacked {
    /// The folder.
    pub dir: PathBuf,
    /// What is known of it.
    pub about: About,
    digests: BTreeMap<PathBuf, String>,
}

impl Unpacked {
    /// The kernel in these packages, unpacked if it is not yet or no longer what it was. `debs` has
    /// the file of each package; `tell` is called if something has to be unpacked. One kduel at a
    /// time, see [`Cache::lock`].
    ///
    /// # Errors
    /// If a package is broken, there is no kernel in them, or the cache cannot be written.
    pub fn get(
        cache: &Cache,
        debs: &[PathBuf],
        packages: &[LockedPackage],
        tell: &dyn Fn(String),
    ) -> Result<Self, Failure> {
        let dir = cache.folder(FOLDER)?.join(key(packages));
        match Self::open(&dir).and_then(|unpacked| unpacked.verify_kernel().map(|()| unpacked)) {
            Ok(unpacked) => return Ok(unpacked),
            Err(failure) if dir.exists() => {
                tracing::warn!(dir = %dir.display(), %failure, "unpacking a kernel again");
                fs::remove_dir_all(&dir)
                    .map_err(|error| Failure::host_io("delete", &dir, &error))?;
            }
            Err(_) => {}
        }
        sweep(&cache.folder(FOLDER)?);
        tell(format!("unpacking {}", name(packages)));
        unpack(cache, &dir, debs, packages)?;
        Self::open(&dir)
    }

    /// All kernels unpacked in the cache, sorted by release; folders that cannot be read left out.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn all(cache: &Cache) -> Result<Vec<Self>, Failure> {
        let folder = cache.folder(FOLDER)?;
        let entries =
            fs::read_dir(&folder).map_err(|error| Failure::host_io("list", &folder, &error))?;
        // A folder with a temporary name may not be whole yet, or never.
        let whole = entries.flatten().filter(|entry| !is_temporary(&entry.file_name()));
        let mut all: Vec<Self> = whole.filter_map(|entry| Self::open(&entry.path()).ok()).collect();
        all.sort_by(|a, b| a.about.release.cmp(&b.about.release).then(a.dir.cmp(&b.dir)));
        Ok(all)
    }

    fn open(dir: &Path) -> Result<Self, Failure> {
        let read = |name: &str| {
            let path = dir.join(name);
            fs::read_to_string(&path).map_err(|error| Failure::host_io("read", &path, &error))
        };
        let about = serde_json::from_str(&read(ABOUT)?)
            .map_err(|error| Failure::new(FailureClass::HostIo, format!("{ABOUT}: {error}")))?;
        let digests = read(SUMS)?
            .lines()
            .filter_map(|line| line.split_once("  "))
            .map(|(digest, path)| (PathBuf::from(path), digest.to_owned()))
            .collect();
        Ok(Self { dir: dir.to_owned(), about, digests })
    }

    /// Whether kernel and config are what was unpacked.
    ///
    /// # Errors
    /// If they are not, or cannot be read.
    pub fn verify_kernel(&self) -> Result<(), Failure> {
        for name in ["vmlinuz", "config"] {
            if let Some(digest) = self.digest(name) {
                read_verified(&self.dir.join(name), digest)?;
            }
        }
        Ok(())
    }

    /// What the folder takes on the disk, in bytes.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn size_bytes(&self) -> Result<u64, Failure> {
        let mut bytes = 0;
        for path in self.digests.keys() {
            let path = self.dir.join(path);
            let meta =
                fs::metadata(&path).map_err(|error| Failure::host_io("read", &path, &error))?;
            bytes += meta.len();
        }
        Ok(bytes)
    }

    /// How long ago it was unpacked.
    pub fn age(&self) -> Option<Duration> {
        let unpacked = fs::metadata(self.dir.join(ABOUT)).ok()?.modified().ok()?;
        SystemTime::try_from(clock::now()).ok()?.duration_since(unpacked).ok()
    }

    /// The SHA-256 of a file by its name in the folder: `vmlinuz`, `config`.
    pub fn digest(&self, name: &str) -> Option<&str> {
        self.digests.get(Path::new(name)).map(String::as_str)
    }

    /// SHA-256 of kernel and config by their names.
    pub fn kernel_digests(&self) -> BTreeMap<PathBuf, String> {
        let names = self.digests.iter().filter(|(path, _)| path.components().count() == 1);
        names.map(|(path, digest)| (path.clone(), digest.clone())).collect()
    }

    /// The modules, checked against their digests when they are read.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn modules(&self) -> Result<ModuleTree, Failure> {
        let below = self.digests.iter().filter_map(|(path, digest)| {
            Some((path.strip_prefix("modules").ok()?.to_owned(), digest.clone()))
        });
        Ok(ModuleTree::scan(&self.dir.join("modules"))?.with_digests(below.collect()))
    }
}

/// Folders of the same packages have the same name, in whatever order the packages are given.
fn key(packages: &[LockedPackage]) -> String {
    let mut digests: Vec<&str> = packages.iter().map(|package| package.sha256.as_str()).collect();
    digests.sort_unstable();
    sha256_of(digests.join("\n").as_bytes())
}

/// Unpacks into a folder beside `dir` and renames it, so that `dir` is whole or not there. Nothing
/// is synced: what a power cut spoils, the digests show.
fn unpack(
    cache: &Cache,
    dir: &Path,
    debs: &[PathBuf],
    packages: &[LockedPackage],
) -> Result<(), Failure> {
    let folder = cache.folder(FOLDER)?;
    let failed = |error: std::io::Error| Failure::host_io("write", dir, &error);
    let temporary = tempfile::tempdir_in(&folder).map_err(failed)?;
    let mut digests = BTreeMap::new();
    for deb in debs {
        digests.extend(deb::unpack(deb, temporary.path())?);
    }
    let image = temporary.path().join("vmlinuz");
    if !digests.contains_key(Path::new("vmlinuz")) {
        return Err(no_kernel(&name(packages)));
    }
    let content = fs::read(&image).map_err(|error| Failure::host_io("read", &image, &error))?;
    let modules = temporary.path().join("modules");
    let about = About {
        release: bzimage::release(&content, &image)?,
        packages: packages.to_vec(),
        modules: if modules.exists() { ModuleTree::scan(&modules)?.len() } else { 0 },
    };
    let sums: String =
        digests.iter().map(|(path, digest)| format!("{digest}  {}\n", path.display())).collect();
    let about = serde_json::to_string_pretty(&about).unwrap_or_default();
    fs::create_dir_all(&modules).map_err(failed)?;
    fs::write(temporary.path().join(SUMS), sums).map_err(failed)?;
    fs::write(temporary.path().join(ABOUT), about).map_err(failed)?;
    let temporary = temporary.keep();
    fs::set_permissions(&temporary, Permissions::from_mode(0o755)).map_err(failed)?;
    fs::rename(&temporary, dir).map_err(failed)
}

fn no_kernel(packages: &str) -> Failure {
    Failure::new(FailureClass::KernelUnusable, format!("there is no kernel in {packages}")).hint(
        "since 7.x a kernel is split: give linux-binary-*, linux-modules-* and linux-base-* together \
         (in the document: deb: with also:)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::testing;

    #[test]
    fn a_package_is_unpacked_once_and_again_if_it_was_changed() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path());
        let deb = dir.path().join("k.deb");
        fs::write(&deb, testing::kernel_deb("6.1.0-9-test")).unwrap();
        let packages = [testing::package("linux-image-test", "1", "ab")];
        let get = || Unpacked::get(&cache, std::slice::from_ref(&deb), &packages, &|_| ()).unwrap();
        let first = get();
        assert_eq!(first.about.release, "6.1.0-9-test");
        assert_eq!(first.kernel_digests().len(), 2);
        let image = first.dir.join("vmlinuz");
        assert_eq!(fs::metadata(&image).unwrap().permissions().mode() & 0o777, 0o444);

        let before = fs::metadata(&image).unwrap().modified().unwrap();
        assert_eq!(get().dir, first.dir);
        assert_eq!(fs::metadata(&image).unwrap().modified().unwrap(), before, "not unpacked again");

        fs::remove_file(&image).unwrap();
        fs::write(&image, "spoilt").unwrap();
        get();
        assert_eq!(sha256_of(&fs::read(&image).unwrap()), first.digest("vmlinuz").unwrap());
        assert_eq!(Unpacked::all(&cache).unwrap().len(), 1);
    }

    #[test]
    fn what_a_killed_kduel_left_is_no_kernel_and_is_swept_up() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path());
        let deb = dir.path().join("k.deb");
        fs::write(&deb, testing::kernel_deb("6.1.0-9-test")).unwrap();
        let packages = [testing::package("linux-image-test", "1", "ab")];
        let get = || Unpacked::get(&cache, std::slice::from_ref(&deb), &packages, &|_| ()).unwrap();
        let whole = get().dir;
        let left = whole.with_file_name(".tmpX1y2Z3");
        fs::rename(&whole, &left).unwrap();
        assert!(Unpacked::all(&cache).unwrap().is_empty());
        get();
        assert!(!left.exists());
    }

    #[test]
    fn the_order_of_packages_does_not_matter() {
        let (a, b) = (testing::package("a", "1", "aa"), testing::package("b", "1", "bb"));
        assert_eq!(key(&[a.clone(), b.clone()]), key(&[b, a]));
    }
}
