//! From counts of blocks to counts of instructions.

use std::collections::BTreeMap;
use std::ops::Range;

use kduel_counts::{Block, Context, Counts, Executed};

/// Whose executions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The work of the workload's own tasks: what exact runs compare.
    Own,
    /// Everything in the windows: other tasks, interrupts, softirqs, idle, waiting, too.
    All,
}

impl Scope {
    fn has(self, context: Context) -> bool {
        self == Self::All || context.is_own_work()
    }
}

/// What one boot of a side counted, and which of its windows are looked at.
#[derive(Debug, Clone)]
pub struct Boot<'a> {
    /// All of it.
    pub counts: &'a Counts,
    /// Numbers of windows, and the operations in each.
    pub windows: Vec<(u64, u64)>,
}

/// How often each instruction was executed, by address and bytes.
pub(super) type Executions = BTreeMap<(u64, Box<[u8]>), Executed>;

/// Everything in `range` that was executed in the boots' windows.
///
/// Blocks overlap: one that is entered in the middle is a block of its own, so an instruction's
/// executions are the sum over all blocks that have it. Other bytes at the same address are other
/// instructions.
pub(super) fn gather(boots: &[Boot<'_>], scope: Scope, range: &Range<u64>) -> Executions {
    let mut executions = Executions::new();
    for boot in boots {
        let blocks = blocks_in(boot.counts, range);
        let chosen = |number: u64| boot.windows.iter().any(|(chosen, _)| *chosen == number);
        let windows = boot.counts.windows.iter().filter(|window| chosen(window.number));
        let contexts = windows.flat_map(|window| &window.contexts);
        for count in contexts.filter(|part| scope.has(part.context)).flat_map(|part| &part.blocks) {
            let Some(block) = blocks.get(&count.block) else { continue };
            for (instruction, executed) in block.instructions.iter().zip(count.executed(block)) {
                let start = usize::from(instruction.offset);
                let end = start + usize::from(instruction.length);
                let address = block.address.wrapping_add(start as u64);
                if executed == Executed::default() || !range.contains(&address) {
                    continue;
                }
                let bytes = block.bytes.get(start..end).unwrap_or_default();
                let sum = executions.entry((address, bytes.into())).or_default();
                sum.done += executed.done;
                sum.steps += executed.steps;
            }
        }
    }
    executions
}

/// Blocks with code in `range`, by their place, taken apart.
fn blocks_in(counts: &Counts, range: &Range<u64>) -> BTreeMap<usize, Block> {
    let overlaps = |block: &kduel_counts::BlockRecord| {
        let end = block.address.saturating_add(block.bytes.len() as u64);
        block.address < range.end && range.start < end
    };
    let own = counts.blocks.iter().enumerate().filter(|(_, block)| overlaps(block));
    own.map(|(place, block)| (place, block.decode())).collect()
}
