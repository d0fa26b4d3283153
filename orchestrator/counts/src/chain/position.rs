//! Where one stack of the kernel is: the calls that have not returned.

use super::functions::USER;
use crate::file::RootEntry;

/// How a block ended, if its last instruction was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It went on, or jumped.
    #[default]
    On,
    /// It called.
    Called,
    /// It returned.
    Returned,
}

/// No function, no recorded call.
pub(crate) const NONE: u32 = u32::MAX;

/// Where the return address lies if that is not known: such a call ends only with its stack.
pub(crate) const SOMEWHERE: u64 = u64::MAX;

/// Size of a stack of the kernel; what lies farther away is on another one.
const STACK: u64 = 16 * 1024;

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub node: u32,
    pub function: u32,
    /// Where its return address lies.
    pub stack: u64,
    /// An interrupt or an exception: how the block that it came behind had ended.
    pub interrupted: Option<Ended>,
    /// It was found in the middle: what called it is not known.
    pub from_before: bool,
    /// Place among the recorded calls.
    pub record: u32,
}

impl Call {
    /// Whether it has returned, given the stack pointer.
    pub fn is_over(&self, stack_pointer: u64) -> bool {
        self.stack < stack_pointer && stack_pointer - self.stack <= STACK
    }

    /// Whether the stack pointer is within it or what it calls, on the same stack.
    pub fn is_around(&self, stack_pointer: u64) -> bool {
        self.stack >= stack_pointer && self.stack - stack_pointer <= STACK
    }
}

/// An entry into the kernel whose first block is about to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub from_user: bool,
    /// It has nothing to do with what it interrupts: its chain begins anew.
    pub is_interrupt: bool,
    /// The stack pointer, as far as it is known.
    pub stack: u64,
    /// The task is the one that began the window.
    pub of_root: Option<RootEntry>,
}

/// What a vCPU is in.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    pub calls: Vec<Call>,
    /// Of the innermost call, [`NONE`] if there is none.
    pub function: u32,
    pub node: u32,
    pub record: u32,
    /// How the last block ended.
    pub ended: Ended,
    pub entry: Option<Entry>,
}

impl Default for Position {
    fn default() -> Self {
        let (function, node, record) = (NONE, 0, NONE);
        Self { calls: Vec::new(), function, node, record, ended: Ended::On, entry: None }
    }
}

impl Position {
    /// Puts the innermost call where it is looked for with every block.
    pub fn settle(&mut self) {
        (self.function, self.node, self.record) = self
            .calls
            .last()
            .map_or((NONE, 0, NONE), |call| (call.function, call.node, call.record));
    }

    /// Drops calls that have returned.
    pub fn drop_over(&mut self, stack_pointer: u64) {
        while self.calls.last().is_some_and(|call| call.is_over(stack_pointer)) {
            self.calls.pop();
        }
    }

    /// Drops everything inside the innermost call of `function` that the innermost interrupt does not
    /// hide; `false` if there is none.
    pub fn unwind_to(&mut self, function: u32) -> bool {
        for (place, call) in self.calls.iter().enumerate().rev() {
            if call.function == function {
                self.calls.truncate(place + 1);
                return true;
            }
            if call.interrupted.is_some() {
                break;
            }
        }
        false
    }

    /// Drops everything inside the innermost interrupt.
    pub fn unwind_to_entry(&mut self) {
        let entry = self.calls.iter().rposition(|call| call.interrupted.is_some());
        self.calls.truncate(entry.map_or(0, |place| place + 1));
    }

    /// An `iret` ends the innermost interrupt; what was about to happen before it happens now.
    pub fn leave(&mut self) {
        self.ended = Ended::On;
        while let Some(call) = self.calls.pop() {
            if let Some(ended) = call.interrupted {
                self.ended = ended;
                break;
            }
        }
        self.settle();
    }

    /// Whether it is in a process.
    pub fn is_user(&self) -> bool {
        self.function == USER
    }
}
