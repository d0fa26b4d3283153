//! What one vCPU is doing.

use crate::context::Kind;

/// Something that interrupted what a task, or the kernel, was doing before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Ends with `iret`, or with the return to the process.
    Entry(Kind),
    /// Ends when the block at `back` is executed; the return address is at `stack`.
    Call { kind: Kind, back: u64, stack: u64 },
}

impl Frame {
    fn kind(self) -> Kind {
        match self {
            Self::Entry(kind) | Self::Call { kind, .. } => kind,
        }
    }
}

/// Size of the kernel's stacks, at most.
const STACK: u64 = 32 * 1024;

/// State of one vCPU.
#[derive(Debug, Default)]
pub(crate) struct Vcpu {
    /// Address of the current task's structure, once it is known.
    pub task: Option<u64>,
    /// The current task is the idle one.
    pub idle: bool,
    /// The current task belongs to the workload.
    pub own: bool,
    /// Place of the current task's name among those seen; zero if it is not known.
    pub process: u16,
    /// In code of a process.
    pub user: bool,
    /// In a function that only waits.
    pub waiting: bool,
    /// What the current task is in, innermost last.
    pub frames: Vec<Frame>,
    /// The block executed last in the window, by its number.
    pub last: Option<usize>,
    /// Where the tally of the current context is.
    pub tally: usize,
    /// Flags that a block must have for nothing to change.
    pub expected: u8,
    /// A block at this address ends the innermost frame; zero for none.
    pub watch: u64,
}

impl Vcpu {
    /// Where this vCPU is.
    pub fn kind(&self) -> Kind {
        if self.user {
            return Kind::User(self.process);
        }
        match self.frames.last() {
            None if self.idle => Kind::Idle,
            _ if self.waiting => Kind::Waiting,
            Some(frame) => frame.kind(),
            None => Kind::Kernel,
        }
    }

    /// Enters something from the process (`from_user`) or from the kernel.
    pub fn enter(&mut self, kind: Kind, from_user: bool) {
        if from_user || self.user {
            self.frames.clear();
        }
        self.frames.push(Frame::Entry(kind));
    }

    /// An `iret` ends the innermost entry; calls inside it never returned.
    pub fn leave(&mut self) {
        while let Some(frame) = self.frames.pop() {
            if matches!(frame, Frame::Entry(_)) {
                break;
            }
        }
    }

    /// A block at this address is executed: calls that return to it are over.
    pub fn came_back(&mut self, address: u64) {
        while let Some(Frame::Call { back, .. }) = self.frames.last() {
            if *back != address {
                break;
            }
            self.frames.pop();
        }
    }

    /// Drops calls that have returned without being seen, as they do outside of windows: while a
    /// function runs, the stack pointer is below its return address.
    pub fn drop_returned(&mut self, stack_pointer: u64) {
        while let Some(Frame::Call { stack, .. }) = self.frames.last() {
            if (1..STACK).contains(&stack.wrapping_sub(stack_pointer)) {
                break;
            }
            self.frames.pop();
        }
    }

    /// The address that ends the innermost frame, zero if none does.
    pub fn watched(&self) -> u64 {
        match self.frames.last() {
            Some(Frame::Call { back, .. }) => *back,
            _ => 0,
        }
    }
}
