//! Guests that run together begin the windows of each trial at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kduel_protocol::Go;

use crate::clock::Deadline;

/// From the moment when the last guest is ready until the windows open: each is told in time,
/// although its connection is looked at only every tenth of a second.
const NOTICE: Duration = Duration::from_millis(300);

/// What the guests of one block have in common. Trials are counted in the order of their plan.
#[derive(Debug, Default)]
struct CommonStart {
    guests: Vec<Progress>,
    /// By trial: when windows open, and how long each is, in nanoseconds.
    starts: BTreeMap<usize, (Deadline, u64)>,
}

/// How far one guest is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// The trial that it is at.
    trial: usize,
    /// It waits there; the shortest window that suits it, in nanoseconds.
    waits: Option<u64>,
    /// It takes part no more.
    gone: bool,
}

/// One guest's place among those that run together. Gone with it, so that the others do not wait for
/// a guest that is lost.
#[derive(Debug)]
pub struct Seat {
    common: Arc<Mutex<CommonStart>>,
    guest: usize,
}

/// Places for so many guests that run together.
pub fn seats(guests: usize) -> Vec<Seat> {
    let common = CommonStart { guests: vec![Progress::default(); guests], ..Default::default() };
    let common = Arc::new(Mutex::new(common));
    (0..guests).map(|guest| Seat { common: common.clone(), guest }).collect()
}

impl Seat {
    /// The guest waits at a trial.
    pub fn waits(&self, trial: usize, window_ns: u64) {
        self.lock().guests[self.guest] = Progress { trial, waits: Some(window_ns), gone: false };
    }

    /// The guest is done with a trial, whatever came of it.
    pub fn passed(&self, trial: usize) {
        self.lock().guests[self.guest] = Progress { trial: trial + 1, waits: None, gone: false };
    }

    /// What to tell the guest if it waits, and everyone who still comes to the same trial does, too.
    /// `id` is the trial's.
    pub fn go(&self, id: u32) -> Option<Go> {
        let mut common = self.lock();
        let Progress { trial, waits: Some(_), .. } = common.guests[self.guest] else { return None };
        if !common.starts.contains_key(&trial) {
            let window_ns = common.window_ns(trial)?;
            common.starts.insert(trial, (Deadline::after(NOTICE), window_ns));
        }
        let (start, window_ns) = *common.starts.get(&trial)?;
        common.guests[self.guest].waits = None;
        let after_ns = u64::try_from(start.left().as_nanos()).unwrap_or(u64::MAX);
        Some(Go { trial: id, after_ns, window_ns })
    }

    fn lock(&self) -> MutexGuard<'_, CommonStart> {
        // Each change is one assignment: there is no half-changed state.
        self.common.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lock().guests[self.guest].gone = true;
    }
}

impl CommonStart {
    /// The window that suits everyone, once everyone waits who has not left or passed.
    fn window_ns(&self, trial: usize) -> Option<u64> {
        let coming = self.guests.iter().filter(|guest| !guest.gone && guest.trial <= trial);
        let mut longest = None;
        for guest in coming {
            longest = longest.max(Some(guest.waits.filter(|_| guest.trial == trial)?));
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_go_when_the_last_one_is_ready_and_by_the_slowest() {
        let seats = seats(2);
        seats[0].waits(0, 200);
        assert_eq!(seats[0].go(7), None, "the other one boots");
        seats[1].waits(0, 500);
        let first = seats[0].go(7).unwrap();
        assert_eq!((first.trial, first.window_ns), (7, 500));
        assert!(first.after_ns > 250_000_000, "{first:?}");
        std::thread::sleep(Duration::from_millis(20));
        let second = seats[1].go(7).unwrap();
        assert!(second.after_ns < first.after_ns - 15_000_000, "told later, and starts with it");
        assert_eq!(seats[0].go(7), None, "told once");
        seats[0].waits(1, 200);
        assert_eq!(seats[0].go(8), None, "the other one still measures");
        seats[1].waits(1, 100);
        assert_eq!(seats[0].go(8).unwrap().window_ns, 200);
    }

    #[test]
    fn nobody_waits_for_who_has_left_or_is_past_it() {
        let mut all = seats(3);
        all[0].waits(0, 1);
        all[1].passed(0);
        assert_eq!(all[0].go(0), None);
        drop(all.pop());
        assert!(all[0].go(0).is_some(), "one failed the trial, one is lost");
        all[1].waits(1, 1);
        assert_eq!(all[1].go(1), None, "the first comes to it");
        all[0].passed(0);
        assert_eq!(all[1].go(1), None);
        all[0].waits(1, 1);
        assert!(all[1].go(1).is_some() && all[0].go(1).is_some());
    }
}
