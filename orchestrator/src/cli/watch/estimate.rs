use std::time::Duration;

use crate::clock::Stopwatch;

/// How long a run will still take: the plan's estimate at first, what boots really took later.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLeft {
    started: Stopwatch,
    expected: Duration,
    boots: u32,
    done: u32,
    spent: Duration,
    last_end: Stopwatch,
}

impl TimeLeft {
    /// Of an experiment with so many boots that is expected to take so long.
    pub(super) fn new(expected: Duration, boots: usize) -> Self {
        let now = Stopwatch::start();
        let boots = u32::try_from(boots).unwrap_or(u32::MAX);
        Self { started: now, expected, boots, done: 0, spent: Duration::ZERO, last_end: now }
    }

    /// One more boot ended.
    pub(super) fn boot_done(&mut self, took: Duration) {
        self.done += 1;
        self.spent += took;
        self.last_end = Stopwatch::start();
    }

    /// A boot will be repeated.
    pub(super) fn one_more(&mut self) {
        self.boots = self.boots.saturating_add(1);
    }

    /// Boots that end, as far as is known.
    pub(super) fn boots(&self) -> u32 {
        self.boots
    }

    /// Boots that ended.
    pub(super) fn done(&self) -> u32 {
        self.done
    }

    /// Since the experiment began.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// About what is left.
    pub(super) fn left(&self) -> Duration {
        if self.done == 0 {
            return self.expected.saturating_sub(self.elapsed());
        }
        let mean = self.spent / self.done;
        // What the boot that goes on has taken already is no longer left.
        let under_way = self.last_end.elapsed().min(mean);
        (mean * self.boots.saturating_sub(self.done)).saturating_sub(under_way)
    }
}

/// `0:42`, `12:05`, `1:02:03`.
pub(super) fn clock_face(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours == 0 {
        format!("{minutes}:{seconds:02}")
    } else {
        format!("{hours}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_boots_really_took_replaces_the_estimate() {
        let mut left = TimeLeft::new(Duration::from_secs(100), 10);
        assert!(left.left() > Duration::from_secs(99));
        left.boot_done(Duration::from_secs(4));
        left.boot_done(Duration::from_secs(6));
        let forty_seconds = Duration::from_millis(39_000)..=Duration::from_secs(40);
        assert!(forty_seconds.contains(&left.left()), "{left:?}");
        left.one_more();
        assert!(left.left() > Duration::from_secs(44), "{left:?}");
    }

    #[test]
    fn times_read_like_a_clock() {
        assert_eq!(clock_face(Duration::from_secs(42)), "0:42");
        assert_eq!(clock_face(Duration::from_secs(3723)), "1:02:03");
    }
}
