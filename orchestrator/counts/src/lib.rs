//! What exact runs count, how it is attributed, and the file it is written to.
//!
//! Pure: no QEMU, no clock, no randomness. The plugin feeds a [`Tracker`] with the blocks that the
//! guest executes and writes what comes out with [`write()`]; the orchestrator reads it with
//! [`read()`].

mod block;
mod chain;
mod class;
mod context;
mod file;
mod hooks;
mod symbols;
mod tally;
mod tasks;
mod tracker;
mod vcpu;

pub use block::{Block, Instruction, Repeats};
pub use class::{Class, Totals};
pub use context::{COMPAT, Context, Kind};
pub use file::{
    BlockCount, BlockRecord, CallRecord, ChainShortfall, Chains, ContextRecord, Counts, FORMAT,
    FunctionRecord, NodeCount, NodeRecord, ReadError, RootEntry, Shortfall, TraceRecord,
    WindowRecord, read, write,
};
pub use hooks::Hooks;
pub use symbols::{Symbol, Symbols, SymbolsError};
pub use tally::Executed;
pub use tracker::{Guest, Register, Tracker};
