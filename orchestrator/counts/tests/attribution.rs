//! Made-up kernels execute made-up blocks; what is counted where is known beforehand.
#![expect(clippy::expect_used, clippy::panic, reason = "what a test cannot go on without")]

use std::collections::BTreeMap;

use kduel_counts::{
    Class, Context, Counts, Guest, Hooks, Kind, Register, Symbols, Totals, Tracker, read, write,
};
use kduel_protocol::Mark;

const SWITCH: u64 = 0xffff_ffff_8100_0000;
const NEW_TASK: u64 = SWITCH + 0x100;
const SOFTIRQ: u64 = SWITCH + 0x200;
const IDLE: u64 = SWITCH + 0x300;
const SPIN: u64 = SWITCH + 0x400;
const PLAIN: u64 = SWITCH + 0x500;
const NAME: u64 = SWITCH + 0x600;
const SYSCALL: u64 = SWITCH + 0x1000;
const FAULT: u64 = SWITCH + 0x1100;
const TIMER: u64 = SWITCH + 0x1200;
const IRET: u64 = SWITCH + 0x1300;
const USER: u64 = 0x40_0000;

const SYMBOLS: &str = "\
ffffffff81000000 T __switch_to
ffffffff81000100 T wake_up_new_task
ffffffff81000200 T __do_softirq
ffffffff81000300 t do_idle
ffffffff81000400 T native_queued_spin_lock_slowpath
ffffffff81000500 T plain
ffffffff81000600 T __set_task_comm
ffffffff81001000 T __entry_text_start
ffffffff81001000 T entry_SYSCALL_64
ffffffff81001100 T asm_exc_page_fault
ffffffff81001200 T asm_sysvec_apic_timer_interrupt
ffffffff81001300 t native_irq_return_iret
ffffffff81002000 T __entry_text_end
";

const NOP: &[u8] = &[0x90];
const INC: &[u8] = &[0x48, 0xff, 0xc0];
const LOAD: &[u8] = &[0x48, 0x8b, 0x07];
const REP_STOSQ: &[u8] = &[0xf3, 0x48, 0xab];
const IRETQ: &[u8] = &[0x48, 0xcf];

#[derive(Default)]
struct Fake {
    registers: BTreeMap<u8, u64>,
    memory: BTreeMap<u64, u64>,
}

impl Guest for Fake {
    fn register(&mut self, register: Register) -> Option<u64> {
        self.registers.get(&(register as u8)).copied()
    }
    fn memory(&mut self, address: u64) -> Option<u64> {
        self.memory.get(&address).copied()
    }
}

/// A machine with the made-up kernel.
struct Machine {
    tracker: Tracker,
    guest: Fake,
    vcpu: usize,
}

impl Machine {
    fn new(vcpus: usize) -> Self {
        let hooks = Hooks::new(&Symbols::parse(SYMBOLS).expect("well-formed"));
        Self { tracker: Tracker::new(hooks, vcpus), guest: Fake::default(), vcpu: 0 }
    }

    fn block(&mut self, address: u64, code: &[&[u8]]) -> usize {
        let lengths: Vec<u8> = code.iter().map(|i| u8::try_from(i.len()).expect("short")).collect();
        self.tracker.translate(address, &code.concat(), &lengths)
    }

    fn run(&mut self, address: u64, code: &[&[u8]]) {
        let number = self.block(address, code);
        self.tracker.execute(self.vcpu, number, &mut self.guest);
    }

    fn set(&mut self, register: Register, value: u64) {
        self.guest.registers.insert(register as u8, value);
    }

    /// Pushes what the processor pushes, and runs the first block of an entry.
    fn enter(&mut self, entry: u64, error: Option<u64>, address: u64, code: &[&[u8]]) {
        let segment = if address >> 63 == 0 { 0x33 } else { 0x10 };
        let words = error.into_iter().chain([address, segment]);
        for (place, word) in words.enumerate() {
            self.guest.memory.insert(0x9000 + 8 * place as u64, word);
        }
        self.set(Register::Rsp, 0x9000);
        self.run(entry, code);
    }

    fn switch(&mut self, from: u64, to: u64) {
        self.set(Register::Rdi, from);
        self.set(Register::Rsi, to);
        self.run(SWITCH, &[NOP]);
    }

    fn name(&mut self, task: u64, name: &str) {
        let mut words = name.as_bytes().to_vec();
        words.resize(16, 0);
        for (place, word) in words.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            self.guest.memory.insert(0xa000 + 8 * place as u64, word);
        }
        self.set(Register::Rdi, task);
        self.set(Register::Rsi, 0xa000);
        self.run(NAME, &[NOP]);
    }

    fn make(&mut self, task: u64) {
        self.set(Register::Rdi, task);
        self.run(NEW_TASK, &[NOP]);
    }

    /// A block of a mark between two instructions.
    fn mark(&mut self, mark: Mark, window: u64) {
        self.set(Register::Rdi, window);
        let bytes = mark.bytes();
        let number = self.block(USER, &[INC, &bytes, INC]);
        self.tracker.execute(self.vcpu, number, &mut self.guest);
        self.tracker.mark(self.vcpu, number, 1, &mut self.guest);
    }

    /// Everything through the file and back.
    fn finish(self) -> Counts {
        let counts = self.tracker.finish();
        let back = read(&write(&counts)).expect("what was written can be read");
        assert_eq!(back, counts);
        back
    }
}

fn own(kind: Kind) -> Context {
    Context { own: true, kind }
}

fn other(kind: Kind) -> Context {
    Context { own: false, kind }
}

/// Instructions by context of the only window.
fn instructions(counts: &Counts) -> Vec<(Context, u64)> {
    let [window] = counts.windows.as_slice() else { panic!("{} windows", counts.windows.len()) };
    window.contexts.iter().map(|c| (c.context, c.totals[Class::Instructions])).collect()
}

fn all(counts: &Counts) -> Totals {
    counts.windows[0].totals(|_| true)
}

#[test]
fn a_window_holds_what_lies_between_its_marks_and_nothing_else() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.run(USER + 0x100, &[INC, INC]);
    machine.mark(Mark::Begin, 7);
    machine.run(USER + 0x100, &[INC, INC]);
    machine.mark(Mark::End, 7);
    machine.run(USER + 0x100, &[INC, INC]);
    let counts = machine.finish();
    assert_eq!(counts.windows[0].number, 7);
    // One behind the first mark, two, and one in front of the second.
    assert_eq!(instructions(&counts), [(own(Kind::User(0)), 4)]);
    assert_eq!(counts.shortfall, Default::default());
}

#[test]
fn a_window_that_is_opened_again_goes_on() {
    let mut machine = Machine::new(1);
    machine.switch(0, 0x10);
    for (window, work) in [(7, 1), (7, 2), (8, 3)] {
        machine.mark(Mark::Begin, window);
        (0..work).for_each(|_| machine.run(USER + 0x100, &[INC, NOP]));
        machine.mark(Mark::End, window);
        machine.run(USER + 0x200, &[NOP]);
    }
    let counts = machine.finish();
    let found: Vec<(u64, u64)> = counts
        .windows
        .iter()
        .map(|window| (window.number, window.totals(|_| true)[Class::Instructions]))
        .collect();
    // Behind the first mark an instruction is left, and in front of the second one.
    assert_eq!(found, [(7, 2 * 2 + 3 * 2), (8, 2 + 3 * 2)]);
    assert_eq!(counts.shortfall.nested_windows, 0);
}

#[test]
fn system_calls_have_numbers_and_processes_have_names() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.name(2, "kduel-agent-that-is-long");
    machine.mark(Mark::Begin, 0);
    machine.set(Register::Rax, 57);
    machine.run(SYSCALL, &[NOP]);
    machine.make(3);
    machine.switch(2, 3);
    machine.run(USER + 0x100, &[INC]);
    machine.set(Register::Rax, 0xffff_0000_0000_003b);
    machine.run(SYSCALL, &[NOP]);
    machine.name(3, "sh");
    machine.run(USER + 0x100, &[INC, INC]);
    machine.set(Register::Rax, u64::MAX);
    machine.run(SYSCALL, &[NOP, NOP, NOP]);
    machine.switch(3, 2);
    machine.mark(Mark::End, 0);
    let counts = machine.finish();
    let named: Vec<(&str, Kind, u64)> = counts.windows[0]
        .contexts
        .iter()
        .map(|c| (c.name.as_str(), c.context.kind, c.totals[Class::Instructions]))
        .collect();
    // The child has its parent's name until it executes a program of its own. Both switches count
    // where they lead to.
    assert_eq!(
        named,
        [
            ("kduel-agent-tha", Kind::User(1), 1 + 1 + 1),
            ("sh", Kind::User(2), 2),
            ("", Kind::Kernel, 1),
            ("", Kind::Syscall(None), 3),
            ("", Kind::Syscall(Some(57)), 1 + 1 + 1),
            ("", Kind::Syscall(Some(59)), 1 + 1),
        ]
    );
}

#[test]
fn descendants_are_own_and_strangers_are_not() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    machine.run(SYSCALL, &[NOP]);
    machine.make(3);
    machine.switch(2, 3);
    machine.run(USER + 0x100, &[INC]);
    machine.run(SYSCALL, &[NOP]);
    machine.make(4);
    machine.switch(3, 4);
    machine.run(PLAIN, &[INC]);
    machine.switch(4, 5);
    machine.run(PLAIN, &[INC, INC]);
    machine.switch(5, 2);
    machine.run(PLAIN, &[INC]);
    machine.mark(Mark::End, 0);
    let counts = machine.finish();
    // A switch belongs to the task that it leads to; a new task begins outside any entry.
    assert_eq!(
        instructions(&counts),
        [
            (other(Kind::Kernel), 1 + 2),
            (own(Kind::User(0)), 1 + 1 + 1),
            (own(Kind::Kernel), 1 + 1 + 1),
            (own(Kind::Syscall(None)), 1 + 1 + 1 + 1 + 1 + 1),
        ]
    );
}

#[test]
fn a_fault_takes_back_what_was_not_executed() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    machine.run(USER + 0x100, &[INC, LOAD, INC, INC]);
    machine.enter(FAULT, Some(4), USER + 0x103, &[NOP, NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.run(USER + 0x103, &[LOAD, INC, INC]);
    machine.mark(Mark::End, 0);
    let counts = machine.finish();
    assert_eq!(
        instructions(&counts),
        [(own(Kind::User(0)), 1 + 4 + 1), (own(Kind::Exception(14)), 3)]
    );
    assert_eq!(all(&counts)[Class::Loads], 1 + 5, "the load once, and the five words of iret");
}

#[test]
fn a_fault_of_fetching_code_takes_nothing_back() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    machine.run(USER + 0x100, &[INC, INC]);
    machine.enter(FAULT, Some(0x14), USER + 0x1_0100, &[NOP]);
    machine.run(USER + 0x1_0100, &[INC]);
    machine.mark(Mark::End, 0);
    assert_eq!(
        instructions(&machine.finish()),
        [(own(Kind::User(0)), 1 + 2 + 1 + 1), (own(Kind::Exception(14)), 1)]
    );
}

#[test]
fn a_repeated_instruction_counts_once_however_often_it_is_interrupted() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    let rep = USER + 0x103;
    machine.run(USER + 0x100, &[INC, REP_STOSQ]);
    machine.run(rep, &[REP_STOSQ]);
    machine.run(rep, &[REP_STOSQ]);
    machine.enter(TIMER, None, rep, &[NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.run(rep, &[REP_STOSQ]);
    machine.enter(FAULT, Some(6), rep, &[NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.run(rep, &[REP_STOSQ]);
    machine.run(rep, &[REP_STOSQ]);
    machine.run(USER + 0x106, &[INC]);
    machine.mark(Mark::End, 0);
    let counts = machine.finish();
    let user = counts.windows[0].totals(|c| c.kind == Kind::User(0));
    assert_eq!(user[Class::Instructions], 1 + 1 + 1 + 1 + 1);
    // Three, one again after the fault; the last execution finds nothing to do.
    assert_eq!(user[Class::StringIterations], 4);
    assert_eq!(user[Class::StringBytes], 32);
}

#[test]
fn an_access_to_a_device_takes_back_the_rest_of_its_block() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    machine.run(SYSCALL, &[NOP]);
    machine.run(PLAIN, &[INC, LOAD, INC, INC]);
    let alone = machine.block(PLAIN + 3, &[LOAD]);
    machine.tracker.access_device(0, alone);
    machine.run(PLAIN + 6, &[INC, INC]);
    machine.mark(Mark::End, 0);
    let counts = machine.finish();
    assert_eq!(instructions(&counts), [(own(Kind::User(0)), 2), (own(Kind::Syscall(None)), 1 + 4)]);
    assert_eq!(all(&counts)[Class::MemoryMappedIo], 1);
}

#[test]
fn interrupts_softirqs_idle_and_waiting_are_kept_apart() {
    let mut machine = Machine::new(1);
    machine.switch(1, 2);
    machine.mark(Mark::Begin, 0);
    machine.run(SYSCALL, &[NOP]);
    machine.run(SPIN, &[NOP, NOP]);
    machine.run(PLAIN, &[INC]);
    machine.enter(TIMER, None, PLAIN + 3, &[NOP]);
    machine.guest.memory.insert(0x9000, TIMER + 0x10);
    machine.run(SOFTIRQ, &[NOP]);
    machine.run(PLAIN, &[INC]);
    machine.run(TIMER + 0x10, &[NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.run(PLAIN + 3, &[INC]);
    machine.switch(2, 9);
    machine.run(IDLE, &[NOP]);
    machine.enter(TIMER, None, IDLE + 1, &[NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.run(IDLE + 1, &[NOP]);
    machine.switch(9, 2);
    machine.mark(Mark::End, 0);
    let timer = Kind::SystemInterrupt(0);
    let counts = machine.finish();
    assert_eq!(
        instructions(&counts),
        [
            (other(Kind::Kernel), 1),
            (other(timer), 2),
            (other(Kind::Idle), 2),
            (own(Kind::User(0)), 2),
            (own(Kind::Syscall(None)), 4),
            (own(timer), 3),
            (own(Kind::Softirq), 2),
            (own(Kind::Waiting), 2),
        ]
    );
    assert_eq!(counts.windows[0].contexts[1].name, "apic_timer_interrupt");
    assert_eq!(all(&counts)[Class::Instructions], 18, "every instruction that was executed");
}

#[test]
fn a_vcpu_that_began_in_its_idle_task_is_known_to_idle_when_it_is_back() {
    let mut machine = Machine::new(2);
    machine.switch(1, 2);
    machine.vcpu = 1;
    machine.run(IDLE, &[NOP]);
    machine.switch(8, 9);
    machine.vcpu = 0;
    machine.mark(Mark::Begin, 0);
    machine.vcpu = 1;
    machine.run(PLAIN, &[INC]);
    machine.switch(9, 8);
    machine.run(PLAIN, &[INC, INC]);
    machine.vcpu = 0;
    machine.mark(Mark::End, 0);
    assert_eq!(
        instructions(&machine.finish()),
        [(other(Kind::Kernel), 1), (other(Kind::Idle), 1 + 2), (own(Kind::User(0)), 2)]
    );
}

#[test]
fn a_softirq_that_returned_unseen_is_over() {
    let mut machine = Machine::new(2);
    machine.switch(1, 2);
    machine.vcpu = 1;
    machine.switch(8, 9);
    machine.run(SYSCALL, &[NOP]);
    machine.set(Register::Rsp, 0x8f00);
    machine.guest.memory.insert(0x8f00, PLAIN + 0x40);
    machine.run(SOFTIRQ, &[NOP]);
    // Outside of windows the block that it returns to is not announced; the stack is shorter.
    machine.enter(TIMER, None, PLAIN, &[NOP]);
    machine.run(IRET, &[IRETQ]);
    machine.vcpu = 0;
    machine.mark(Mark::Begin, 0);
    machine.vcpu = 1;
    machine.run(PLAIN, &[INC]);
    machine.vcpu = 0;
    machine.mark(Mark::End, 0);
    assert_eq!(
        instructions(&machine.finish()),
        [(other(Kind::Syscall(None)), 1), (own(Kind::User(0)), 2)]
    );
}

#[test]
fn vcpus_are_counted_into_one_window_but_followed_apart() {
    let mut machine = Machine::new(2);
    machine.switch(1, 2);
    machine.vcpu = 1;
    machine.switch(8, 9);
    machine.run(USER + 0x200, &[INC]);
    machine.vcpu = 0;
    machine.mark(Mark::Begin, 0);
    machine.vcpu = 1;
    machine.run(USER + 0x200, &[INC]);
    machine.run(SYSCALL, &[NOP]);
    machine.vcpu = 0;
    machine.run(USER + 0x100, &[INC]);
    machine.mark(Mark::End, 0);
    assert_eq!(
        instructions(&machine.finish()),
        [(other(Kind::User(0)), 1), (other(Kind::Syscall(None)), 1), (own(Kind::User(0)), 3)]
    );
}

#[test]
fn marks_that_do_not_match_are_noted() {
    let mut machine = Machine::new(1);
    machine.mark(Mark::End, 1);
    machine.mark(Mark::Begin, 1);
    machine.mark(Mark::Begin, 2);
    let counts = machine.finish();
    assert_eq!(counts.windows.len(), 0);
    assert_eq!(counts.shortfall.nested_windows, 2);
    assert_eq!(counts.shortfall.rootless_windows, 1);
    assert_eq!(counts.shortfall.unfinished_windows, 1);
}
