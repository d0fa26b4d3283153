//! The made-up machine: an instruction pointer that goes where the test says, and a stack pointer.

use std::collections::BTreeMap;

use kduel_counts::{Counts, Guest, Hooks, Register, Symbols, Tracker, read, write};
use kduel_protocol::Mark;

pub const BASE: u64 = 0xffff_ffff_8100_0000;
pub const ENTRY: u64 = BASE;
pub const FAULT: u64 = BASE + 0x100;
pub const TIMER: u64 = BASE + 0x200;
pub const IRET: u64 = BASE + 0x300;
pub const SWITCH_ASM: u64 = BASE + 0x1000;
pub const SWITCH: u64 = BASE + 0x1100;
pub const SCHEDULE: u64 = BASE + 0x1200;
pub const DO_SYSCALL: u64 = BASE + 0x1300;
pub const WORK: u64 = BASE + 0x1400;
pub const LEAF: u64 = BASE + 0x1500;
pub const THUNK: u64 = BASE + 0x1600;
pub const ERROR_ENTRY: u64 = BASE + 0x1700;
pub const EXC_FAULT: u64 = BASE + 0x1800;
pub const HANDLER: u64 = BASE + 0x1900;
pub const NEW_TASK: u64 = BASE + 0x1a00;
pub const FROM_FORK: u64 = BASE + 0x1b00;
pub const USER: u64 = 0x40_0000;

pub const SYMBOLS: &str = "\
ffffffff81000000 T entry_SYSCALL_64
ffffffff81000000 T __entry_text_start
ffffffff81000100 T asm_exc_page_fault
ffffffff81000200 T asm_sysvec_apic_timer_interrupt
ffffffff81000300 t native_irq_return_iret
ffffffff81001000 T __entry_text_end
ffffffff81001000 T __switch_to_asm
ffffffff81001100 T __switch_to
ffffffff81001200 T schedule
ffffffff81001300 T do_syscall
ffffffff81001400 t work
ffffffff81001500 t leaf
ffffffff81001600 T thunk
ffffffff81001700 T error_entry
ffffffff81001800 T exc_fault
ffffffff81001900 T handler
ffffffff81001a00 T wake_up_new_task
ffffffff81001b00 T ret_from_fork
";

pub const INC: &[u8] = &[0x48, 0xff, 0xc0];
pub const LOAD: &[u8] = &[0x48, 0x8b, 0x07];
pub const CALL: &[u8] = &[0xe8, 0, 0, 0, 0];
pub const RET: &[u8] = &[0xc3];
pub const JMP: &[u8] = &[0xff, 0xe0];
pub const IRETQ: &[u8] = &[0x48, 0xcf];
pub const REP_STOSQ: &[u8] = &[0xf3, 0x48, 0xab];

/// Tops of two tasks' stacks and of the one for interrupts.
pub const STACKS: [u64; 3] = [0xffff_c900_0001_0000, 0xffff_c900_0003_0000, 0xffff_c900_0009_0000];

#[derive(Default)]
pub struct Fake {
    pub stack: Option<u64>,
    pub rdi: u64,
    pub rsi: u64,
    pub memory: BTreeMap<u64, u64>,
}

impl Guest for Fake {
    fn register(&mut self, register: Register) -> Option<u64> {
        match register {
            Register::Rsp => self.stack,
            Register::Rdi => Some(self.rdi),
            Register::Rsi => Some(self.rsi),
            _ => Some(0),
        }
    }
    fn memory(&mut self, address: u64) -> Option<u64> {
        self.memory.get(&address).copied()
    }
}

pub struct Machine {
    pub tracker: Tracker,
    pub guest: Fake,
}

impl Machine {
    /// In a process, in a window, in the task 0x10.
    pub fn new() -> Self {
        let symbols = Symbols::parse(SYMBOLS).expect("well-formed");
        let tracker = Tracker::new(Hooks::new(&symbols), 1).with_chains(&symbols);
        let guest = Fake { stack: Some(STACKS[0]), ..Fake::default() };
        let mut machine = Self { tracker, guest };
        (machine.guest.rdi, machine.guest.rsi) = (0x90, 0x10);
        machine.run(SWITCH, &[INC]);
        machine.mark(Mark::Begin);
        machine
    }

    pub fn run(&mut self, address: u64, code: &[&[u8]]) {
        let lengths: Vec<u8> = code.iter().map(|i| u8::try_from(i.len()).expect("short")).collect();
        let number = self.tracker.translate(address, &code.concat(), &lengths);
        self.tracker.execute(0, number, &mut self.guest);
    }

    pub fn mark(&mut self, mark: Mark) {
        self.guest.rdi = 0;
        let bytes = mark.bytes();
        let code: [&[u8]; 2] = [INC, &bytes];
        let number = self.tracker.translate(USER, &code.concat(), &[3, 7]);
        self.tracker.execute(0, number, &mut self.guest);
        self.tracker.mark(0, number, 1, &mut self.guest);
    }

    pub fn stack(&mut self) -> &mut u64 {
        self.guest.stack.as_mut().expect("readable")
    }

    /// A block of two instructions, the second a call.
    pub fn call(&mut self, from: u64) {
        self.run(from, &[INC, CALL]);
        *self.stack() -= 8;
    }

    /// A block of two instructions, the second a return.
    pub fn ret(&mut self, from: u64) {
        self.run(from, &[INC, RET]);
        *self.stack() += 8;
    }

    /// From the process through the entry into `do_syscall`, on the task's own stack.
    pub fn syscall(&mut self, stack: u64) {
        self.run(ENTRY, &[INC]);
        *self.stack() = stack - 0x100;
        self.call(ENTRY + 0x10);
    }

    pub fn interrupt(&mut self, entry: u64, error: bool, back: u64) {
        let words = if error { vec![4, back, 0x10] } else { vec![back, 0x10] };
        *self.stack() -= 40 + 8 * u64::from(error);
        let stack = *self.stack();
        for (place, word) in (0..).zip(words) {
            self.guest.memory.insert(stack + 8 * place, word);
        }
        self.run(entry, &[INC]);
    }

    /// `__switch_to_asm` was called: goes on with the other task.
    pub fn switch(&mut self, from: u64, to: u64, stack: u64) {
        self.run(SWITCH_ASM, &[INC, INC]);
        *self.stack() = stack;
        (self.guest.rdi, self.guest.rsi) = (from, to);
        self.ret(SWITCH);
    }

    pub fn finish(mut self) -> Counts {
        self.run(USER + 0x100, &[INC]);
        self.mark(Mark::End);
        let counts = self.tracker.finish();
        let back = read(&write(&counts)).expect("what was written can be read");
        assert_eq!(back, counts);
        crate::sums_are_those_of_functions(&back);
        back
    }
}
