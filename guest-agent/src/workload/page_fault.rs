//! `page-fault`: the first touch of pages.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use kduel_protocol::TrialProblem;
use rustix::fs::MemfdFlags;

use super::huge_pages::HugePages;
use super::partners::{Partners, pipe, read_all, write_all};
use super::{Iteration, Window, Workload, failed};
use crate::sys::Mapping;

/// Pages touched between two readings of the clock.
const CHUNK: usize = 1024;
/// The same for huge pages.
const HUGE_CHUNK: usize = 8;

/// What is touched.
enum Kind {
    /// Fresh private memory.
    Anonymous,
    /// A shared mapping of a tmpfs file whose pages are all there.
    File(OwnedFd),
    /// Private memory whose pages another process has, too.
    CopyOnWrite(Mapping),
    /// Fresh private memory in huge pages.
    Huge(HugePages),
}

/// Touches pages for the first time.
pub struct PageFault {
    kind: Kind,
    page: usize,
    chunk: usize,
}

impl PageFault {
    /// `kind` as in the workload's parameter.
    pub fn new(kind: &str) -> Result<Self, TrialProblem> {
        if kind == "huge" {
            let huge = HugePages::allow()?;
            let page = huge.size();
            return Ok(Self { kind: Kind::Huge(huge), page, chunk: HUGE_CHUNK });
        }
        let page = small_pages()?;
        let kind = match kind {
            "anonymous" => Ok(Kind::Anonymous),
            "file" => cached_file(page).map(Kind::File),
            "copy-on-write" => {
                touched(Mapping::anonymous(page * CHUNK), page).map(Kind::CopyOnWrite)
            }
            other => return Err(failed("what to touch", format!("\"{other}\" is not known"))),
        };
        let kind = kind.map_err(|error| failed("mapping memory", error))?;
        Ok(Self { kind, page, chunk: CHUNK })
    }

    /// Touches `count` pages once, at most a chunk; the time of the touches alone.
    fn touch(&mut self, count: usize, window: Window) -> Result<u64, TrialProblem> {
        let bytes = self.page * self.chunk;
        let mapped =
            |result: io::Result<Mapping>| result.map_err(|error| failed("mapping memory", error));
        match &mut self.kind {
            Kind::Anonymous => {
                Ok(time_touch(&mut mapped(Mapping::anonymous(bytes))?, self.page, count, window))
            }
            Kind::Huge(pages) => {
                let mut memory = mapped(Mapping::huge(pages.size(), self.chunk))?;
                Ok(time_touch(&mut memory, self.page, count, window))
            }
            Kind::File(file) => Ok(time_touch(
                &mut mapped(Mapping::shared(file.as_fd(), bytes))?,
                self.page,
                count,
                window,
            )),
            Kind::CopyOnWrite(memory) => {
                let (silent, _held) = pipe()?;
                let (there, is_there) = pipe()?;
                let mut sharer = Partners::default();
                sharer.add(|| {
                    write_all(&is_there, &[1])?;
                    read_all(&silent, &mut [0])
                })?;
                // What it still has to do would be counted if it shared our CPU.
                read_all(&there, &mut [0]).map_err(|error| failed("the sharer", error))?;
                Ok(time_touch(memory, self.page, count, window))
            }
        }
    }
}

/// No huge pages in this process; gives the size of a page.
pub fn small_pages() -> Result<usize, TrialProblem> {
    match rustix::thread::disable_transparent_huge_pages(true) {
        // A kernel that was built without them.
        Ok(()) | Err(rustix::io::Errno::INVAL) => Ok(rustix::param::page_size()),
        Err(error) => Err(failed("switching off huge pages", error)),
    }
}

fn cached_file(page: usize) -> io::Result<OwnedFd> {
    let file = rustix::fs::memfd_create(c"kduel-page-fault", MemfdFlags::CLOEXEC)?;
    let bytes = page * CHUNK;
    rustix::fs::ftruncate(&file, bytes as u64)?;
    touched(Mapping::shared(file.as_fd(), bytes), page)?;
    Ok(file)
}

fn touched(memory: io::Result<Mapping>, page: usize) -> io::Result<Mapping> {
    let mut memory = memory?;
    memory.touch(page, CHUNK);
    Ok(memory)
}

fn time_touch(memory: &mut Mapping, page: usize, count: usize, window: Window) -> u64 {
    let open = window.open();
    memory.touch(page, count);
    open.close()
}

impl Workload for PageFault {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let mut elapsed = 0;
        let mut left = ops;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(self.chunk).min(self.chunk);
            elapsed += self.touch(count, window)?;
            left -= count as u64;
        }
        Ok(Iteration::timed(ops, elapsed))
    }
}
