//! The first calls of a window one by one, in the order in which they were made.

use super::position::NONE;
use crate::file::{CallRecord, RootEntry, TraceRecord};

/// Most calls that are recorded of a window.
const LIMIT: usize = 1 << 15;

/// Calls of own work since the window began.
#[derive(Debug)]
pub(crate) struct Recording {
    trace: TraceRecord,
}

impl Recording {
    /// Of the window at a place among the windows.
    pub fn new(window: usize) -> Self {
        Self { trace: TraceRecord { window, whole: true, ..TraceRecord::default() } }
    }

    /// A call begins; `parent` is the place of the call that makes it.
    pub fn begin(&mut self, parent: u32, function: u32, entry: Option<RootEntry>) -> u32 {
        match entry {
            Some(RootEntry::Syscall) => self.trace.syscalls += 1,
            Some(RootEntry::Exception) => self.trace.exceptions += 1,
            None => {}
        }
        let place = self.trace.calls.len();
        if place >= LIMIT {
            self.trace.whole = false;
            return NONE;
        }
        let parent = (parent != NONE).then_some(parent as usize);
        let function = function as usize;
        self.trace.calls.push(CallRecord { parent, function, instructions: 0, entry });
        u32::try_from(place).unwrap_or(NONE)
    }

    /// The same call goes on in another function.
    pub fn instead(&mut self, of: u32, function: u32) -> u32 {
        match self.trace.calls.get(of as usize) {
            Some(call) => {
                let parent = call.parent.and_then(|p| u32::try_from(p).ok()).unwrap_or(NONE);
                self.begin(parent, function, None)
            }
            None => NONE,
        }
    }

    /// Instructions more, or fewer, in a call itself.
    pub fn add(&mut self, call: u32, instructions: i64) {
        if let Some(call) = self.trace.calls.get_mut(call as usize) {
            call.instructions = call.instructions.saturating_add_signed(instructions);
        }
    }

    /// What was recorded.
    pub fn finish(self) -> TraceRecord {
        self.trace
    }
}
