//! `futex-wake`: two threads take turns through two futex words.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use kduel_protocol::TrialProblem;
use rustix::io::Errno;
use rustix::thread::futex;

use super::{Iteration, Window, Workload, failed};

/// A word on a cache line of its own: 1 while it is its reader's turn.
#[repr(align(128))]
#[derive(Default)]
struct Turn(AtomicU32);

impl Turn {
    fn give(&self) -> rustix::io::Result<()> {
        self.0.store(1, Ordering::Release);
        futex::wake(&self.0, futex::Flags::PRIVATE, 1).map(drop)
    }

    fn take(&self) -> rustix::io::Result<()> {
        while self.0.swap(0, Ordering::Acquire) == 0 {
            match futex::wait(&self.0, futex::Flags::PRIVATE, 0, None) {
                // Given between the look and the wait, or woken for nothing: look again.
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// This thread's end; the other one ends with the process.
pub struct FutexWake {
    words: Arc<[Turn; 2]>,
}

impl FutexWake {
    /// Starts the other thread.
    pub fn new() -> Result<Self, TrialProblem> {
        let words: Arc<[Turn; 2]> = Arc::default();
        let theirs = Arc::clone(&words);
        let partner = move || {
            let [there, back] = &*theirs;
            while there.take().and_then(|()| back.give()).is_ok() {}
        };
        thread::Builder::new()
            .spawn(partner)
            .map_err(|error| failed("starting the other thread", error))?;
        Ok(Self { words })
    }
}

impl Workload for FutexWake {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let [there, back] = &*self.words;
        let open = window.open();
        for _ in 0..ops {
            there.give().and_then(|()| back.take()).map_err(|error| failed("the futex", error))?;
        }
        Ok(Iteration::timed(ops, open.close()))
    }
}
