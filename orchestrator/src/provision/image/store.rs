//! Images in the cache: by recipe, then by digest.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ImagesLock;
use super::build::build;
use super::recipe::Recipe;
use crate::boot::ImageFile;
use crate::fault::{Failure, FailureClass};
use crate::provision::apt::Apt;
use crate::provision::cache::{Cache, sweep, write_atomically};
use crate::provision::sha256_of_file;

/// The folder in the cache.
const FOLDER: &str = "images";

/// What is known of a built image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Record {
    /// What the user called it when it was built.
    pub name: String,
    /// [`Recipe::digest`].
    pub recipe: String,
    /// Its suite.
    pub suite: String,
    /// SHA-256 of the image, lower-case hex.
    pub sha256: String,
    /// Its size, a multiple of 2 MiB.
    pub bytes: u64,
    /// `NAME VERSION` of every package in it.
    pub packages: Vec<String>,
}

/// The images of a cache.
pub struct Images {
    cache: Cache,
    host_root: PathBuf,
    tell: Arc<dyn Fn(String) + Send + Sync>,
}

impl Images {
    /// In this cache, with a listener for what takes time.
    pub fn new(cache: Cache, tell: Arc<dyn Fn(String) + Send + Sync>) -> Self {
        Self { cache, host_root: PathBuf::from("/"), tell }
    }

    /// The image of `recipe`, built unless it was before; with `anew` even then. One that the lock
    /// pins must be the one that is pinned.
    ///
    /// # Errors
    /// If it cannot be built, or what comes out is not what is pinned.
    pub fn get(
        &self,
        name: &str,
        recipe: &Recipe,
        lock: Option<&mut ImagesLock>,
        anew: bool,
    ) -> Result<ImageFile, Failure> {
        let digest = recipe.digest().map_err(|error| {
            Failure::new(
                FailureClass::HostIo,
                format!("failed to read a file of `{name}`: {error}"),
            )
        })?;
        let pinned = lock.as_ref().and_then(|lock| lock.get(name, &digest)).filter(|_| !anew);
        if let Some(pinned) = pinned
            && let Some(file) = self.file(&pinned.sha256)?
        {
            return Ok(file);
        }
        let held = self.cache.lock(FOLDER, || {
            (self.tell)("waiting for another kduel that builds an image".to_owned());
        })?;
        let found = if anew { None } else { self.record(&digest)? };
        let record = match found {
            Some(record) => record,
            None => self.build(name, recipe, digest)?,
        };
        drop(held);
        if let Some(pinned) = pinned
            && pinned.sha256 != record.sha256
        {
            return Err(moved_on(name, pinned, &record));
        }
        let file = self.file(&record.sha256)?.ok_or_else(|| gone(name, &record.sha256))?;
        if let Some(lock) = lock {
            lock.set(name, record);
        }
        Ok(file)
    }

    /// The image with this digest, checked; nothing if it is not in the cache.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn file(&self, sha256: &str) -> Result<Option<ImageFile>, Failure> {
        let Some(path) = self.cache.get(sha256)? else { return Ok(None) };
        let meta = fs::metadata(&path).map_err(|error| Failure::host_io("read", &path, &error))?;
        Ok(Some(ImageFile { path, sha256: sha256.to_owned(), bytes: meta.len() }))
    }

    /// What was built, in no order that matters.
    ///
    /// # Errors
    /// If the cache cannot be read.
    pub fn all(&self) -> Result<Vec<Record>, Failure> {
        let folder = self.cache.folder(FOLDER)?;
        let entries =
            fs::read_dir(&folder).map_err(|error| Failure::host_io("list", &folder, &error))?;
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
        paths.sort();
        paths.iter().filter_map(|path| read(path).transpose()).collect()
    }

    /// Removes an image and what is known of it; its size in bytes.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn remove(&self, record: &Record) -> Result<u64, Failure> {
        let known = self.cache.folder(FOLDER)?.join(format!("{}.json", record.recipe));
        let image = self.cache.folder("by-sha256")?.join(&record.sha256);
        for path in [&known, &image] {
            match fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::host_io("delete", path, &error)),
            }
        }
        Ok(record.bytes)
    }

    /// What is known of an image of this recipe whose file is still there.
    fn record(&self, digest: &str) -> Result<Option<Record>, Failure> {
        let path = self.cache.folder(FOLDER)?.join(format!("{digest}.json"));
        let Some(record) = read(&path)? else { return Ok(None) };
        Ok(self.file(&record.sha256)?.map(|_| record))
    }

    fn build(&self, name: &str, recipe: &Recipe, digest: String) -> Result<Record, Failure> {
        needs_tools(&self.host_root)?;
        let folder = self.cache.folder(FOLDER)?;
        // What a kduel that was killed left behind; we hold the lock.
        sweep(&folder);
        let archive = self.archive(name, recipe)?;
        let count = recipe.packages.len();
        (self.tell)(format!("building image {name}: {count} packages of {}", recipe.suite));
        let temporary = tempfile::Builder::new()
            .tempdir_in(&folder)
            .map_err(|error| Failure::host_io("make folder", &folder, &error))?;
        let built = build(recipe, &archive, temporary.path())?;
        let failed = |error| Failure::host_io("keep", &built.file, &error);
        let sha256 = sha256_of_file(&built.file).map_err(failed)?;
        let bytes = fs::metadata(&built.file).map_err(failed)?.len();
        let kept = self.cache.folder("by-sha256")?.join(&sha256);
        fs::rename(&built.file, &kept).map_err(failed)?;
        let (name, suite) = (name.to_owned(), recipe.suite.clone());
        let record =
            Record { name, recipe: digest, suite, sha256, bytes, packages: built.packages };
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|error| Failure::new(FailureClass::Internal, format!("image: {error}")))?;
        // Last: without it nothing of the above counts.
        write_atomically(&folder.join(format!("{}.json", record.recipe)), &text, 0o644)?;
        Ok(record)
    }

    /// The line of the archive; complains of all packages that the suite does not have.
    fn archive(&self, name: &str, recipe: &Recipe) -> Result<String, Failure> {
        let dir = self.cache.folder("apt")?.join(recipe.suite.replace('/', "_"));
        let apt = Apt::new(&self.host_root, &dir, &recipe.suite)?;
        if !apt.is_fresh() {
            (self.tell)(format!("fetching the package lists of {}", recipe.suite));
            apt.update()?;
        }
        let there = apt.show(&recipe.packages)?;
        let missing: Vec<&String> = recipe
            .packages
            .iter()
            .filter(|wanted| !there.iter().any(|found| found.name == **wanted))
            .collect();
        if missing.is_empty() {
            return apt.line();
        }
        let names = missing.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        let title =
            format!("image {name}: the Debian suite {} has no package {names}", recipe.suite);
        let failure = Failure::new(FailureClass::ImageUnusable, title);
        let start: String = missing[0].chars().take(3).collect();
        let near = apt.names(&start)?;
        let near = crate::text::nearest(missing[0], near.iter().map(String::as_str));
        Err(match near {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => {
                failure.hint("a package is listed by its own name, as `apt-cache show` knows it")
            }
        })
    }
}

fn read(path: &Path) -> Result<Option<Record>, Failure> {
    match fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::host_io("read", path, &error)),
    }
}

fn needs_tools(root: &Path) -> Result<(), Failure> {
    let folders = ["usr/bin", "usr/sbin", "usr/local/bin", "bin", "sbin"];
    let is_there = |program: &str| folders.iter().any(|at| root.join(at).join(program).exists());
    let missing: Vec<&str> = [("mmdebstrap", "mmdebstrap"), ("mkfs.erofs", "erofs-utils")]
        .iter()
        .filter(|(program, _)| !is_there(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" ");
    let title = format!("images need programs that this host does not have: {missing}");
    Err(Failure::new(FailureClass::ToolMissing, title)
        .hint(format!("install them: apt-get install {missing}")))
}

/// Of a run that began with an image.
fn gone(name: &str, sha256: &str) -> Failure {
    let short: String = sha256.chars().take(12).collect();
    let title = format!("image {name} ({short}) is no longer in the cache");
    Failure::new(FailureClass::ImageUnusable, title).hint("build it: kduel images build")
}

fn moved_on(name: &str, pinned: &Record, built: &Record) -> Failure {
    let title = format!("image {name} is not what images.lock pins: its packages have moved on");
    let new = built.packages.iter().filter(|package| !pinned.packages.contains(package));
    let failure = Failure::new(FailureClass::ImageUnusable, title);
    new.take(8)
        .fold(failure, |failure, package| failure.detail(format!("now {package}")))
        .hint(format!("pin what there is now: kduel images build --update {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn images(dir: &Path) -> Images {
        let mut images = Images::new(Cache::new(dir.join("cache")), Arc::new(|_| {}));
        images.host_root = dir.join("no-host");
        images
    }

    fn recipe() -> Recipe {
        let suite = "bookworm".to_owned();
        Recipe { suite, packages: Vec::new(), files: Default::default(), run: Vec::new() }
    }

    fn put(images: &Images) -> Record {
        let (_, sha256) = images.cache.put(b"image").unwrap();
        let recipe = recipe().digest().unwrap();
        let record = Record {
            name: "mine".into(),
            recipe,
            suite: "bookworm".into(),
            sha256,
            bytes: 5,
            packages: vec!["a 1".into()],
        };
        let path = images.cache.folder(FOLDER).unwrap().join(format!("{}.json", record.recipe));
        fs::write(path, serde_json::to_vec(&record).unwrap()).unwrap();
        record
    }

    #[test]
    fn what_was_built_needs_no_host() {
        let dir = tempfile::tempdir().unwrap();
        let images = images(dir.path());
        let record = put(&images);
        let mut lock = ImagesLock::load(&dir.path().join("images.lock")).unwrap();
        let file = images.get("mine", &recipe(), Some(&mut lock), false).unwrap();
        assert_eq!((file.sha256.as_str(), file.bytes), (record.sha256.as_str(), 5));
        assert_eq!(lock.get("mine", &record.recipe), Some(&record));
        assert_eq!(images.remove(&record).unwrap(), 5);
        assert_eq!(images.all().unwrap(), []);
        let failure = images.get("mine", &recipe(), None, false).unwrap_err();
        assert_eq!(failure.class, FailureClass::ToolMissing);
        assert!(failure.title.contains("mmdebstrap erofs-utils"), "{failure}");
    }

    #[test]
    fn what_is_pinned_is_not_replaced_silently() {
        let dir = tempfile::tempdir().unwrap();
        let images = images(dir.path());
        let record = put(&images);
        let mut lock = ImagesLock::load(&dir.path().join("images.lock")).unwrap();
        let sha256 = "0".repeat(64);
        lock.set("mine", Record { sha256, packages: Vec::new(), ..record });
        let failure = images.get("mine", &recipe(), Some(&mut lock), false).unwrap_err();
        assert!(failure.title.contains("moved on"), "{failure}");
        assert_eq!(failure.details, ["now a 1"]);
    }

    #[test]
    fn an_image_that_lost_its_file_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let images = images(dir.path());
        let record = put(&images);
        fs::remove_file(images.cache.folder("by-sha256").unwrap().join(&record.sha256)).unwrap();
        assert_eq!(images.record(&record.recipe).unwrap(), None);
    }
}
