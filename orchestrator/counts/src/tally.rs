//! What was executed in one context.

use std::collections::BTreeMap;

use crate::block::{Block, Repeats};
use crate::chain::NodeTally;
use crate::class::{Class, Totals};

/// How often a block was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Times it was begun.
    pub executions: u64,
    /// Times its last instruction, a repeating one, took a step and was not done.
    pub unfinished: u64,
    /// Times its last instruction, one that repeats until a comparison ends it, had nothing to do.
    pub empty: u64,
}

/// How often an instruction was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// As hardware counts it: a string instruction that repeats once.
    pub done: u64,
    /// Steps of a string instruction; zero for every other one.
    pub steps: u64,
}

/// Counts of every block in one context.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// By block number.
    pub counts: Vec<Count>,
    /// By block number and instruction: so many executions more, or fewer, from there on.
    pub corrections: BTreeMap<(usize, usize), i64>,
    /// Accesses to device memory.
    pub device_accesses: u64,
    /// By call chain, if they are followed.
    pub nodes: NodeTally,
}

impl Tally {
    /// The count of a block.
    pub fn count(&mut self, block: usize) -> &mut Count {
        if block >= self.counts.len() {
            self.counts.resize(block + 1 + block / 4, Count::default());
        }
        &mut self.counts[block]
    }

    /// Corrects the executions of a block from one instruction on.
    pub fn correct(&mut self, block: usize, from: usize, by: i64) {
        *self.corrections.entry((block, from)).or_default() += by;
    }

    /// Numbers of the blocks that were executed, ascending.
    pub fn executed(&self) -> impl Iterator<Item = usize> + '_ {
        let counted = self.counts.iter().enumerate().filter(|(_, c)| **c != Count::default());
        let mut blocks: Vec<usize> = counted.map(|(block, _)| block).collect();
        blocks.extend(self.corrections.keys().map(|(block, _)| *block));
        blocks.sort_unstable();
        blocks.dedup();
        blocks.into_iter()
    }

    /// Corrections of one block: instruction and difference.
    pub fn corrections_of(&self, block: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.corrections.range((block, 0)..=(block, usize::MAX)).map(|((_, from), by)| (*from, *by))
    }
}

/// Adds what the executions of one block come to.
///
/// `corrections` are pairs of an instruction and a difference that holds from there on.
pub(crate) fn add_block(
    totals: &mut Totals,
    block: &Block,
    count: Count,
    corrections: &[(usize, i64)],
) {
    for (instruction, executed) in
        block.instructions.iter().zip(executed(block, count, corrections))
    {
        let Executed { done, steps } = executed;
        totals[Class::Instructions] += done;
        totals[Class::Loads] += done * u64::from(instruction.loads);
        totals[Class::Stores] += done * u64::from(instruction.stores);
        for class in &instruction.classes {
            totals[*class] += done;
        }
        totals[Class::StringIterations] += steps;
        totals[Class::StringBytes] += steps * u64::from(instruction.step_bytes);
    }
}

/// How often each instruction of a block was executed, in order.
pub(crate) fn executed<'a>(
    block: &'a Block,
    count: Count,
    corrections: &'a [(usize, i64)],
) -> impl Iterator<Item = Executed> + 'a {
    let mut reached = count.executions.cast_signed();
    let end = block.instructions.len().saturating_sub(1);
    block.instructions.iter().enumerate().map(move |(index, instruction)| {
        reached +=
            corrections.iter().filter(|(from, _)| *from == index).map(|(_, by)| by).sum::<i64>();
        let begun = reached.max(0).cast_unsigned();
        let done = if index == end { begun.saturating_sub(count.unfinished) } else { begun };
        let steps = match instruction.repeats {
            _ if instruction.step_bytes == 0 => 0,
            Repeats::No => done,
            Repeats::Counted => count.unfinished,
            Repeats::Compared => begun.saturating_sub(count.empty),
        };
        Executed { done, steps }
    })
}
