//! From executions of blocks to instructions and calls of functions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use kduel_counts::{
    BlockCount, BlockRecord, Class, Context, ContextRecord, Counts, Kind, WindowRecord,
};
use kduel_protocol::window_number;

use super::code::{Code, Functions};
use super::entries::{Entry, counts_entry};
use crate::collect::WindowCounts;

/// Whose work it is: each instruction of a window is in exactly one scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// The workload's own tasks: what exact runs compare.
    Own,
    /// Other tasks.
    Others,
    /// Interrupts, whomever they interrupted.
    Interrupts,
    /// Deferred work of interrupts.
    Softirqs,
    /// Spinning and polling.
    Waiting,
    /// The idle task.
    Idle,
}

impl Scope {
    /// In the order of reports.
    pub const ALL: [Self; 6] =
        [Self::Own, Self::Others, Self::Interrupts, Self::Softirqs, Self::Waiting, Self::Idle];

    fn of(context: Context) -> Self {
        match context.kind {
            _ if context.is_own_work() => Self::Own,
            Kind::Interrupt(_) | Kind::SystemInterrupt(_) => Self::Interrupts,
            Kind::Softirq => Self::Softirqs,
            Kind::Waiting => Self::Waiting,
            Kind::Idle => Self::Idle,
            Kind::User(_) | Kind::Kernel | Kind::Syscall(_) | Kind::Exception(_) => Self::Others,
        }
    }

    /// In reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Own => "own tasks",
            Self::Others => "other tasks",
            Self::Interrupts => "interrupts",
            Self::Softirqs => "softirqs",
            Self::Waiting => "waiting",
            Self::Idle => "idle",
        }
    }
}

/// The kernel's function of the system call `NAME` is called this and `NAME`.
const SYSCALL: &str = "__x64_sys_";

/// What was executed, over all windows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Instructions as hardware counts them.
    pub instructions: u64,
    /// Executions of the first instruction.
    pub calls: u64,
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.calls += other.calls;
    }
}

/// The windows of one trial, added up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Operations in all windows.
    pub operations: u64,
    /// Everything that was executed, by whose work it was.
    pub rows: BTreeMap<(Scope, Code), Sums>,
    /// Own tasks' system calls and exceptions, and everybody's interrupts: `calls` is how many.
    pub entries: BTreeMap<Entry, Sums>,
    /// Which function was seen to call or jump to which.
    pub edges: Vec<(Code, Code)>,
    /// Names of the system calls that were made, by number.
    pub syscalls: BTreeMap<u16, String>,
    /// Other names of functions.
    pub aliases: BTreeMap<Code, Vec<String>>,
    /// At how many addresses functions of this name lie, where it is more than one.
    pub places: BTreeMap<Code, usize>,
}

impl Profile {
    /// All instructions of a scope.
    pub fn total(&self, scope: Scope) -> u64 {
        let own = self.rows.iter().filter(|((of, _), _)| *of == scope);
        own.map(|(_, sums)| sums.instructions).sum()
    }

    /// Adds the windows of another boot of the same trial.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        for (key, sums) in &other.rows {
            *self.rows.entry(key.clone()).or_default() += *sums;
        }
        for (key, sums) in &other.entries {
            *self.entries.entry(key.clone()).or_default() += *sums;
        }
        self.edges.extend(other.edges.iter().cloned());
        self.syscalls.extend(other.syscalls.clone());
        self.aliases.extend(other.aliases.clone());
        self.places.extend(other.places.clone());
    }
}

/// Consecutive instructions of a block that belong to the same code.
#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Place among the functions that are used; one behind them for code without a symbol.
    function: usize,
    /// First instruction and the one behind the last.
    from: usize,
    to: usize,
    /// Whether its first instruction is the function's.
    enters: bool,
}

/// What was counted in a boot, ready to be added up trial by trial.
#[derive(Debug)]
pub struct BootProfile<'a> {
    counts: &'a Counts,
    functions: &'a Functions,
    /// Functions that were executed at all, by their place among all.
    used: Vec<usize>,
    /// The function that handles softirqs, whoever calls it.
    softirqs: &'static str,
    /// By block; empty for code of processes.
    segments: Vec<Vec<Segment>>,
    /// Direct calls and jumps from one of them to the begin of another.
    edges: Vec<(usize, usize)>,
}

impl<'a> BootProfile<'a> {
    /// Finds the functions of each block.
    pub fn new(counts: &'a Counts, functions: &'a Functions) -> Self {
        let mut segments: Vec<Vec<Segment>> =
            counts.blocks.iter().map(|block| segments(block, functions)).collect();
        let all = segments.iter().flatten().map(|segment| segment.function);
        let used: Vec<usize> =
            all.filter(|at| *at < functions.len()).collect::<BTreeSet<_>>().into_iter().collect();
        for segment in segments.iter_mut().flatten() {
            segment.function = used.binary_search(&segment.function).unwrap_or(used.len());
        }
        let named = |name| used.iter().any(|at| functions.code(*at).name() == Some(name));
        // Newer kernels have the work in a function of its own, called by the old one.
        let softirqs = if named("handle_softirqs") { "handle_softirqs" } else { "__do_softirq" };
        let mut profile = Self { counts, functions, used, softirqs, segments, edges: Vec::new() };
        profile.edges = profile.edges();
        profile
    }

    fn edges(&self) -> Vec<(usize, usize)> {
        let mut edges = Vec::new();
        for (block, segments) in self.counts.blocks.iter().zip(&self.segments) {
            let (Some(last), Some(target)) = (segments.last(), block.direct_target()) else {
                continue;
            };
            let to = self.functions.find(target).filter(|to| self.functions.start(*to) == target);
            let to = to.and_then(|to| self.used.binary_search(&to).ok());
            edges.extend(to.filter(|to| *to != last.function).map(|to| (last.function, to)));
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The windows of a trial that gave samples.
    pub fn trial(&self, windows: &[&WindowCounts]) -> Profile {
        let told: BTreeMap<u64, u64> =
            windows.iter().map(|w| (window_number(w.trial, w.iteration), w.ops)).collect();
        let mut sums = Adding::new(self.used.len());
        let mut operations = 0;
        for window in &self.counts.windows {
            let Some(ops) = told.get(&window.number) else { continue };
            operations += ops;
            self.add_window(&mut sums, window);
        }
        self.finish(sums, operations)
    }

    fn add_window(&self, sums: &mut Adding, window: &WindowRecord) {
        for part in &window.contexts {
            let nobody = self.counts.shortfall.no_symbols;
            let context = Context { own: part.context.own || nobody, ..part.context };
            let scope = Scope::of(context);
            let mut entered = 0;
            for count in &part.blocks {
                entered += self.add_block(sums, scope, part, count);
            }
            if let Some(entry) = Entry::of(context, &part.name) {
                let instructions = part.totals[Class::Instructions];
                *sums.entries.entry(entry).or_default() += Sums { instructions, calls: entered };
            }
        }
    }

    /// Gives how often the block entered the context.
    fn add_block(
        &self,
        sums: &mut Adding,
        scope: Scope,
        part: &ContextRecord,
        count: &BlockCount,
    ) -> u64 {
        let (block, segments) = (&self.counts.blocks[count.block], &self.segments[count.block]);
        if segments.is_empty() {
            let all = completed(count, block, 0, block.lengths.len());
            sums.process(scope, &part.name).instructions += all.instructions;
        }
        let mut entered = 0;
        for segment in segments {
            let mut own = completed(count, block, segment.from, segment.to);
            if !segment.enters {
                own.calls = 0;
            }
            sums.functions[scope as usize][segment.function] += own;
            let Some(name) = self.name(segment.function).filter(|_| own.calls > 0) else {
                continue;
            };
            if counts_entry(part.context.kind, name, self.softirqs) {
                entered += own.calls;
            }
            if let (Kind::Syscall(Some(number)), Some(name)) =
                (part.context.kind, name.strip_prefix(SYSCALL))
            {
                let calls = sums.syscalls.entry((number, name.to_owned())).or_default();
                *calls += own.calls;
            }
        }
        entered
    }

    fn name(&self, function: usize) -> Option<&str> {
        self.functions.code(*self.used.get(function)?).name()
    }

    fn finish(&self, sums: Adding, operations: u64) -> Profile {
        let mut profile = Profile { operations, entries: sums.entries, ..Profile::default() };
        let mut seen = vec![false; self.used.len() + 1];
        for (scope, rows) in Scope::ALL.into_iter().zip(sums.functions) {
            for (function, row) in rows.into_iter().enumerate() {
                if row == Sums::default() {
                    continue;
                }
                let code = self.code(function);
                if !std::mem::replace(&mut seen[function], true) {
                    self.describe(&mut profile, function, &code);
                }
                *profile.rows.entry((scope, code)).or_default() += row;
            }
        }
        profile.places.retain(|_, places| *places > 1);
        for ((scope, name), row) in sums.processes {
            *profile.rows.entry((scope, Code::Process(name.into()))).or_default() += row;
        }
        let executed = self.edges.iter().filter(|(from, to)| seen[*from] && seen[*to]);
        profile.edges = executed.map(|(from, to)| (self.code(*from), self.code(*to))).collect();
        let mut names: Vec<_> = sums.syscalls.into_iter().collect();
        names.sort_by_key(|(_, calls)| *calls);
        profile.syscalls = names.into_iter().map(|((number, name), _)| (number, name)).collect();
        profile
    }

    fn code(&self, function: usize) -> Code {
        self.used.get(function).map_or(Code::Unnamed, |at| self.functions.code(*at).clone())
    }

    fn describe(&self, profile: &mut Profile, function: usize, code: &Code) {
        let Some(place) = self.used.get(function) else { return };
        *profile.places.entry(code.clone()).or_default() += 1;
        let aliases = self.functions.aliases(*place);
        if !aliases.is_empty() {
            let names = aliases.iter().map(|name| name.to_string()).collect();
            profile.aliases.insert(code.clone(), names);
        }
    }
}

/// Sums that are being made.
struct Adding {
    /// By scope and used function; the last is for code without a symbol.
    functions: [Vec<Sums>; Scope::ALL.len()],
    processes: BTreeMap<(Scope, String), Sums>,
    entries: BTreeMap<Entry, Sums>,
    /// Calls of the functions that are system calls, by number and name.
    syscalls: BTreeMap<(u16, String), u64>,
}

impl Adding {
    fn new(functions: usize) -> Self {
        Self {
            functions: std::array::from_fn(|_| vec![Sums::default(); functions + 1]),
            processes: BTreeMap::new(),
            entries: BTreeMap::new(),
            syscalls: BTreeMap::new(),
        }
    }

    fn process(&mut self, scope: Scope, name: &str) -> &mut Sums {
        self.processes.entry((scope, name.to_owned())).or_default()
    }
}

/// Instructions `from..to` of a block: how many completed, and the first of them alone as calls.
fn completed(count: &BlockCount, block: &BlockRecord, from: usize, to: usize) -> Sums {
    let instructions = block.lengths.len();
    if count.corrections.is_empty() {
        let unfinished = if to == instructions { count.unfinished } else { 0 };
        let whole = count.executions * (to - from) as u64;
        let first = if to - from == 1 { unfinished } else { 0 };
        return Sums {
            instructions: whole.saturating_sub(unfinished),
            calls: count.executions.saturating_sub(first),
        };
    }
    let mut own = count.completed(instructions).skip(from).take(to - from).peekable();
    let calls = own.peek().copied().unwrap_or(0);
    Sums { calls, instructions: own.sum() }
}

fn segments(block: &BlockRecord, functions: &Functions) -> Vec<Segment> {
    if block.address >> 63 == 0 {
        return Vec::new();
    }
    let mut segments: Vec<Segment> = Vec::new();
    let mut address = block.address;
    // Until this address the code is that of the last segment.
    let mut known_until = 0;
    for (index, length) in block.lengths.iter().enumerate() {
        if address < known_until
            && let Some(last) = segments.last_mut()
        {
            last.to = index + 1;
        } else {
            let function = functions.find(address);
            known_until = function.map_or(address, |place| functions.end(place));
            let enters = function.is_some_and(|place| functions.start(place) == address);
            let function = function.unwrap_or(functions.len());
            segments.push(Segment { function, from: index, to: index + 1, enters });
        }
        address = address.wrapping_add(u64::from(*length));
    }
    segments
}
