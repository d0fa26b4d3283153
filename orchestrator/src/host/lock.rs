//! One measuring run at a time on a CPU of the host: a file per CPU, locked while the run lasts. The
//! kernel gives locks back when a process ends, however it ends; the files stay.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::topology::CpuList;
use crate::fault::Failure;

/// Longest that a file says of its holder.
const MOST_READ: u64 = 4096;

/// CPUs that no other run measures on until this is dropped.
#[derive(Debug)]
pub struct CpuLock(Vec<File>);

/// Why CPUs could not be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another run has them.
    Held {
        /// One of them.
        cpu: u32,
        /// As the other run describes itself.
        by: String,
    },
    /// The files cannot be used.
    Failed(Failure),
}

impl CpuLock {
    /// Locks all of `cpus` or none, and says by whom: a line. `folder` is made if it is not there,
    /// for all users of the host.
    ///
    /// # Errors
    ///
    /// Another run holds one of them, or the files cannot be used.
    pub fn try_take(folder: &Path, cpus: &CpuList, holder: &str) -> Result<Self, LockError> {
        make_folder(folder)
            .map_err(|error| failed("make the folder of CPU locks", folder, &error))?;
        let mut files = Vec::new();
        for cpu in cpus.iter() {
            let path = folder.join(format!("cpu{cpu}.lock"));
            let file = open(&path).map_err(|error| failed("open", &path, &error))?;
            match file.try_lock() {
                Ok(()) => files.push(file),
                Err(TryLockError::WouldBlock) => {
                    return Err(LockError::Held { cpu, by: told(&file) });
                }
                Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
            }
        }
        let mut lock = Self(files);
        lock.tell(holder);
        Ok(lock)
    }

    /// Says anew who holds them.
    pub fn tell(&mut self, holder: &str) {
        for file in &mut self.0 {
            // A file of another user's may be one that cannot be written; it is locked all the same.
            let _ = write(file, holder);
        }
    }
}

impl Drop for CpuLock {
    fn drop(&mut self) {
        self.tell("");
    }
}

/// Where the locks of this host are: a folder that all its users share, if there is one.
pub fn folder(said: Option<&Path>, runtime: Option<&Path>, state: &Path) -> PathBuf {
    if let Some(said) = said {
        return said.to_owned();
    }
    let shared = Path::new("/run/lock");
    let places = [Some(shared), runtime].into_iter().flatten().map(|place| place.join("kduel"));
    let usable = |place: &PathBuf| make_folder(place).is_ok() && is_writable(place);
    places.into_iter().find(usable).unwrap_or_else(|| state.join("locks"))
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

/// As `/tmp`: everybody makes files, and removes only their own.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o1777))
}

/// Another user's file is not made anew: kernels refuse that in such folders.
fn open(path: &Path) -> io::Result<File> {
    let options = || {
        let mut options = OpenOptions::new();
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        options.read(true).custom_flags(flags);
        options
    };
    match options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match options().write(true).create_new(true).mode(0o666).open(path) {
                Ok(file) => {
                    file.set_permissions(Permissions::from_mode(0o666))?;
                    Ok(file)
                }
                // Another run was quicker.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    options().write(true).open(path)
                }
                Err(error) => Err(error),
            }
        }
        // Enough for a lock.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => options().open(path),
        opened => opened,
    }
}

fn write(file: &mut File, text: &str) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(text.as_bytes())
}

fn told(file: &File) -> String {
    let mut text = String::new();
    let read = file.take(MOST_READ).read_to_string(&mut text);
    match read {
        Ok(_) if !text.trim().is_empty() => text.trim().to_owned(),
        _ => "a process that does not say which".to_owned(),
    }
}

fn failed(doing: &str, path: &Path, error: &io::Error) -> LockError {
    LockError::Failed(
        Failure::host_io(doing, path, error)
            .hint("name another folder, the same for all runs of this host, with KDUEL_LOCK_DIR"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuList {
        CpuList::parse(text).unwrap()
    }

    fn holder(error: LockError) -> (u32, String) {
        match error {
            LockError::Held { cpu, by } => (cpu, by),
            LockError::Failed(failure) => panic!("{failure}"),
        }
    }

    #[test]
    fn a_cpu_is_measured_on_by_one_run_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new/locks");
        let mut first = CpuLock::try_take(&folder, &list("1-2"), "pid 7").unwrap();
        first.tell("pid 7, run x");
        let refused = CpuLock::try_take(&folder, &list("0,2"), "pid 8").unwrap_err();
        assert_eq!(holder(refused), (2, "pid 7, run x".to_owned()));
        // What it had of them was given back.
        let other = CpuLock::try_take(&folder, &list("0,3"), "pid 9").unwrap();
        drop(first);
        CpuLock::try_take(&folder, &list("1-2"), "pid 8").unwrap();
        drop(other);
    }

    #[test]
    fn a_link_in_the_place_of_a_lock_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        std::fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, folder.path().join("cpu0.lock")).unwrap();
        let refused = CpuLock::try_take(folder.path(), &list("0"), "pid 8").unwrap_err();
        assert!(matches!(refused, LockError::Failed(_)));
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
    }

    #[test]
    fn the_folder_is_the_one_that_was_said_or_one_that_can_be_written() {
        let state = Path::new("/state");
        assert_eq!(folder(Some(Path::new("/said")), None, state), Path::new("/said"));
    }
}
