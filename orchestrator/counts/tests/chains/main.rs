//! A made-up kernel calls, jumps, returns and switches with a stack pointer that moves as a real one's
//! does; which chains come out is known beforehand.
#![expect(clippy::expect_used, reason = "what a test cannot go on without")]

use std::collections::BTreeMap;

use kduel_counts::{ChainShortfall, Chains, Class, Counts, RootEntry, Symbols};
use machine::*;

mod machine;

fn chains(counts: &Counts) -> &Chains {
    counts.chains.as_ref().expect("followed")
}

fn name(chains: &Chains, mut node: usize) -> String {
    let mut names = Vec::new();
    loop {
        names.push(chains.functions[chains.nodes[node].function].name.as_str());
        let Some(parent) = chains.nodes[node].parent else { break };
        node = parent;
    }
    names.reverse();
    names.join(";")
}

/// Instructions and calls by chain, in all contexts.
fn folded(counts: &Counts) -> BTreeMap<String, (u64, u64)> {
    let chains = chains(counts);
    let mut folded = BTreeMap::<String, (u64, u64)>::new();
    for count in chains.windows.iter().flatten().flatten() {
        let sums = folded.entry(name(chains, count.node)).or_default();
        *sums = (sums.0 + count.instructions, sums.1 + count.calls);
    }
    folded
}

/// Of every window and context, function by function: what blocks say is what chains say.
fn sums_are_those_of_functions(counts: &Counts) {
    let chains = chains(counts);
    let symbols = Symbols::parse(SYMBOLS).expect("well-formed");
    let start = |address: u64| {
        let before = symbols.iter().map(|s| s.address).take_while(|start| *start <= address).last();
        if address >> 63 == 0 { 0 } else { before.unwrap_or_default() }
    };
    for (window, nodes) in counts.windows.iter().zip(&chains.windows) {
        for (part, nodes) in window.contexts.iter().zip(nodes) {
            let (mut by_block, mut by_chain) = (BTreeMap::new(), BTreeMap::new());
            for block in &part.blocks {
                let code = &counts.blocks[block.block];
                let instructions = block.totals(&code.decode())[Class::Instructions];
                *by_block.entry(start(code.address)).or_insert(0) += instructions;
            }
            for node in nodes {
                let function = &chains.functions[chains.nodes[node.node].function];
                *by_chain.entry(function.address).or_insert(0) += node.instructions;
            }
            by_block.retain(|_, sum| *sum > 0);
            by_chain.retain(|_, sum| *sum > 0);
            assert_eq!(by_block, by_chain, "{:?}", part.context);
        }
    }
}

fn expect(counts: &Counts, wanted: &[(&str, u64, u64)]) {
    let mut found = folded(counts);
    found.remove("[user]");
    let wanted = wanted.iter().map(|(chain, sum, calls)| ((*chain).to_owned(), (*sum, *calls)));
    assert_eq!(found, wanted.collect());
}

#[test]
fn calls_tail_calls_and_returns_make_chains() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    for _ in 0..3 {
        machine.call(DO_SYSCALL);
        machine.run(WORK, &[INC, JMP]);
        // Jumps with the stack as it was at its own start: a tail call.
        machine.ret(LEAF);
    }
    machine.ret(DO_SYSCALL + 0x10);
    machine.run(ENTRY + 0x20, &[INC]);
    let counts = machine.finish();
    expect(
        &counts,
        &[
            ("entry_SYSCALL_64", 1 + 2 + 1, 1),
            ("entry_SYSCALL_64;do_syscall", 3 * 2 + 2, 3),
            ("entry_SYSCALL_64;do_syscall;work", 3 * 2, 3),
            ("entry_SYSCALL_64;do_syscall;leaf", 3 * 2, 3),
        ],
    );
    assert_eq!(chains(&counts).shortfall, ChainShortfall::default());
}

#[test]
fn retpolines_and_stuffed_return_stacks_call_nothing() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    // Thirty-two calls that never return, and a stack pointer that is put back.
    for _ in 0..32 {
        machine.call(DO_SYSCALL + 0x10);
    }
    *machine.stack() += 32 * 8;
    machine.run(DO_SYSCALL + 0x20, &[INC]);
    machine.call(DO_SYSCALL + 0x30);
    // The thunk calls its own middle, overwrites the return address and returns into the function.
    machine.call(THUNK);
    machine.ret(THUNK + 0x10);
    machine.run(LEAF, &[INC, INC]);
    machine.ret(LEAF + 0x10);
    machine.ret(DO_SYSCALL + 0x40);
    machine.run(ENTRY + 0x20, &[INC]);
    let counts = machine.finish();
    expect(
        &counts,
        &[
            ("entry_SYSCALL_64", 4, 1),
            ("entry_SYSCALL_64;do_syscall", 64 + 1 + 2 + 2, 0),
            ("entry_SYSCALL_64;do_syscall;thunk", 4, 1),
            ("entry_SYSCALL_64;do_syscall;leaf", 4, 1),
        ],
    );
    assert_eq!(chains(&counts).shortfall, ChainShortfall::default());
}

#[test]
fn an_interrupt_between_a_call_and_the_function_called_hides_neither() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.call(DO_SYSCALL);
    let stack = *machine.stack();
    machine.interrupt(TIMER, false, WORK);
    machine.call(TIMER + 0x10);
    let outer = *machine.stack();
    machine.run(HANDLER, &[INC, JMP]);
    // On the stack for interrupts.
    *machine.stack() = STACKS[2] - 8;
    machine.call(HANDLER + 8);
    machine.ret(LEAF);
    machine.run(HANDLER + 0x10, &[INC]);
    *machine.stack() = outer;
    machine.ret(HANDLER + 0x20);
    machine.run(TIMER + 0x20, &[INC, JMP]);
    machine.run(IRET, &[IRETQ]);
    *machine.stack() = stack;
    machine.ret(WORK);
    machine.ret(DO_SYSCALL + 0x10);
    machine.run(ENTRY + 0x20, &[INC]);
    let counts = machine.finish();
    let timer = "asm_sysvec_apic_timer_interrupt";
    expect(
        &counts,
        &[
            ("entry_SYSCALL_64", 4, 1),
            ("entry_SYSCALL_64;do_syscall", 4, 1),
            ("entry_SYSCALL_64;do_syscall;work", 2, 1),
            (timer, 1 + 2 + 2, 1),
            (&format!("{timer};handler"), 2 + 2 + 1 + 2, 1),
            (&format!("{timer};handler;leaf"), 2, 1),
            ("native_irq_return_iret", 1, 1),
        ],
    );
    assert_eq!(chains(&counts).shortfall, ChainShortfall::default());
}

#[test]
fn a_fault_takes_back_what_was_not_executed_and_a_moved_return_address_is_found() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.call(DO_SYSCALL);
    machine.run(WORK, &[INC, LOAD, INC, CALL]);
    let stack = *machine.stack();
    machine.interrupt(FAULT, true, WORK + 3);
    machine.call(FAULT + 0x10);
    // Pushes registers below its own return address, which it takes along.
    machine.run(ERROR_ENTRY, &[INC, JMP]);
    *machine.stack() -= 120;
    machine.ret(ERROR_ENTRY + 0x10);
    machine.call(FAULT + 0x20);
    machine.ret(EXC_FAULT);
    machine.run(FAULT + 0x30, &[INC, JMP]);
    machine.run(IRET, &[IRETQ]);
    *machine.stack() = stack;
    machine.run(WORK + 3, &[LOAD, INC, CALL]);
    *machine.stack() -= 8;
    machine.ret(LEAF);
    machine.ret(WORK + 0x10);
    machine.ret(DO_SYSCALL + 0x10);
    let counts = machine.finish();
    let (work, fault) = ("entry_SYSCALL_64;do_syscall;work", "asm_exc_page_fault");
    expect(
        &counts,
        &[
            ("entry_SYSCALL_64", 3, 1),
            ("entry_SYSCALL_64;do_syscall", 4, 1),
            (work, 1 + 3 + 2, 1),
            (&format!("{work};leaf"), 2, 1),
            (&format!("{work};{fault}"), 1 + 2 + 2 + 2, 1),
            (&format!("{work};{fault};error_entry"), 4, 1),
            (&format!("{work};{fault};exc_fault"), 2, 1),
            (&format!("{work};native_irq_return_iret"), 1, 1),
        ],
    );
    assert_eq!(
        chains(&counts).shortfall,
        ChainShortfall { moved_returns: 1, ..ChainShortfall::default() }
    );
}

/// Two tasks give way to each other in the middle of different chains; the second is made by the first.
#[test]
fn two_tasks_that_switch_keep_their_own_chains() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.call(DO_SYSCALL);
    machine.guest.rdi = 0x20;
    machine.ret(NEW_TASK);
    let asleep = |machine: &mut Machine, from: u64| {
        machine.call(from);
        machine.call(SCHEDULE);
        *machine.stack()
    };
    let first = asleep(&mut machine, DO_SYSCALL + 0x10);
    machine.switch(0x10, 0x20, STACKS[1] - 0x50);
    // The second one has never run: `__switch_to` returns to where every task begins.
    machine.run(FROM_FORK, &[INC]);
    machine.run(USER + 0x200, &[INC]);
    machine.syscall(STACKS[1]);
    machine.call(DO_SYSCALL);
    let second = asleep(&mut machine, WORK);
    machine.switch(0x20, 0x10, first);
    machine.ret(SCHEDULE + 0x10);
    let first = asleep(&mut machine, DO_SYSCALL + 0x20);
    machine.switch(0x10, 0x20, second);
    machine.ret(SCHEDULE + 0x10);
    machine.ret(WORK + 0x10);
    let _second = asleep(&mut machine, DO_SYSCALL + 0x10);
    machine.switch(0x20, 0x10, first);
    machine.ret(SCHEDULE + 0x10);
    machine.ret(DO_SYSCALL + 0x30);
    machine.run(ENTRY + 0x20, &[INC]);
    let counts = machine.finish();
    let call = "entry_SYSCALL_64;do_syscall";
    // The first gives way twice in `do_syscall`, the second once in `work` and once outside of it.
    expect(
        &counts,
        &[
            ("entry_SYSCALL_64", 2 * 3 + 1, 2),
            (call, 2 + 2 + 2 + 2 + 2 + 2, 2),
            (&format!("{call};wake_up_new_task"), 2, 1),
            (&format!("{call};work"), 2 + 2, 1),
            (&format!("{call};schedule"), 3 * 2 + 2 * 2, 3),
            (&format!("{call};schedule;__switch_to_asm"), 3 * 2, 3),
            (&format!("{call};schedule;__switch_to"), 2 * 2, 2),
            (&format!("{call};work;schedule"), 2 + 2, 1),
            (&format!("{call};work;schedule;__switch_to_asm"), 2, 1),
            (&format!("{call};work;schedule;__switch_to"), 2, 1),
            ("__switch_to", 2, 1),
            ("ret_from_fork", 1, 1),
        ],
    );
    assert_eq!(chains(&counts).shortfall, ChainShortfall::default());
}

#[test]
fn a_stack_from_before_the_window_is_no_unmatched_return() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.call(DO_SYSCALL);
    machine.call(SCHEDULE);
    let asleep = *machine.stack();
    machine.switch(0x10, 0x30, STACKS[1] - 0x80);
    // A task that gave way before the window.
    machine.ret(SCHEDULE + 0x10);
    machine.ret(WORK + 0x10);
    machine.call(DO_SYSCALL + 0x10);
    machine.call(SCHEDULE);
    machine.switch(0x30, 0x10, asleep);
    machine.ret(SCHEDULE + 0x10);
    // Returns to a function that nobody called.
    machine.ret(LEAF + 0x10);
    machine.ret(DO_SYSCALL + 0x20);
    let counts = machine.finish();
    let found = chains(&counts).shortfall;
    let wanted = ChainShortfall {
        returns_from_before: 3,
        unmatched_returns: 1,
        moved_returns: 1,
        unreadable: 0,
    };
    assert_eq!(found, wanted);
    assert_eq!(folded(&counts)["entry_SYSCALL_64;do_syscall;leaf"], (2, 0));
    assert_eq!(folded(&counts)["schedule"].0, 2);
}

#[test]
fn without_stack_pointer_chains_are_lost_and_functions_are_not() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.guest.stack = None;
    machine.run(DO_SYSCALL, &[INC, CALL]);
    machine.run(WORK, &[INC, RET]);
    let counts = machine.finish();
    expect(&counts, &[("entry_SYSCALL_64", 3, 1), ("do_syscall", 2, 1), ("work", 2, 1)]);
    assert_eq!(chains(&counts).shortfall.unreadable, 2);
}

#[test]
fn repeated_instructions_count_once_in_their_chain() {
    let mut machine = Machine::new();
    machine.syscall(STACKS[0]);
    machine.run(DO_SYSCALL, &[INC, REP_STOSQ]);
    for _ in 0..5 {
        machine.run(DO_SYSCALL + 3, &[REP_STOSQ]);
    }
    machine.run(DO_SYSCALL + 6, &[INC]);
    expect(&machine.finish(), &[("entry_SYSCALL_64", 3, 1), ("entry_SYSCALL_64;do_syscall", 3, 1)]);
}

#[test]
fn the_first_window_of_a_trial_is_recorded_call_by_call() {
    let mut machine = Machine::new();
    for _ in 0..2 {
        machine.syscall(STACKS[0]);
        machine.call(DO_SYSCALL);
        machine.ret(WORK);
        machine.ret(DO_SYSCALL + 0x10);
        machine.run(USER + 0x200, &[INC]);
    }
    let counts = machine.finish();
    let [trace] = &chains(&counts).traces[..] else { panic!("one window, one trace") };
    assert_eq!((trace.syscalls, trace.exceptions, trace.whole), (2, 0, true));
    let name = |function: usize| chains(&counts).functions[function].name.as_str();
    let calls: Vec<_> = trace
        .calls
        .iter()
        .map(|c| (c.parent, name(c.function), c.instructions, c.entry.is_some()))
        .collect();
    let turn = |first: usize, after: u64| {
        [
            (None, "entry_SYSCALL_64", 3, true),
            (Some(first), "do_syscall", 4, false),
            (Some(first + 1), "work", 2, false),
            (None, "[user]", after, false),
        ]
    };
    let wanted = [(None, "[user]", 0, false)].into_iter().chain(turn(1, 1)).chain(turn(5, 3));
    assert_eq!(calls, wanted.collect::<Vec<_>>());
    assert_eq!(trace.calls[1].entry, Some(RootEntry::Syscall));
}
