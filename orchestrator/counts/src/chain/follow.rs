//! Follows calls and returns on every vCPU.

use std::collections::BTreeSet;

use super::Place;
use super::functions::{Functions, USER};
use super::position::{Call, Ended, Entry, NONE, Position, SOMEWHERE};
use super::recording::Recording;
use super::tree::{NodeTally, ROOT, Tree};
use crate::file::{ChainShortfall, Chains, FunctionRecord, NodeRecord, TraceRecord};

/// Deeper than any chain of a kernel: what grows beyond has been followed wrongly.
const DEEPEST: usize = 512;

/// Above every pointer into what the processor pushes at an entry.
const ENTRY_FRAME: u64 = 48;

/// What is known of a block that begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrival {
    pub place: Place,
    pub ends: Ended,
    pub instructions: u16,
}

/// Follows calls and returns.
#[derive(Debug)]
pub(crate) struct Follower {
    functions: Functions,
    tree: Tree,
    positions: Vec<Position>,
    recording: Option<Recording>,
    /// The trials of which a window was recorded.
    recorded: BTreeSet<u64>,
    traces: Vec<TraceRecord>,
    shortfall: ChainShortfall,
}

impl Follower {
    /// Nothing has been executed yet.
    pub fn new(functions: Functions, vcpus: usize) -> Self {
        Self {
            functions,
            tree: Tree::default(),
            positions: vec![Position::default(); vcpus],
            recording: None,
            recorded: BTreeSet::new(),
            traces: Vec::new(),
            shortfall: ChainShortfall::default(),
        }
    }

    /// Where a block at this address is.
    pub fn place(&self, address: u64) -> Place {
        self.functions.at(address)
    }

    /// A window begins on a vCPU, in a process; what was called before is not known. The first window
    /// of a trial is recorded.
    pub fn begin(&mut self, vcpu: usize, place: usize, trial: u64) {
        self.positions.fill(Position::default());
        self.recording = self.recorded.insert(trial).then(|| Recording::new(place));
        self.enter_process(vcpu, true);
    }

    /// The window ends.
    pub fn end(&mut self) {
        self.traces.extend(self.recording.take().map(Recording::finish));
    }

    /// Counts a block that a vCPU begins to execute, behind [`Follower::arrive`].
    #[inline]
    pub fn count(&mut self, vcpu: usize, at: Arrival, tally: &mut NodeTally) {
        let position = &mut self.positions[vcpu];
        position.ended = at.ends;
        tally.add(position.node, at.instructions.into(), at.place.start.into());
        if let Some(recording) = &mut self.recording {
            recording.add(position.record, at.instructions.into());
        }
    }

    /// So many instructions more, or fewer, of what the vCPU executed last.
    pub fn correct(&mut self, vcpu: usize, by: i64, tally: &mut NodeTally) {
        let position = &self.positions[vcpu];
        tally.add(position.node, by, 0);
        if let Some(recording) = &mut self.recording {
            recording.add(position.record, by);
        }
    }

    /// The vCPU gave up the block that it was in: its end was not reached.
    pub fn cut(&mut self, vcpu: usize) {
        self.positions[vcpu].ended = Ended::On;
    }

    /// The next block begins an entry into the kernel.
    pub fn enter(&mut self, vcpu: usize, entry: Entry) {
        self.positions[vcpu].entry = Some(entry);
    }

    /// An `iret` ends the innermost entry.
    pub fn leave(&mut self, vcpu: usize) {
        self.positions[vcpu].leave();
    }

    /// Another task's stack from the next block on; gives the one that is left.
    pub fn switch(&mut self, vcpu: usize, calls: Vec<Call>) -> Vec<Call> {
        let position = &mut self.positions[vcpu];
        let left = std::mem::replace(&mut position.calls, calls);
        position.ended = Ended::On;
        position.settle();
        left
    }

    /// Whether a block goes on in the same call.
    #[inline]
    pub fn goes_on(&self, vcpu: usize, place: Place) -> bool {
        let position = &self.positions[vcpu];
        position.ended == Ended::On && position.function == place.function && !place.start
    }

    /// A block begins that does not just go on. `is_own` is whether it is work of the workload's
    /// own tasks, `stack_pointer` reads it.
    pub fn arrive(
        &mut self,
        vcpu: usize,
        place: Place,
        is_own: bool,
        stack_pointer: impl FnOnce() -> Option<u64>,
    ) {
        let position = &mut self.positions[vcpu];
        let ended = std::mem::take(&mut position.ended);
        if place.function == USER {
            if !position.is_user() {
                position.entry = None;
                self.enter_process(vcpu, is_own);
            }
            return;
        }
        if let Some(entry) = position.entry.take() {
            return self.begin_entry(vcpu, place, entry, ended, is_own);
        }
        if ended == Ended::Called && position.function == place.function && !place.start {
            // Stuffs the return stack, or fetches its own address: nothing is called.
            return;
        }
        let Some(stack_pointer) = stack_pointer() else {
            self.shortfall.unreadable += 1;
            position.calls.clear();
            return self.push(vcpu, place, SOMEWHERE, is_own);
        };
        match ended {
            Ended::Called => {
                // Of two return addresses in one place only the later is left.
                position.drop_over(stack_pointer.saturating_add(1));
                self.push(vcpu, place, stack_pointer, is_own);
            }
            Ended::Returned => self.come_back(vcpu, place, stack_pointer, is_own),
            Ended::On => self.go_on(vcpu, place, stack_pointer, is_own),
        }
    }

    /// Behind a return.
    fn come_back(&mut self, vcpu: usize, place: Place, stack_pointer: u64, is_own: bool) {
        let position = &mut self.positions[vcpu];
        position.drop_over(stack_pointer);
        let innermost = position.calls.last().copied();
        match innermost {
            Some(call) if call.function == place.function && !place.start => position.settle(),
            // A retpoline: the function takes the place of the thunk that was called.
            Some(call) if place.start && call.stack == stack_pointer => {
                self.replace(vcpu, place, is_own);
            }
            // A return that calls, and the first function of a new task.
            _ if place.start => self.push(vcpu, place, stack_pointer, is_own),
            // Its return address was moved.
            Some(_) if position.unwind_to(place.function) => {
                self.shortfall.moved_returns += 1;
                position.settle();
            }
            _ => {
                if innermost.is_none_or(|call| call.from_before) {
                    self.shortfall.returns_from_before += 1;
                    position.calls.pop();
                } else {
                    self.shortfall.unmatched_returns += 1;
                    if innermost.is_some_and(|call| !call.is_around(stack_pointer)) {
                        position.unwind_to_entry();
                    }
                }
                self.push(vcpu, place, SOMEWHERE, is_own);
            }
        }
    }

    /// Behind a jump, or the end of a function that runs into the next.
    fn go_on(&mut self, vcpu: usize, place: Place, stack_pointer: u64, is_own: bool) {
        let position = &mut self.positions[vcpu];
        position.drop_over(stack_pointer);
        match position.calls.last() {
            None => {
                let stack = if place.start { stack_pointer } else { SOMEWHERE };
                self.push(vcpu, place, stack, is_own);
            }
            Some(call) if call.function == place.function && !place.start => position.settle(),
            // A tail call, or code that jumps between functions with its stack as it is.
            Some(_) => self.replace(vcpu, place, is_own),
        }
    }

    fn begin_entry(&mut self, vcpu: usize, place: Place, entry: Entry, ended: Ended, is_own: bool) {
        let position = &mut self.positions[vcpu];
        let mut stack = entry.stack.saturating_add(ENTRY_FRAME);
        if entry.from_user {
            position.calls.clear();
            stack = SOMEWHERE;
        }
        self.push_entry(vcpu, place, stack, is_own, Some(entry));
        if let Some(call) = self.positions[vcpu].calls.last_mut() {
            call.interrupted = Some(ended);
            call.from_before = false;
        }
    }

    fn enter_process(&mut self, vcpu: usize, is_own: bool) {
        self.positions[vcpu].calls.clear();
        self.push(vcpu, Place { function: USER, start: false }, SOMEWHERE, is_own);
    }

    fn push(&mut self, vcpu: usize, place: Place, stack: u64, is_own: bool) {
        self.push_entry(vcpu, place, stack, is_own, None);
    }

    fn push_entry(
        &mut self,
        vcpu: usize,
        place: Place,
        stack: u64,
        is_own: bool,
        entry: Option<Entry>,
    ) {
        let position = &mut self.positions[vcpu];
        if position.calls.len() >= DEEPEST {
            self.shortfall.unmatched_returns += 1;
            position.calls.clear();
        }
        let outer = position.calls.last().filter(|_| !entry.is_some_and(|e| e.is_interrupt));
        let (parent, outer) = outer.map_or((ROOT, NONE), |call| (call.node, call.record));
        let of_root = entry.and_then(|entry| entry.of_root);
        let record = match &mut self.recording {
            Some(recording) if is_own => recording.begin(outer, place.function, of_root),
            _ => NONE,
        };
        position.calls.push(Call {
            node: self.tree.child(parent, place.function),
            function: place.function,
            stack,
            interrupted: None,
            from_before: position.calls.is_empty() && !place.start,
            record,
        });
        position.settle();
    }

    fn replace(&mut self, vcpu: usize, place: Place, is_own: bool) {
        let position = &mut self.positions[vcpu];
        let Some(call) = position.calls.last_mut() else { return };
        call.node = self.tree.sibling(call.node, place.function);
        call.function = place.function;
        call.record = match &mut self.recording {
            Some(recording) if is_own => recording.instead(call.record, place.function),
            _ => NONE,
        };
        position.settle();
    }

    /// Everything but the counts of the windows.
    pub fn finish(self) -> Chains {
        let Self { functions, tree, traces, shortfall, .. } = self;
        let mut places = BTreeSet::new();
        places.extend(tree.iter().map(|(_, node)| node.function as usize));
        places.extend(traces.iter().flat_map(|trace| &trace.calls).map(|call| call.function));
        let places: Vec<usize> = places.into_iter().collect();
        let new_place = |old: usize| places.binary_search(&old).unwrap_or_default();
        let record = |&place: &usize| {
            let (name, address) = functions.get(u32::try_from(place).unwrap_or(NONE));
            FunctionRecord { name: name.to_owned(), address }
        };
        let mut traces = traces;
        for call in traces.iter_mut().flat_map(|trace| &mut trace.calls) {
            call.function = new_place(call.function);
        }
        let node = |(_, node): (u32, &super::tree::Node)| NodeRecord {
            parent: (node.parent != ROOT).then(|| node.parent as usize - 1),
            function: new_place(node.function as usize),
        };
        Chains {
            shortfall,
            functions: places.iter().map(record).collect(),
            nodes: tree.iter().map(node).collect(),
            windows: Vec::new(),
            traces,
        }
    }
}
