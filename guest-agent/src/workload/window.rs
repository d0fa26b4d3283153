//! What is timed and marked of an iteration.

use crate::clock;
use crate::sys;

/// An iteration's window. It may be opened several times, never twice at once: what lies between is
/// no part of it.
#[derive(Debug, Clone, Copy)]
pub struct Window(Option<u64>);

impl Window {
    /// Timed, but not marked: warm-up.
    pub const UNMARKED: Self = Self(None);

    /// Marked with this number.
    pub fn numbered(number: u64) -> Self {
        Self(Some(number))
    }

    /// The first operation comes next.
    #[inline]
    pub fn open(self) -> Open {
        let begin_ns = clock::now_ns();
        if let Some(number) = self.0 {
            sys::mark_begin(number);
        }
        Open { window: self, begin_ns }
    }
}

/// A window while it is open; closed when dropped, so that a failed operation leaves none open.
#[derive(Debug)]
pub struct Open {
    window: Window,
    begin_ns: u64,
}

impl Open {
    /// The last operation is done; gives the time since the window was opened, in nanoseconds.
    #[inline]
    pub fn close(self) -> u64 {
        let begin_ns = self.begin_ns;
        drop(self);
        clock::now_ns() - begin_ns
    }
}

impl Drop for Open {
    #[inline]
    fn drop(&mut self) {
        if let Some(number) = self.window.0 {
            sys::mark_end(number);
        }
    }
}
