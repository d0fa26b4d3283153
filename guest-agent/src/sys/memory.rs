//! Mapped memory whose pages are touched one by one.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mmap_anonymous, mprotect, munmap,
};

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

    /// Fresh private memory of `count` huge pages of `page` bytes each, aligned to their size, that
    /// the kernel is asked to give as such.
    #[inline]
    pub fn huge(page: usize, count: usize) -> io::Result<Self> {
        let mut memory = Self::anonymous(page * (count + 1))?;
        let bytes = page * count;
        let head = memory.start.align_offset(page);
        let (start, tail) = (memory.start.wrapping_add(head), page - head);
        // The mapping ends where the aligned part ends; each part is unmapped once.
        memory.bytes = head;
        drop(memory);
        drop(Self { start: start.wrapping_add(bytes), bytes: tail });
        let memory = Self { start, bytes };
        memory.advise(Advice::LinuxHugepage)?;
        Ok(memory)
    }

    fn advise(&self, advice: Advice) -> io::Result<()> {
        // SAFETY: the range is a mapping of ours that no reference points into.
        unsafe { madvise(self.start.cast(), self.bytes, advice) }.map_err(io::Error::from)
    }

    /// Gives the pages back; the next touch of each finds a fresh one.
    #[inline]
    pub fn forget(&mut self) -> io::Result<()> {
        self.advise(Advice::LinuxDontNeed)
    }

    /// Makes `bytes` from `offset` on read-only, or writable again. Both are multiples of a page.
    #[inline]
    pub fn protect(&mut self, offset: usize, bytes: usize, is_writable: bool) -> io::Result<()> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let flags = if is_writable {
            MprotectFlags::READ | MprotectFlags::WRITE
        } else {
            MprotectFlags::READ
        };
        // SAFETY: the range lies within a mapping of ours that no reference points into.
        unsafe { mprotect(self.start.add(offset).cast(), bytes, flags) }.map_err(io::Error::from)
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
        if self.bytes == 0 {
            return;
        }
        // SAFETY: the range was mapped by us, and no reference into it is ever given out.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// The end of the heap, for [`heap_up_and_down`].
pub fn heap_end() -> io::Result<usize> {
    // SAFETY: brk(0) changes nothing.
    moved(unsafe { libc::syscall(libc::SYS_brk, 0) })
}

/// Moves the end of the heap from `end`, where it is, up by `bytes`, at least a page, writes the
/// last of them, and moves it back.
#[inline]
pub fn heap_up_and_down(end: usize, bytes: usize) -> io::Result<()> {
    // SAFETY: the process has one thread, which does not allocate between the calls: what lies
    // above the end is nobody else's, and the allocator finds the end where it left it.
    unsafe {
        if moved(libc::syscall(libc::SYS_brk, end + bytes))? != end + bytes {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        std::ptr::with_exposed_provenance_mut::<u8>(end + bytes - 1).write_volatile(1);
        moved(libc::syscall(libc::SYS_brk, end)).map(drop)
    }
}

/// Where brk(2) says the end is now.
fn moved(end: libc::c_long) -> io::Result<usize> {
    usize::try_from(end).map_err(|_| io::Error::last_os_error())
}
