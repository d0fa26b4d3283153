//! The only place that asks what time it is.

#![expect(clippy::disallowed_methods, reason = "this is the clock module")]

use std::time::{Duration, Instant};

/// The wall clock, for labels only; durations come from [`Stopwatch`].
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Monotonic time, in which a suspended host stands still.
pub fn monotonic() -> Duration {
    since_boot(rustix::time::ClockId::Monotonic)
}

/// How long the host has been suspended since it booted.
pub fn suspended() -> Duration {
    since_boot(rustix::time::ClockId::Boottime).saturating_sub(monotonic())
}

fn since_boot(clock: rustix::time::ClockId) -> Duration {
    Duration::try_from(rustix::time::clock_gettime(clock)).unwrap_or_default()
}

/// Monotonic time since a start.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts at zero.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A point in monotonic time that something must not go beyond.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    started: Stopwatch,
    allowed: Duration,
}

impl Deadline {
    /// `allowed` from now.
    pub fn after(allowed: Duration) -> Self {
        Self { started: Stopwatch::start(), allowed }
    }

    /// What is left, zero when it has passed.
    pub fn left(self) -> Duration {
        self.allowed.saturating_sub(self.started.elapsed())
    }

    /// Whether it has passed.
    pub fn passed(self) -> bool {
        self.left().is_zero()
    }
}
