//! `file`: names of empty files on tmpfs that come, change and go.

use std::ffi::{CStr, CString, NulError};
use std::fs;

use kduel_protocol::TrialProblem;
use rustix::fs::{Mode, OFlags};

use super::window::Open;
use super::{Iteration, Window, Workload, failed};

/// In the same place in every guest.
const FOLDER: &str = "/dev/shm";

/// Files between two readings of the clock.
const CHUNK: usize = 1024;

/// Which operation is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Create,
    Unlink,
    Rename,
}

/// A file's name, and the name that it is given next.
type Names = (CString, CString);

/// Works on the files of a folder of its own.
pub struct File {
    operation: Operation,
    folder: String,
    names: Vec<Names>,
}

impl File {
    /// `name` as in the workload's parameter `op`.
    pub fn new(name: &str) -> Result<Self, TrialProblem> {
        let operation = match name {
            "create" => Operation::Create,
            "unlink" => Operation::Unlink,
            "rename" => Operation::Rename,
            other => return Err(failed("the operation", format!("\"{other}\" is not known"))),
        };
        let folder = format!("{FOLDER}/kduel-{}", rustix::process::getpid().as_raw_nonzero());
        let path = |kind: &str, place: usize| CString::new(format!("{folder}/{kind}-{place}"));
        let pair = |place| Ok((path("old", place)?, path("new", place)?));
        let names = (0..CHUNK).map(pair).collect::<Result<_, NulError>>();
        let names = names.map_err(|error| failed("the files' names", error))?;
        fs::create_dir(&folder).map_err(|error| failed(&format!("making {folder}"), error))?;
        let this = Self { operation, folder, names };
        if operation == Operation::Rename {
            let created = this.names.iter().try_for_each(|(name, _)| create(name));
            created.map_err(|error| failed(&this.folder, error))?;
        }
        Ok(this)
    }

    /// Works on the first `count` files; the time of the operation that counts, in nanoseconds.
    fn round(&mut self, count: usize, window: Window) -> rustix::io::Result<u64> {
        let names = &mut self.names[..count];
        let open = |step| (step == self.operation).then(|| window.open());
        let close = |open: Option<Open>| open.map_or(0, Open::close);
        if self.operation == Operation::Rename {
            let renaming = open(Operation::Rename);
            names.iter().try_for_each(|(from, to)| rustix::fs::rename(from, to))?;
            let elapsed_ns = close(renaming);
            names.iter_mut().for_each(|(from, to)| std::mem::swap(from, to));
            return Ok(elapsed_ns);
        }
        let creating = open(Operation::Create);
        names.iter().try_for_each(|(name, _)| create(name))?;
        let created_ns = close(creating);
        let removing = open(Operation::Unlink);
        names.iter().try_for_each(|(name, _)| rustix::fs::unlink(name))?;
        Ok(created_ns + close(removing))
    }
}

#[inline]
fn create(path: &CStr) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    // Closed when dropped.
    rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR).map(drop)
}

impl Workload for File {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let mut elapsed_ns = 0;
        let mut left = ops;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            elapsed_ns += self.round(count, window).map_err(|error| failed(&self.folder, error))?;
            left -= count as u64;
        }
        Ok(Iteration::timed(ops, elapsed_ns))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
