//! Opening and closing windows.

use std::collections::BTreeMap;

use super::{Guest, Open, Register, Tracker};
use crate::class::{Class, Totals};
use crate::context::{Context, Kind};
use crate::file::{
    BlockCount, BlockRecord, Chains, ContextRecord, Counts, NodeCount, WindowRecord,
};
use crate::tally::{Tally, add_block};

impl Tracker {
    /// Opens a window behind the mark.
    pub(super) fn begin(
        &mut self,
        vcpu: usize,
        number: usize,
        index: usize,
        guest: &mut impl Guest,
    ) {
        if self.open.is_some() {
            self.shortfall.nested_windows += 1;
            return;
        }
        let root = self.vcpus[vcpu].task.map(|task| self.tasks.get(task).serial);
        if root.is_none() {
            self.shortfall.rootless_windows += 1;
        }
        let window = guest.register(Register::Rdi).unwrap_or(u64::MAX);
        self.open = Some(match self.paused.take_if(|paused| paused.number == window) {
            Some(paused) => Open { root, ..paused },
            None => {
                self.keep_paused();
                Open { number: window, root, contexts: Vec::new(), tallies: Vec::new() }
            }
        });
        if let Some(chains) = &mut self.chains {
            self.tasks.forget_calls();
            chains.begin(vcpu, self.windows.len(), trial_of(window));
        }
        for other in 0..self.vcpus.len() {
            let serial = self.vcpus[other].task.map(|task| self.tasks.get(task).serial);
            let own = serial.is_some_and(|serial| self.is_own(serial));
            let state = &mut self.vcpus[other];
            state.own = own;
            state.last = None;
            self.settle(other);
        }
        // The rest of this block is in the window although its beginning is not.
        let state = &mut self.vcpus[vcpu];
        state.user = true;
        state.frames.clear();
        self.settle(vcpu);
        let state = &mut self.vcpus[vcpu];
        state.last = Some(number);
        if let Some(open) = &mut self.open {
            open.tallies[state.tally].correct(number, index + 1, 1);
        }
        let rest = self.blocks[number].instructions_from(index + 1);
        self.correct_chain(vcpu, rest);
    }

    /// Closes the window in front of the mark; the same number opens it again.
    pub(super) fn end(&mut self, vcpu: usize, number: usize, index: usize, guest: &mut impl Guest) {
        let rest = self.blocks[number].instructions_from(index);
        self.correct_chain(vcpu, -rest);
        let Some(mut open) = self.open.take() else {
            self.shortfall.nested_windows += 1;
            return;
        };
        if guest.register(Register::Rdi) != Some(open.number) {
            self.shortfall.nested_windows += 1;
        }
        open.tallies[self.vcpus[vcpu].tally].correct(number, index, -1);
        self.paused = Some(open);
        if let Some(chains) = &mut self.chains {
            chains.end();
        }
    }

    /// Nothing more comes to the window that was closed last.
    fn keep_paused(&mut self) {
        let Some(open) = self.paused.take() else { return };
        let parts = open.contexts.iter().zip(&open.tallies);
        let mut parts: Vec<(ContextRecord, Vec<NodeCount>)> = parts
            .map(|(context, tally)| (self.record(*context, tally), node_counts(tally)))
            .collect();
        parts.retain(|(part, _)| !part.blocks.is_empty());
        parts.sort_by_key(|(part, _)| part.context);
        let (contexts, nodes) = parts.into_iter().unzip();
        if self.chains.is_some() {
            self.window_nodes.push(nodes);
        }
        self.windows.push(WindowRecord { number: open.number, contexts });
    }

    fn record(&self, context: Context, tally: &Tally) -> ContextRecord {
        let mut totals = Totals::default();
        let mut blocks = Vec::new();
        for number in tally.executed() {
            let count = tally.counts.get(number).copied().unwrap_or_default();
            let corrections: Vec<_> = tally.corrections_of(number).filter(|c| c.1 != 0).collect();
            add_block(&mut totals, &self.blocks[number], count, &corrections);
            blocks.push(BlockCount {
                block: number,
                executions: count.executions,
                unfinished: count.unfinished,
                empty: count.empty,
                corrections,
            });
        }
        totals[Class::MemoryMappedIo] = tally.device_accesses;
        let name = match context.kind {
            Kind::User(place) => self.names.at(place),
            Kind::SystemInterrupt(place) => self.hooks.system_interrupt(place).unwrap_or_default(),
            _ => "",
        };
        ContextRecord { context, name: name.to_owned(), totals, blocks }
    }

    /// Everything that the file holds; blocks that no window executed are left out.
    pub(super) fn counts(mut self) -> Counts {
        self.keep_paused();
        let mut numbers = BTreeMap::new();
        for window in &self.windows {
            for count in window.contexts.iter().flat_map(|c| &c.blocks) {
                numbers.insert(count.block, 0);
            }
        }
        for (new, slot) in numbers.values_mut().enumerate() {
            *slot = new;
        }
        for window in &mut self.windows {
            for count in window.contexts.iter_mut().flat_map(|c| &mut c.blocks) {
                count.block = numbers[&count.block];
            }
        }
        let blocks = numbers.keys().map(|&number| BlockRecord::of(&self.blocks[number])).collect();
        let missing = self.hooks.missing().iter().map(|&name| name.to_owned()).collect();
        let windows = self.window_nodes;
        let chains = self.chains.map(|chains| Chains { windows, ..chains.finish() });
        Counts {
            chains,
            vcpus: self.vcpus.len(),
            shortfall: self.shortfall,
            missing,
            blocks,
            windows: self.windows,
        }
    }
}

/// Which trial a window belongs to.
fn trial_of(window: u64) -> u64 {
    window >> 16
}

/// The root, which is nobody's call, counts nothing and is not written.
fn node_counts(tally: &Tally) -> Vec<NodeCount> {
    let count = |(node, instructions, calls): (u32, i64, u64)| NodeCount {
        node: (node as usize).saturating_sub(1),
        calls,
        instructions: instructions.max(0).cast_unsigned(),
    };
    tally.nodes.iter().map(count).collect()
}
