//! What the file holds.

use super::Chains;
use crate::block::Block;
use crate::class::Totals;
use crate::context::Context;
use crate::tally::{Count, Executed, add_block, executed};

/// What one boot counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many vCPUs the guest had.
    pub vcpus: usize,
    /// What could not be known.
    pub shortfall: Shortfall,
    /// Functions that attribution needs and the kernel's symbols lack.
    pub missing: Vec<String>,
    /// Blocks that windows refer to, by their place here.
    pub blocks: Vec<BlockRecord>,
    /// Windows in the order in which they ended.
    pub windows: Vec<WindowRecord>,
    /// Call chains, if they were followed.
    pub chains: Option<Chains>,
}

/// What could not be known; all zero in a good run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortfall {
    /// Nothing was known of the kernel: contexts are `User` and `Kernel`, and no task is own.
    pub no_symbols: bool,
    /// Windows whose end was not seen.
    pub unfinished_windows: u64,
    /// Marks that begin a window in a window, end none, or end another.
    pub nested_windows: u64,
    /// Windows that began before the current task was known.
    pub rootless_windows: u64,
    /// Registers or stack words that could not be read at an entry, a call or a switch.
    pub unreadable: u64,
    /// Accesses to devices whose block was not found: some instructions may be counted twice.
    pub unplaced_accesses: u64,
}

/// A block's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// Guest virtual address of the first byte.
    pub address: u64,
    /// The code.
    pub bytes: Vec<u8>,
    /// Lengths of its instructions; they add up to the number of bytes.
    pub lengths: Vec<u8>,
}

impl BlockRecord {
    /// What is kept of a block.
    pub fn of(block: &Block) -> Self {
        let lengths = block.instructions.iter().map(|i| i.length).collect();
        Self { address: block.address, bytes: block.bytes.to_vec(), lengths }
    }

    /// Where the last instruction leads, if it is a call or an unconditional jump to a fixed address.
    pub fn direct_target(&self) -> Option<u64> {
        const DIRECT: usize = 5;
        let code = self.bytes.last_chunk::<DIRECT>()?;
        let [opcode, distance @ ..] = code;
        if usize::from(*self.lengths.last()?) != DIRECT || !matches!(opcode, 0xe8 | 0xe9) {
            return None;
        }
        let behind = self.address.wrapping_add(self.bytes.len() as u64);
        Some(behind.wrapping_add_signed(i32::from_le_bytes(*distance).into()))
    }

    /// Takes the code apart again.
    pub fn decode(&self) -> Block {
        Block::decode(self.address, &self.bytes, &self.lengths)
    }
}

/// What was executed between two marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRecord {
    /// The number that the agent gave.
    pub number: u64,
    /// Ascending; together they are everything that was executed.
    pub contexts: Vec<ContextRecord>,
}

impl WindowRecord {
    /// Sum over the contexts that are chosen.
    pub fn totals(&self, mut chosen: impl FnMut(&Context) -> bool) -> Totals {
        let mut totals = Totals::default();
        for part in self.contexts.iter().filter(|c| chosen(&c.context)) {
            totals.add(&part.totals);
        }
        totals
    }
}

/// What was executed in one context of a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRecord {
    /// Whose, and where.
    pub context: Context,
    /// Name of a system interrupt, as in `apic_timer_interrupt`, or of the process; else empty.
    pub name: String,
    /// Sums over the blocks.
    pub totals: Totals,
    /// Ascending by block.
    pub blocks: Vec<BlockCount>,
}

/// How often a block was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCount {
    /// Its place among the blocks.
    pub block: usize,
    /// Times it was begun. At a function's first address: calls of the function.
    pub executions: u64,
    /// Times its last instruction, a repeating one, took a step and was not done.
    pub unfinished: u64,
    /// Times its last instruction, one that repeats until a comparison ends it, had nothing to do.
    pub empty: u64,
    /// Pairs of an instruction and a difference to the executions from there on: faults, accesses to
    /// devices, and the ends of the window.
    pub corrections: Vec<(usize, i64)>,
}

impl BlockCount {
    /// How often each of the block's instructions completed; a block has so many of them.
    pub fn completed(&self, instructions: usize) -> impl Iterator<Item = u64> + '_ {
        let mut reached = self.executions.cast_signed();
        (0..instructions).map(move |index| {
            let here = self.corrections.iter().filter(|(from, _)| *from == index);
            reached += here.map(|(_, by)| by).sum::<i64>();
            let begun = reached.max(0).cast_unsigned();
            if index + 1 == instructions { begun.saturating_sub(self.unfinished) } else { begun }
        })
    }

    /// What the executions come to, given the block that they are of.
    pub fn totals(&self, block: &Block) -> Totals {
        let mut totals = Totals::default();
        add_block(&mut totals, block, self.count(), &self.corrections);
        totals
    }

    /// How often each instruction of the block was executed, in order: with the corrections, so that
    /// they add up to [`BlockCount::totals`].
    pub fn executed<'a>(&'a self, block: &'a Block) -> impl Iterator<Item = Executed> + 'a {
        executed(block, self.count(), &self.corrections)
    }

    fn count(&self) -> Count {
        Count { executions: self.executions, unfinished: self.unfinished, empty: self.empty }
    }
}
