//! Kernels that were built, one folder each in the cache, whole or not there; and the objects of some,
//! for builds that begin with them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::super::cache::{Cache, is_temporary, read_verified};
use super::super::modules::ModuleTree;
use super::super::{Provisioner, Source};
use super::{broken, room};
use crate::clock;
use crate::fault::{Failure, FailureClass};

const KERNELS: &str = "builds";
const OBJECTS: &str = "objects";
const ABOUT: &str = "build.json";

/// How many kernels' objects are kept, those that were used last: 300 MB each for the minimal config.
pub const OBJECTS_KEPT: usize = 3;

/// What is known of a kernel that was built. Stored in its folder as `build.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    /// `uname -r`.
    pub release: String,
    /// Source and patches, for people.
    pub origin: String,
    /// SHA-256 that stands for the source.
    pub tree_sha256: String,
    /// What the compiler says of itself.
    pub compiler: String,
    /// `KCFLAGS`.
    pub cflags: Vec<String>,
    /// SHA-256 of `vmlinuz`, `config`, `System.map` and `vmlinux`.
    pub digests: BTreeMap<String, String>,
    /// Steps that `make` printed.
    pub steps: usize,
    /// How long it took, in seconds.
    pub seconds: u64,
    /// Whether it began with the objects of another kernel.
    pub incremental: bool,
    /// How many modules there are.
    pub modules: usize,
}

/// A kernel that was built.
#[derive(Debug, Clone)]
pub struct Built {
    /// Its folder: `vmlinuz`, `config`, `System.map`, `vmlinux`, `modules`, `build.log`.
    pub dir: PathBuf,
    /// What is known of it.
    pub about: About,
}

impl Built {
    /// All in the cache, sorted by release.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn all(cache: &Cache) -> Result<Vec<Self>, Failure> {
        let mut all: Vec<Self> =
            folders(&cache.folder(KERNELS)?)?.iter().filter_map(|dir| Self::open(dir)).collect();
        all.sort_by(|a, b| a.about.release.cmp(&b.about.release).then(a.dir.cmp(&b.dir)));
        Ok(all)
    }

    /// The one with this key, if it is there and what it was.
    pub(super) fn get(cache: &Cache, key: &str) -> Result<Option<Self>, Failure> {
        let dir = cache.folder(KERNELS)?.join(key);
        Ok(Self::open(&dir).filter(|built| built.verify().is_ok()))
    }

    fn open(dir: &Path) -> Option<Self> {
        let about = serde_json::from_str(&fs::read_to_string(dir.join(ABOUT)).ok()?).ok()?;
        Some(Self { dir: dir.to_owned(), about })
    }

    fn verify(&self) -> Result<(), Failure> {
        let files = ["vmlinuz", "config"].into_iter();
        let files = files.filter_map(|name| Some((name, self.about.digests.get(name)?)));
        for (name, digest) in files {
            read_verified(&self.dir.join(name), digest)?;
        }
        Ok(())
    }

    /// Makes a folder with all of its files the kernel of `key`.
    pub(super) fn put(cache: &Cache, key: &str, dir: &Path, about: About) -> Result<Self, Failure> {
        let path = dir.join(ABOUT);
        let json = serde_json::to_vec_pretty(&about)
            .map_err(|error| Failure::new(FailureClass::Internal, error.to_string()))?;
        fs::write(&path, json).map_err(|error| broken("write", &path, &error))?;
        let place = cache.folder(KERNELS)?.join(key);
        room::clear(&place);
        fs::rename(dir, &place).map_err(|error| broken("write", &place, &error))?;
        Ok(Self { dir: place, about })
    }

    /// How long ago it was built.
    pub fn age(&self) -> Option<Duration> {
        let built = fs::metadata(self.dir.join(ABOUT)).ok()?.modified().ok()?;
        SystemTime::try_from(clock::now()).ok()?.duration_since(built).ok()
    }

    /// What its image, its `vmlinux` and its modules take on the disk, in bytes.
    pub fn size_bytes(&self) -> u64 {
        let size = |name: &str| fs::metadata(self.dir.join(name)).map_or(0, |meta| meta.len());
        self.about.digests.keys().map(|name| size(name)).sum()
    }

    /// Files and facts for whoever boots it.
    pub(super) fn source(&self) -> Result<Source, Failure> {
        let modules_dir = Some(self.dir.join("modules")).filter(|dir| dir.is_dir());
        Ok(Source {
            image: self.dir.join("vmlinuz"),
            image_sha256: self.about.digests.get("vmlinuz").cloned().unwrap_or_default(),
            release: self.about.release.clone(),
            modules: modules_dir.as_deref().map(ModuleTree::scan).transpose()?,
            modules_dir,
            config: Some(self.dir.join("config")),
            origin: self.about.origin.clone(),
        })
    }
}

/// The objects of the kernel with this key, if they are kept.
pub(super) fn objects(cache: &Cache, key: &str) -> Result<Option<PathBuf>, Failure> {
    let dir = cache.folder(OBJECTS)?.join(key);
    if !dir.is_dir() {
        return Ok(None);
    }
    // The newest are those that were used last.
    if let (Ok(folder), Ok(now)) = (File::open(&dir), SystemTime::try_from(clock::now())) {
        let _ = folder.set_modified(now);
    }
    Ok(Some(dir))
}

/// Keeps a folder of objects; of all that are kept the oldest go.
pub(super) fn keep_objects(cache: &Cache, key: &str, upper: &Path) -> Result<(), Failure> {
    let all = cache.folder(OBJECTS)?;
    let place = all.join(key);
    room::clear(&place);
    fs::rename(upper, &place).map_err(|error| broken("write", &place, &error))?;
    objects(cache, key)?;
    let mut kept = folders(&all)?;
    let used = |dir: &PathBuf| fs::metadata(dir).and_then(|meta| meta.modified()).ok();
    kept.sort_by_key(|dir| std::cmp::Reverse(used(dir)));
    for old in kept.iter().skip(OBJECTS_KEPT) {
        room::clear(old);
    }
    Ok(())
}

impl Provisioner {
    /// Deletes the objects that are kept, and with `kernels` the kernels that were built, too. Gives how
    /// many folders it were.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn drop_builds(&self, kernels: bool) -> Result<usize, Failure> {
        let _held = self.lock_building()?;
        let mut dropped = 0;
        for name in [OBJECTS, KERNELS].into_iter().take(1 + usize::from(kernels)) {
            for folder in folders(&self.cache.folder(name)?)? {
                room::clear(&folder);
                dropped += 1;
            }
        }
        Ok(dropped)
    }
}

/// Folders that are whole.
fn folders(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(dir).map_err(|error| Failure::host_io("list", dir, &error))?;
    let whole = entries.flatten().filter(|entry| !is_temporary(&entry.file_name()));
    Ok(whole.map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
}

/// Deletes what builds that were killed have left. For whoever holds the lock of the builds.
pub(super) fn sweep(cache: &Cache) -> Result<PathBuf, Failure> {
    let dir = cache.folder("rooms")?;
    for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
        room::clear(&entry.path().join("room"));
        room::clear(&entry.path());
    }
    Ok(dir)
}
