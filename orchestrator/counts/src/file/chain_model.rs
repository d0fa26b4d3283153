//! What the file holds about call chains.

/// Call chains of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// What could not be followed.
    pub shortfall: ChainShortfall,
    /// Functions that nodes and traces refer to, by their place here.
    pub functions: Vec<FunctionRecord>,
    /// Every chain, as a tree: a node is a function called by its parent's.
    pub nodes: Vec<NodeRecord>,
    /// For each window, for each of its contexts: what was executed, ascending by node. Instructions
    /// add up to the context's.
    pub windows: Vec<Vec<Vec<NodeCount>>>,
    /// Calls one by one, of the first window of each trial.
    pub traces: Vec<TraceRecord>,
}

/// How often a return did not fit the calls before it; matched by the stack pointer or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainShortfall {
    /// Into a call that was found in the middle: a stack from before the window.
    pub returns_from_before: u64,
    /// By an address that had been moved on the stack: the function returned to says where.
    pub moved_returns: u64,
    /// Into a function that is not among the callers: the chain begins anew.
    pub unmatched_returns: u64,
    /// The stack pointer could not be read: a chain is then one function long.
    pub unreadable: u64,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRecord {
    /// As the kernel's symbols call it; `[user]` is all code of processes, `[unknown]` has no symbol.
    pub name: String,
    /// Of its first byte; zero for those two.
    pub address: u64,
}

/// A function in one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRecord {
    /// Place of the node that calls it, always a lower one; nothing where a chain begins.
    pub parent: Option<usize>,
    /// Place of the function.
    pub function: usize,
}

/// What was executed of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCount {
    /// Its place among the nodes.
    pub node: usize,
    /// Executions of the function's first block.
    pub calls: u64,
    /// In the function itself, without what it calls.
    pub instructions: u64,
}

/// The first calls of own work in a window, in the order in which they were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRecord {
    /// Place of the window.
    pub window: usize,
    /// All calls of the window are there; else only the first.
    pub whole: bool,
    /// System calls of the task that began the window, in all of it.
    pub syscalls: u64,
    /// Its exceptions, likewise.
    pub exceptions: u64,
    /// The calls.
    pub calls: Vec<CallRecord>,
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Place of the call that made it, always a lower one; nothing for an entry into the kernel, a
    /// stretch in the process, and the first function of a task.
    pub parent: Option<usize>,
    /// Place of the function.
    pub function: usize,
    /// In the function itself, without what it calls.
    pub instructions: u64,
    /// An entry into the kernel of the task that began the window.
    pub entry: Option<RootEntry>,
}

/// How the task that began the window entered the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootEntry {
    /// By a system call.
    Syscall,
    /// By an exception.
    Exception,
}
