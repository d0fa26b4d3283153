//! Counters and samples of perf_event_open(2).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::check;

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOEXEC: libc::c_ulong = 8;

/// `PERF_EVENT_IOC_ENABLE` and `_DISABLE`.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

/// Bits of [`Attributes::flags`].
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const FREQUENCY: u64 = 1 << 10;
const EXCLUDE_USER_CALLCHAIN: u64 = 1 << 22;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED` and `_RUNNING`.
const TIMES: u64 = 3;

/// `PERF_SAMPLE_IP`, `_TID` and `_CALLCHAIN`.
const SAMPLE: u64 = 1 | 1 << 1 | 1 << 5;

/// `struct perf_event_attr` as far as its second published version.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerfEvent {
    /// `PERF_TYPE_HARDWARE` with this number.
    Hardware(u64),
    /// `PERF_TYPE_SOFTWARE` with this number.
    Software(u64),
}

/// How often samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// So many events.
    Events(u64),
    /// So many times a second, about.
    PerSecond(u64),
}

fn open(
    event: PerfEvent,
    attributes: Attributes,
    task: libc::pid_t,
    cpu: i32,
) -> io::Result<OwnedFd> {
    let (kind, config) = match event {
        PerfEvent::Hardware(number) => (0, number),
        PerfEvent::Software(number) => (1, number),
    };
    let size = u32::try_from(size_of::<Attributes>()).map_err(io::Error::other)?;
    let attributes = Attributes { kind, config, size, ..attributes };
    // SAFETY: the attributes are live and as long as they say; the kernel only reads them.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, task, cpu, -1, CLOEXEC)
    };
    let descriptor = check(i32::try_from(descriptor).map_err(io::Error::other)?)?;
    // SAFETY: a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// A counter of this process and of what it forks from now on.
#[derive(Debug)]
pub struct Counter(OwnedFd);

/// What a counter says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Events while it ran.
    pub value: u64,
    /// Time it was wanted, in nanoseconds.
    pub enabled_ns: u64,
    /// Time it really counted: less where there are more events than the hardware has counters.
    pub running_ns: u64,
}

impl Counter {
    /// Counts at once.
    pub fn open(event: PerfEvent) -> io::Result<Self> {
        let flags = INHERIT | EXCLUDE_HYPERVISOR;
        open(event, Attributes { flags, read_format: TIMES, ..Attributes::default() }, 0, -1)
            .map(Self)
    }

    /// So far.
    pub fn read(&self) -> io::Result<Reading> {
        let mut bytes = [0; 24];
        if rustix::io::read(&self.0, &mut bytes)? != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let word =
            |at: usize| bytes[at * 8..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok(Reading { value: word(0), enabled_ns: word(1), running_ns: word(2) })
    }
}

/// Samples of one CPU, whoever runs on it.
#[derive(Debug)]
pub struct Sampler {
    event: OwnedFd,
    start: *mut u8,
    page: usize,
    bytes: usize,
}

/// Where the kernel says how far it has written, and where we say how far we have read.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

impl Sampler {
    /// Of a CPU, not yet switched on. `pages` is a power of two: room for what is not fetched yet.
    pub fn open(event: PerfEvent, every: Every, cpu: u32, pages: usize) -> io::Result<Self> {
        let (period, frequency) = match every {
            Every::Events(period) => (period, 0),
            Every::PerSecond(frequency) => (frequency, FREQUENCY),
        };
        // Counters of the hardware stand still in idle CPUs by themselves.
        let idle = if matches!(event, PerfEvent::Software(_)) { EXCLUDE_IDLE } else { 0 };
        let flags = DISABLED | EXCLUDE_HYPERVISOR | idle | EXCLUDE_USER_CALLCHAIN | frequency;
        let attributes = Attributes { period, sample_type: SAMPLE, flags, ..Attributes::default() };
        let cpu = i32::try_from(cpu).map_err(io::Error::other)?;
        let event = open(event, attributes, -1, cpu)?;
        let page = rustix::param::page_size();
        let bytes = page * pages;
        // SAFETY: no address is asked for, so no existing mapping is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { event, start: start.cast(), page, bytes })
    }

    /// Switches it on or off.
    pub fn switch(&self, on: bool) -> io::Result<()> {
        let request = if on { ENABLE } else { DISABLE };
        // SAFETY: both requests take no pointer.
        check(unsafe { libc::ioctl(self.event.as_raw_fd(), request, 0) }).map(drop)
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping has an aligned 64-bit word there, which both the
        // kernel and we access atomically; it lives as long as `self`.
        unsafe { AtomicU64::from_ptr(self.start.add(offset).cast()) }
    }

    /// Hands over every whole record that is there: its type, its flags and what follows its head.
    pub fn drain(&mut self, mut take: impl FnMut(u32, u16, &[u8])) {
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut tail = self.position(TAIL).load(Ordering::Relaxed);
        let mut record = Vec::new();
        while tail < head {
            let mut lead = [0; 8];
            self.copy(tail, &mut lead);
            let [a, b, c, d, e, f, g, h] = lead;
            let bytes = usize::from(u16::from_ne_bytes([g, h]));
            if bytes < lead.len() || head - tail < bytes as u64 {
                break;
            }
            record.resize(bytes - lead.len(), 0);
            self.copy(tail + 8, &mut record);
            take(u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]), &record);
            tail += bytes as u64;
        }
        self.position(TAIL).store(head, Ordering::Release);
    }

    /// Copies out of the ring, around its end.
    fn copy(&self, from: u64, to: &mut [u8]) {
        // The ring's size is a power of two that fits a usize.
        #[expect(clippy::cast_possible_truncation, reason = "less than the ring's size")]
        let at = (from & (self.bytes as u64 - 1)) as usize;
        let first = to.len().min(self.bytes - at);
        let (one, two) = to.split_at_mut(first);
        // SAFETY: both ranges lie in the data pages, between tail and head: the kernel writes there
        // only when we have moved the tail.
        unsafe {
            let data = self.start.add(self.page);
            std::ptr::copy_nonoverlapping(data.add(at), one.as_mut_ptr(), one.len());
            std::ptr::copy_nonoverlapping(data, two.as_mut_ptr(), two.len());
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by us, and no reference into it outlives `self`.
        let _ = unsafe { libc::munmap(self.start.cast(), self.page + self.bytes) };
    }
}
