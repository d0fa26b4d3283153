//! Which boots of two exact runs are the same but for the kernel.

use crate::plan::{Block, PlannedExperiment};

fn key(block: &Block) -> (Option<&str>, u64) {
    (block.cpu.as_deref(), block.layout_seed)
}

/// Places of blocks with the same CPU model and layout seed in both, in the order of `a`.
pub(super) fn common(a: &PlannedExperiment, b: &PlannedExperiment) -> Vec<(usize, usize)> {
    let there = |block: &Block| b.blocks.iter().find(|other| key(other) == key(block));
    a.blocks.iter().filter_map(|block| Some((block.index, there(block)?.index))).collect()
}
