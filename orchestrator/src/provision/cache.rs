//! The cache folder: files under their SHA-256, checked whenever they are used, and locks so that
//! two kduels do not fetch the same thing twice.
//!
//! Hashing is done every time: with the processor's SHA instructions the 35 MB of a kernel and its
//! initramfs take less than 0.1 s, and a remembered time stamp would not see a bad disk.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fault::{Failure, FailureClass};

/// A cache folder.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

/// Held while one kduel works on something that others must not work on at the same time.
#[derive(Debug)]
pub struct CacheLock {
    _file: File,
}

impl Cache {
    /// The cache in `dir`, which is made when something is put into it.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// A folder in the cache, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.dir.join(name);
        fs::create_dir_all(&path)
            .map_err(|error| Failure::host_io("make folder", &path, &error))?;
        Ok(path)
    }

    /// The path of the file with this digest, if it is there and still has that digest. One that
    /// has changed is deleted.
    ///
    /// # Errors
    /// If it is there and cannot be read or deleted, or `sha256`, which may come from a lock file
    /// that somebody else wrote, is no digest.
    pub fn get(&self, sha256: &str) -> Result<Option<PathBuf>, Failure> {
        if !is_digest(sha256) {
            let title = format!("`{sha256}` is no SHA-256 in lower-case hex");
            return Err(Failure::new(FailureClass::KernelUnusable, title)
                .hint("where a lock file says so, delete its entry to resolve the kernel anew"));
        }
        let path = self.folder("by-sha256")?.join(sha256);
        match sha256_of_file(&path) {
            Ok(found) if found == sha256 => Ok(Some(path)),
            Ok(_) => {
                tracing::warn!(path = %path.display(), "cached file has changed, deleting it");
                fs::remove_file(&path)
                    .map_err(|error| Failure::host_io("delete", &path, &error))?;
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::host_io("read", &path, &error)),
        }
    }

    /// Puts `content` in under its digest: path and digest.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn put(&self, content: &[u8]) -> Result<(PathBuf, String), Failure> {
        let sha256 = sha256_of(content);
        if let Some(path) = self.get(&sha256)? {
            return Ok((path, sha256));
        }
        let path = self.folder("by-sha256")?.join(&sha256);
        write_atomically(&path, content, 0o444)?;
        Ok((path, sha256))
    }

    /// Copies a file in under its digest: path and digest.
    ///
    /// # Errors
    /// If the file cannot be read or the cache cannot be written.
    pub fn put_file(&self, file: &Path) -> Result<(PathBuf, String), Failure> {
        let content = fs::read(file).map_err(|error| Failure::host_io("read", file, &error))?;
        self.put(&content)
    }

    /// Waits for and takes the lock `name`; `waiting` is called once if another kduel holds it.
    ///
    /// # Errors
    /// If the lock file cannot be made or locked.
    pub fn lock(&self, name: &str, waiting: impl FnOnce()) -> Result<CacheLock, Failure> {
        let path = self.folder("locks")?.join(name);
        let failed = |error: io::Error| Failure::host_io("lock", &path, &error);
        let file = File::options().create(true).append(true).open(&path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                waiting();
                file.lock().map_err(failed)?;
            }
            Err(fs::TryLockError::Error(error)) => return Err(failed(error)),
        }
        Ok(CacheLock { _file: file })
    }
}

/// Writes a file so that a reader sees the old content or the new one, also after a power cut.
///
/// # Errors
/// If the folder cannot be written.
pub fn write_atomically(path: &Path, content: &[u8], mode: u32) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    let write = || -> io::Result<()> {
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(content)?;
        temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
        temporary.as_file().sync_all()?;
        temporary.persist(path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| Failure::host_io("write", path, &error))
}

/// Deletes the temporary folders of a kduel that was killed. Whoever calls holds the lock under which
/// they are made, so none is in use.
pub fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_temporary(&entry.file_name())
            && let Err(error) = fs::remove_dir_all(entry.path())
        {
            tracing::warn!(path = %entry.path().display(), %error, "a temporary folder stays");
        }
    }
}

/// Whether tempfile gave a folder its name.
pub fn is_temporary(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".tmp")
}

/// Lower-case hex SHA-256 of bytes.
pub fn sha256_of(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Lower-case hex SHA-256 of a file.
///
/// # Errors
/// If it cannot be read.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            n => hasher.update(&buffer[..n]),
        }
    }
}

/// Reads a file that must have this digest.
///
/// # Errors
/// If it cannot be read, or has another digest.
pub fn read_verified(path: &Path, sha256: &str) -> Result<Vec<u8>, Failure> {
    let content = fs::read(path).map_err(|error| Failure::host_io("read", path, &error))?;
    let found = sha256_of(&content);
    if found == sha256 {
        return Ok(content);
    }
    Err(Failure::new(FailureClass::HostIo, format!("{} has changed in the cache", path.display()))
        .detail(format!("SHA-256 wanted {sha256}"))
        .detail(format!("SHA-256 found  {found}"))
        .hint("delete the file's folder and run the command again"))
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_comes_out_read_only_and_under_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path());
        let (path, sha256) = cache.put(b"abc").unwrap();
        assert_eq!(sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
        assert_eq!(cache.get(&sha256).unwrap(), Some(path.clone()));
        assert_eq!(cache.put(b"abc").unwrap().0, path);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_changed_file_is_deleted_and_not_served() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path());
        let (path, sha256) = cache.put(b"abc").unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "abd").unwrap();
        assert_eq!(cache.get(&sha256).unwrap(), None);
        assert!(!path.exists());
        assert!(read_verified(&cache.put(b"x").unwrap().0, &sha256).is_err());
    }

    #[test]
    fn what_is_no_digest_names_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path().join("cache"));
        let precious = dir.path().join("precious");
        fs::write(&precious, "mine").unwrap();
        for wrong in ["../../precious", precious.to_str().unwrap(), "", &"A".repeat(64)] {
            assert_eq!(cache.get(wrong).unwrap_err().class, FailureClass::KernelUnusable);
        }
        assert_eq!(fs::read(&precious).unwrap(), b"mine");
    }

    #[test]
    fn a_second_holder_waits_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(dir.path());
        let held = cache.lock("a", || panic!("nobody holds it")).unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        let other = cache.clone();
        let thread = std::thread::spawn(move || {
            other.lock("a", || said.send(()).unwrap()).unwrap();
        });
        heard.recv().unwrap();
        drop(held);
        thread.join().unwrap();
    }
}
