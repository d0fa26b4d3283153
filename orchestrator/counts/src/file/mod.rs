//! The file in which counts leave the guest's emulator.
//!
//! Eight bytes of magic, then records: a tag, the payload's length (four bytes, least significant
//! first), the payload, CRC-32C over all three. The first record says version and shortfall, then come
//! blocks, then windows, then call chains if they were followed, and the last one repeats how many records there were before it. Numbers in
//! payloads are LEB128, signed ones zigzag.

mod chain_model;
mod chains;
mod model;
mod read;
mod wire;
mod write;

pub use chain_model::{
    CallRecord, ChainShortfall, Chains, FunctionRecord, NodeCount, NodeRecord, RootEntry,
    TraceRecord,
};
pub use model::{BlockCount, BlockRecord, ContextRecord, Counts, Shortfall, WindowRecord};
pub use read::{ReadError, read};
pub use write::write;

/// Major and minor version. Readers refuse a later major and skip records they do not know.
///
/// 1 knew neither numbers of system calls nor names of processes, and 2.0 no call chains.
pub const FORMAT: (u8, u8) = (2, 1);

/// The oldest major version that is read.
const OLDEST: u8 = 1;

const MAGIC: [u8; 8] = *b"kducount";
const TAG_HEADER: u8 = 1;
const TAG_BLOCK: u8 = 2;
const TAG_WINDOW: u8 = 3;
const TAG_END: u8 = 4;
const TAG_CHAINS: u8 = 5;
const TAG_CHAIN_WINDOW: u8 = 6;
const TAG_TRACE: u8 = 7;
