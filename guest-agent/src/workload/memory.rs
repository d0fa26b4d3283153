//! `mmap-munmap` and `memory`: mappings, the heap, protection, advice.

use kduel_protocol::TrialProblem;

use super::page_fault::small_pages;
use super::{Iteration, Window, Workload, failed};
use crate::sys::{Mapping, heap_end, heap_up_and_down};

/// Maps, touches, unmaps.
pub struct MmapMunmap {
    bytes: usize,
    page: usize,
}

impl MmapMunmap {
    /// Mappings of `bytes`.
    pub fn new(bytes: u64) -> Result<Self, TrialProblem> {
        let bytes = usize::try_from(bytes).map_err(|error| failed("the length", error))?;
        Ok(Self { bytes, page: small_pages()? })
    }
}

impl Workload for MmapMunmap {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let pages = self.bytes.div_ceil(self.page);
        let open = window.open();
        for _ in 0..ops {
            let mut memory =
                Mapping::anonymous(self.bytes).map_err(|error| failed("mapping memory", error))?;
            memory.touch(self.page, pages);
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}

/// Pages of the mapping that `madvise` and `mprotect` work on.
const PAGES: usize = 16;

/// Changes memory that is there.
pub struct Memory {
    operation: Operation,
    page: usize,
}

enum Operation {
    /// Moves the end of the heap, which is here, up and down.
    Break(usize),
    /// Touches pages and gives them back.
    Advise(Mapping),
    /// Makes one page read-only and writable again.
    Protect(Mapping),
}

impl Memory {
    /// `name` as in the workload's parameter `op`.
    pub fn new(name: &str) -> Result<Self, TrialProblem> {
        let page = small_pages()?;
        let mapping = || {
            let mut memory = Mapping::anonymous(page * PAGES)?;
            memory.touch(page, PAGES);
            Ok(memory)
        };
        let operation = match name {
            "brk" => heap_end().map(Operation::Break),
            "madvise" => mapping().map(Operation::Advise),
            "mprotect" => mapping().map(Operation::Protect),
            other => return Err(failed("the operation", format!("\"{other}\" is not known"))),
        };
        let operation = operation.map_err(|error| failed("preparing memory", error))?;
        Ok(Self { operation, page })
    }
}

impl Workload for Memory {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let page = self.page;
        let open = window.open();
        for _ in 0..ops {
            let done = match &mut self.operation {
                Operation::Break(end) => heap_up_and_down(*end, page * PAGES),
                Operation::Advise(memory) => {
                    memory.touch(page, PAGES);
                    memory.forget()
                }
                Operation::Protect(memory) => memory
                    .protect(page, page, false)
                    .and_then(|()| memory.protect(page, page, true)),
            };
            done.map_err(|error| failed("changing memory", error))?;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
