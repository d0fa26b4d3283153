//! On whose behalf, and in which part of the kernel, an instruction is executed.

/// Numbers of system calls of 32-bit programs begin here: those of 64-bit ones are far below.
pub const COMPAT: u16 = 0x4000;

/// Where a vCPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Code of a process, by the place of its name among those seen; zero if it is not known.
    User(u16),
    /// Kernel code outside any entry: kernel threads, and a new task on its way to its process.
    Kernel,
    /// From the entry of a system call to the return from it, by its number; calls of 32-bit programs
    /// count from [`COMPAT`].
    Syscall(Option<u16>),
    /// An exception, by vector: a page fault is 14.
    Exception(u8),
    /// An interrupt of a device, by vector.
    Interrupt(u8),
    /// An interrupt of the system's own, by its place among the symbols' entries.
    SystemInterrupt(u16),
    /// Deferred work of interrupts, wherever it runs.
    Softirq,
    /// The idle task.
    Idle,
    /// Spinning and polling functions, wherever they are called.
    Waiting,
}

impl Kind {
    /// The kind and its number, as files hold them.
    pub const fn code(self) -> (u8, u16) {
        match self {
            Self::User(place) => (0, place),
            Self::Kernel => (1, 0),
            Self::Syscall(None) => (2, 0),
            Self::Syscall(Some(number)) => (2, number.saturating_add(1)),
            Self::Exception(vector) => (3, vector as u16),
            Self::Interrupt(vector) => (4, vector as u16),
            Self::SystemInterrupt(place) => (5, place),
            Self::Softirq => (6, 0),
            Self::Idle => (7, 0),
            Self::Waiting => (8, 0),
        }
    }

    /// The inverse of [`Kind::code`].
    pub fn from_code(kind: u8, number: u16) -> Option<Self> {
        let vector = u8::try_from(number).ok();
        match (kind, number) {
            (0, place) => Some(Self::User(place)),
            (1, 0) => Some(Self::Kernel),
            (2, 0) => Some(Self::Syscall(None)),
            (2, next) => Some(Self::Syscall(Some(next - 1))),
            (3, _) => vector.map(Self::Exception),
            (4, _) => vector.map(Self::Interrupt),
            (5, place) => Some(Self::SystemInterrupt(place)),
            (6, 0) => Some(Self::Softirq),
            (7, 0) => Some(Self::Idle),
            (8, 0) => Some(Self::Waiting),
            _ => None,
        }
    }
}

/// Whose task was current, and where the vCPU was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Context {
    /// The current task began the window or descends from the task that did.
    pub own: bool,
    /// Where the vCPU was.
    pub kind: Kind,
}

impl Context {
    /// Whether this is the work of the workload's own tasks.
    pub const fn is_own_work(self) -> bool {
        self.own
            && matches!(
                self.kind,
                Kind::User(_) | Kind::Kernel | Kind::Syscall(_) | Kind::Exception(_)
            )
    }
}
