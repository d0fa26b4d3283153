//! Follows what the vCPUs execute and counts it.

use std::collections::BTreeMap;

use kduel_protocol::Mark;

use crate::block::{Block, Repeats};
use crate::chain::{Arrival, Follower, Functions};
use crate::class::Class;
use crate::context::{COMPAT, Context, Kind};
use crate::file::{Counts, NodeCount, Shortfall, WindowRecord};
use crate::hooks::{Hook, Hooks};
use crate::symbols::Symbols;
use crate::tally::Tally;
use crate::tasks::{Serial, Tasks};
use crate::vcpu::{Frame, Vcpu};

use names::{Names, syscall};

mod chains;
mod names;
mod window;

/// A register of the guest that attribution needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Number of a system call.
    Rax,
    /// Steps that a repeating instruction has left.
    Rcx,
    /// First argument of a function.
    Rdi,
    /// Second argument of a function.
    Rsi,
    /// The stack pointer.
    Rsp,
}

/// The vCPU that is executing, to be asked while it is between two instructions.
pub trait Guest {
    /// Value of a register; `None` if it cannot be read.
    fn register(&mut self, register: Register) -> Option<u64>;
    /// Eight bytes of guest virtual memory; `None` if they are not mapped.
    fn memory(&mut self, address: u64) -> Option<u64>;
}

/// What the fast path needs of a block.
#[derive(Clone, Copy, Debug)]
struct Head {
    address: u64,
    flags: u8,
    chain: Arrival,
}

const USER: u8 = 1;
const WAITS: u8 = 2;
/// Something happens when the block is executed; never expected, so never on the fast path.
const SPECIAL: u8 = 4;
const LEAVES: u8 = 8;
/// Is one repeating instruction and nothing else.
const REPEATS: u8 = 16;
/// The same, and a comparison ends it.
const COMPARES: u8 = 32;

/// Follows what the vCPUs execute. One thread executes all of them in turn.
#[derive(Debug)]
pub struct Tracker {
    hooks: Hooks,
    vcpus: Vec<Vcpu>,
    tasks: Tasks,
    names: Names,
    blocks: Vec<Block>,
    heads: Vec<Head>,
    /// Number of a block by its address and bytes.
    known: BTreeMap<(u64, Box<[u8]>), usize>,
    /// The open window, if one is.
    open: Option<Open>,
    /// The window that was closed last: an iteration may leave out some of what it does, and opens its
    /// window again afterwards.
    paused: Option<Open>,
    windows: Vec<WindowRecord>,
    /// For each window and context, where chains are followed.
    window_nodes: Vec<Vec<Vec<NodeCount>>>,
    shortfall: Shortfall,
    chains: Option<Follower>,
}

/// An open window.
#[derive(Debug)]
struct Open {
    number: u64,
    root: Option<Serial>,
    contexts: Vec<Context>,
    tallies: Vec<Tally>,
}

impl Tracker {
    /// Nothing has been executed yet.
    pub fn new(hooks: Hooks, vcpus: usize) -> Self {
        let shortfall = Shortfall { no_symbols: hooks.is_empty(), ..Shortfall::default() };
        Self {
            hooks,
            vcpus: (0..vcpus).map(|_| Vcpu::default()).collect(),
            tasks: Tasks::default(),
            names: Names::default(),
            blocks: Vec::new(),
            heads: Vec::new(),
            known: BTreeMap::new(),
            open: None,
            paused: None,
            windows: Vec::new(),
            window_nodes: Vec::new(),
            shortfall,
            chains: None,
        }
    }

    /// Follows call chains, too. To be asked for before anything is translated.
    #[must_use]
    pub fn with_chains(mut self, symbols: &Symbols) -> Self {
        self.chains = Some(Follower::new(Functions::new(symbols), self.vcpus.len()));
        self
    }

    /// A block is translated: gives its number, the same for the same code at the same address.
    pub fn translate(&mut self, address: u64, bytes: &[u8], lengths: &[u8]) -> usize {
        let key = (address, Box::from(bytes));
        if let Some(&number) = self.known.get(&key) {
            return number;
        }
        let block = Block::decode(address, bytes, lengths);
        let number = self.blocks.len();
        let chain = self.arrival(&block);
        self.heads.push(Head { address, flags: self.flags(&block), chain });
        self.blocks.push(block);
        self.known.insert(key, number);
        number
    }

    fn flags(&self, block: &Block) -> u8 {
        let mut flags = 0;
        if block.is_user() {
            flags |= USER;
        } else {
            if self.hooks.waits(block.address) {
                flags |= WAITS;
            }
            if self.hooks.at(block.address).is_some() {
                flags |= SPECIAL;
            }
        }
        if let Some((last, address)) = block.last() {
            if last.classes.contains(&Class::InterruptReturn) && self.hooks.ends_entry(address) {
                flags |= LEAVES;
            }
            if block.instructions.len() == 1 {
                flags |= match last.repeats {
                    Repeats::No => 0,
                    Repeats::Counted => REPEATS,
                    Repeats::Compared => REPEATS | COMPARES,
                };
            }
        }
        flags
    }

    /// A block by its number.
    pub fn block(&self, number: usize) -> Option<&Block> {
        self.blocks.get(number)
    }

    /// Whether [`Tracker::execute`] may ask for registers when this block is executed.
    pub fn needs_registers(&self, number: usize) -> bool {
        self.chains.is_some()
            || self.heads.get(number).is_some_and(|head| head.flags & (SPECIAL | COMPARES) != 0)
    }

    /// Whether [`Tracker::execute`] has to be called for this block outside of windows, too.
    pub fn is_always_needed(&self, number: usize) -> bool {
        self.heads.get(number).is_some_and(|head| head.flags & (SPECIAL | LEAVES) != 0)
    }

    /// Whether a window is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// A vCPU begins to execute a block.
    #[inline]
    pub fn execute(&mut self, vcpu: usize, number: usize, guest: &mut impl Guest) {
        let (Some(head), Some(state)) = (self.heads.get(number), self.vcpus.get_mut(vcpu)) else {
            return;
        };
        if head.flags == state.expected && head.address != state.watch {
            let Some(open) = &mut self.open else { return };
            if let Some(tally) = open.tallies.get_mut(state.tally)
                && let Some(count) = tally.counts.get_mut(number)
            {
                count.executions += 1;
                state.last = Some(number);
                if self.chains.is_some() {
                    let chain = head.chain;
                    self.follow(vcpu, chain, guest);
                }
                return;
            }
        }
        if head.flags == state.expected | REPEATS
            && state.last == Some(number)
            && let Some(open) = &mut self.open
            && let Some(count) = open.tallies[state.tally].counts.get_mut(number)
        {
            // One more step: what seemed to be the last one before was not.
            count.executions += 1;
            count.unfinished += 1;
            return;
        }
        let head = *head;
        self.change(vcpu, number, head, guest);
    }

    /// The same, where something changes.
    #[cold]
    fn change(&mut self, vcpu: usize, number: usize, head: Head, guest: &mut impl Guest) {
        let state = &mut self.vcpus[vcpu];
        state.came_back(head.address);
        state.waiting = head.flags & WAITS != 0;
        if head.flags & USER != 0 {
            state.user = true;
            state.frames.clear();
        } else if head.flags & SPECIAL == 0 {
            state.user = false;
        }
        if head.flags & SPECIAL != 0
            && let Some(hook) = self.hooks.at(head.address)
        {
            self.hook(vcpu, hook, guest);
            self.vcpus[vcpu].user = false;
        }
        if head.flags & REPEATS != 0 {
            self.repeat(vcpu, head.address);
        }
        self.settle(vcpu);
        if head.flags & COMPARES != 0 {
            self.reach_comparison(vcpu, number, guest);
        }
        let state = &mut self.vcpus[vcpu];
        if let Some(open) = &mut self.open {
            open.tallies[state.tally].count(number).executions += 1;
            state.last = Some(number);
            self.follow(vcpu, head.chain, guest);
        }
        if head.flags & LEAVES != 0 {
            self.vcpus[vcpu].leave();
            self.settle(vcpu);
            if let Some(chains) = &mut self.chains {
                chains.leave(vcpu);
            }
        }
    }

    /// A vCPU reaches an instruction that repeats until a comparison ends it.
    pub fn reach_comparison(&mut self, vcpu: usize, number: usize, guest: &mut impl Guest) {
        let tally = self.vcpus[vcpu].tally;
        let Some(open) = &mut self.open else { return };
        if guest.register(Register::Rcx) == Some(0) {
            open.tallies[tally].count(number).empty += 1;
        }
    }

    /// A block of one repeating instruction at this address is executed, perhaps for a further step.
    fn repeat(&mut self, vcpu: usize, address: u64) {
        let Vcpu { last, tally, .. } = self.vcpus[vcpu];
        let (Some(last), Some(open)) = (last, &mut self.open) else { return };
        if self.blocks[last].ends_repeating(address) {
            open.tallies[tally].count(last).unfinished += 1;
            self.correct_chain(vcpu, -1);
        }
    }

    fn hook(&mut self, vcpu: usize, hook: Hook, guest: &mut impl Guest) {
        match hook {
            Hook::Syscall { compat } => {
                let number = guest.register(Register::Rax).and_then(|rax| syscall(rax, compat));
                let kind = Kind::Syscall(number);
                let frame = EntryFrame::default();
                self.enter_chain(vcpu, kind, EntryFrame { from_user: true, ..frame });
                self.vcpus[vcpu].enter(kind, true);
            }
            Hook::Exception { vector, error_code, fault } => {
                let frame = self.entry_frame(error_code, guest);
                let fetch = vector == 14 && frame.error & 16 != 0;
                if fault && !fetch {
                    self.cut_at_fault(vcpu, frame.address);
                } else {
                    self.repeat(vcpu, frame.address);
                }
                self.enter(vcpu, Kind::Exception(vector), frame);
            }
            Hook::Interrupt { vector } => self.interrupt(vcpu, Kind::Interrupt(vector), guest),
            Hook::SystemInterrupt { place } => {
                self.interrupt(vcpu, Kind::SystemInterrupt(place), guest);
            }
            Hook::Softirq => self.softirq(vcpu, guest),
            Hook::Switch => self.switch(vcpu, guest),
            Hook::NewTask => {
                if let (Some(maker), Some(made)) =
                    (self.vcpus[vcpu].task, guest.register(Register::Rdi))
                {
                    self.tasks.made(made, maker);
                }
            }
            Hook::Name => self.name_task(guest),
            Hook::Idle => {
                self.vcpus[vcpu].idle = true;
                if let Some(task) = self.vcpus[vcpu].task {
                    self.tasks.get(task).idle = true;
                }
            }
        }
    }

    fn interrupt(&mut self, vcpu: usize, kind: Kind, guest: &mut impl Guest) {
        let frame = self.entry_frame(false, guest);
        self.repeat(vcpu, frame.address);
        self.enter(vcpu, kind, frame);
    }

    fn enter(&mut self, vcpu: usize, kind: Kind, frame: EntryFrame) {
        self.enter_chain(vcpu, kind, frame);
        let state = &mut self.vcpus[vcpu];
        state.drop_returned(frame.stack);
        state.enter(kind, frame.from_user);
    }

    fn softirq(&mut self, vcpu: usize, guest: &mut impl Guest) {
        let stack = guest.register(Register::Rsp).unwrap_or_default();
        let back = guest.memory(stack).unwrap_or_else(|| {
            self.shortfall.unreadable += 1;
            0
        });
        let state = &mut self.vcpus[vcpu];
        state.drop_returned(stack);
        state.frames.push(Frame::Call { kind: Kind::Softirq, back, stack });
    }

    fn entry_frame(&mut self, error_code: bool, guest: &mut impl Guest) -> EntryFrame {
        let frame = EntryFrame::read(error_code, guest);
        if frame.is_none() {
            self.shortfall.unreadable += 1;
        }
        frame.unwrap_or_default()
    }

    /// The instruction at `address` raised a fault: neither it nor what follows was executed.
    fn cut_at_fault(&mut self, vcpu: usize, address: u64) {
        let state = &self.vcpus[vcpu];
        let (Some(last), Some(open)) = (state.last, &mut self.open) else { return };
        let block = &self.blocks[last];
        if let Some(index) = block.index_of(address) {
            open.tallies[state.tally].correct(last, index, -1);
            let taken_back = block.instructions_from(index);
            self.correct_chain(vcpu, -taken_back);
            if let Some(chains) = &mut self.chains {
                chains.cut(vcpu);
            }
        }
    }

    fn switch(&mut self, vcpu: usize, guest: &mut impl Guest) {
        let (Some(from), Some(to)) = (guest.register(Register::Rdi), guest.register(Register::Rsi))
        else {
            self.shortfall.unreadable += 1;
            return;
        };
        let state = &mut self.vcpus[vcpu];
        let left = self.tasks.get(from);
        left.frames = std::mem::take(&mut state.frames);
        // Nothing that is called here gives way: it has returned.
        left.frames.retain(|frame| matches!(frame, Frame::Entry(_)));
        left.idle |= state.idle;
        let entered = self.tasks.get(to);
        let calls = std::mem::take(&mut entered.calls);
        state.frames = std::mem::take(&mut entered.frames);
        (state.idle, state.process) = (entered.idle, entered.process);
        state.task = Some(to);
        let serial = entered.serial;
        let own = self.is_own(serial);
        self.vcpus[vcpu].own = own;
        if let Some(chains) = &mut self.chains {
            self.tasks.get(from).calls = chains.switch(vcpu, calls);
        }
    }

    fn is_own(&self, serial: Serial) -> bool {
        let root = self.open.as_ref().and_then(|open| open.root);
        root.is_some_and(|root| self.tasks.descends(serial, root))
    }

    /// Finds the tally of the context that the vCPU is in now, and what would change it.
    fn settle(&mut self, vcpu: usize) {
        let state = &mut self.vcpus[vcpu];
        state.watch = state.watched();
        state.expected = if state.user {
            USER
        } else if state.waiting {
            WAITS
        } else {
            0
        };
        let Some(open) = &mut self.open else { return };
        let context = Context { own: state.own, kind: state.kind() };
        state.tally = open.contexts.iter().position(|c| *c == context).unwrap_or_else(|| {
            open.contexts.push(context);
            let mut tally = Tally::default();
            tally.counts.resize(self.blocks.len(), Default::default());
            open.tallies.push(tally);
            open.tallies.len() - 1
        });
    }

    /// Device memory was accessed by the last instruction of a block.
    ///
    /// When such an access is not the last instruction, QEMU gives up the block there, executes the
    /// instruction by itself without announcing it, and goes on with a new block behind it.
    pub fn access_device(&mut self, vcpu: usize, number: usize) {
        let state = &mut self.vcpus[vcpu];
        let Some(open) = &mut self.open else { return };
        let tally = &mut open.tallies[state.tally];
        tally.device_accesses += 1;
        let Some((_, address)) = self.blocks[number].last() else { return };
        let Some(given_up) = state.last.take_if(|last| *last != number) else { return };
        let block = &self.blocks[given_up];
        match block.index_of(address) {
            Some(index) if index + 1 < block.instructions.len() => {
                tally.correct(given_up, index + 1, -1);
                let taken_back = block.instructions_from(index + 1);
                self.correct_chain(vcpu, -taken_back);
                if let Some(chains) = &mut self.chains {
                    chains.cut(vcpu);
                }
            }
            Some(_) => {}
            None => self.shortfall.unplaced_accesses += 1,
        }
    }

    /// A vCPU executes a mark, which is this instruction of this block.
    pub fn mark(&mut self, vcpu: usize, number: usize, index: usize, guest: &mut impl Guest) {
        match self.blocks[number].instructions.get(index).and_then(|i| i.mark) {
            Some(Mark::Begin) => self.begin(vcpu, number, index, guest),
            Some(Mark::End) => self.end(vcpu, number, index, guest),
            None => {}
        }
    }

    /// What was counted, once the guest is off; an open window stays out and is noted.
    pub fn finish(mut self) -> Counts {
        self.shortfall.unfinished_windows += u64::from(self.open.is_some());
        self.counts()
    }
}

/// What the processor pushed when it entered the kernel.
#[derive(Clone, Copy, Debug, Default)]
struct EntryFrame {
    /// Where it was pushed.
    stack: u64,
    error: u64,
    address: u64,
    from_user: bool,
}

impl EntryFrame {
    fn read(error_code: bool, guest: &mut impl Guest) -> Option<Self> {
        let stack = guest.register(Register::Rsp)?;
        let mut place = stack;
        let mut error = 0;
        if error_code {
            error = guest.memory(place)?;
            place = place.wrapping_add(8);
        }
        let address = guest.memory(place)?;
        let segment = guest.memory(place.wrapping_add(8))?;
        Some(Self { stack, error, address, from_user: segment & 3 == 3 })
    }
}
