//! The one clock of the agent: `CLOCK_MONOTONIC`, in nanoseconds.

use rustix::thread::NanosleepRelativeResult;
use rustix::time::{ClockId, Timespec};

/// One second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds since some fixed point before boot.
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

/// `ns` as the kernel takes it.
pub fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / SECOND_NS).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % SECOND_NS).unwrap_or_default(),
    }
}

/// Sleeps at least `ns`, signals or not.
pub fn sleep_ns(ns: u64) {
    let mut rest = timespec(ns);
    while let NanosleepRelativeResult::Interrupted(left) =
        rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &rest)
    {
        rest = left;
    }
}

/// Sleeps at least `ms` milliseconds.
pub fn sleep_ms(ms: u64) {
    sleep_ns(ms * 1_000_000);
}
