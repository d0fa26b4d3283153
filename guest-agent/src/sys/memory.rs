//! Mapped memory whose pages are touched one by one.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};

/// A readable and writable mapping, unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Mapping {
    /// Fresh private memory.
    #[inline]
    pub fn anonymous(bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no existing mapping is replaced.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)? };
        Ok(Self { start: start.cast(), bytes })
    }

    /// The first `bytes` of a file, shared. The file must be at least as long for as long as the
    /// mapping lives.
    #[inline]
    pub fn shared(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so no existing mapping is replaced.
        let start =
            unsafe { mmap(std::ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, 0)? };
        Ok(Self { start: start.cast(), bytes })
    }

    /// Writes one byte to each of the first `count` pages of `page` bytes.
    #[inline]
    pub fn touch(&mut self, page: usize, count: usize) {
        let end = self.bytes.min(page.saturating_mul(count));
        for offset in (0..end).step_by(page) {
            // SAFETY: `offset` lies within the mapping, which is writable and ours alone.
            unsafe { self.start.add(offset).write_volatile(1) }
        }
    }
}

impl Drop for Mapping {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and no reference into it is ever given out.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}
