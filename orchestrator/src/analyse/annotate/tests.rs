//! Listings of real counts against what the blocks themselves say, and of made-up ones.

use std::collections::BTreeSet;
use std::rc::Rc;

use kduel_counts::{
    BlockCount, BlockRecord, Class, Context, ContextRecord, Counts, Kind, Symbols, Totals,
    WindowRecord,
};

use super::testing::{boot, counts, fixture, symbols};
use super::*;

fn listing(side: &str, function: &str, scope: Scope) -> Listing {
    let counts = counts(side);
    let names = Rc::new(symbols(side));
    let functions = names.find(&Wanted::parse(function));
    Listing::of(&names, &functions[0], &[boot(&counts, side)], scope)
}

const FUNCTIONS: [&str; 3] = ["pgd_alloc", "kmem_cache_free", "__put_user_4"];

#[test]
fn instructions_times_executions_are_the_total_of_the_function() {
    for (side, function) in ["a", "b"].into_iter().flat_map(|s| FUNCTIONS.map(|f| (s, f))) {
        let counts = counts(side);
        let listing = listing(side, function, Scope::Own);
        let mut total = 0;
        for part in counts.windows.iter().flat_map(|w| &w.contexts) {
            for count in part.blocks.iter().filter(|_| part.context.is_own_work()) {
                let block = &counts.blocks[count.block];
                if listing.function.range.contains(&block.address) {
                    total += count.totals(&block.decode())[Class::Instructions];
                }
            }
        }
        assert!(total > 0);
        assert_eq!(listing.instructions, total, "{function} on {side}");
    }
}

/// Straight code is executed as often as what is above it, unless something jumps there.
#[test]
fn counts_follow_the_control_flow() {
    for (side, function) in [("a", "pgd_alloc"), ("a", "kmem_cache_free"), ("b", "pgd_alloc")] {
        let listing = listing(side, function, Scope::Own);
        let targets: BTreeSet<u64> = listing.code.iter().filter_map(|line| line.target).collect();
        let mut compared = 0;
        for pair in listing.code.windows(2) {
            let [above, line] = pair else { continue };
            let branches = above.target.is_some() || above.shape.ends_with(" away");
            if line.gap == 0 && !branches && !targets.contains(&line.address) {
                assert_eq!(above.executions, line.executions, "{} in {function}", line.text);
                compared += 1;
            }
        }
        assert!(compared > 50, "{compared} in {function} on {side}");
    }
}

#[test]
fn executions_of_the_entry_are_the_calls() {
    let calls = |side, function| listing(side, function, Scope::Own).calls;
    assert_eq!((calls("a", "pgd_alloc"), calls("b", "pgd_alloc")), (2 * 349, 2 * 308));
    // Every fork clears a word of the child's memory, which faults: it is executed once more.
    let put = listing("b", "__put_user_4", Scope::Own);
    let store = put.code.iter().find(|line| line.text.starts_with("mov %eax")).unwrap();
    assert_eq!(store.executions, put.calls);
    let before = put.code.iter().take_while(|line| line.address < store.address).last().unwrap();
    assert_eq!(before.executions - put.calls, 0);
}

#[test]
fn others_than_own_tasks_count_only_if_asked_for() {
    let (own, all) =
        (listing("a", "kmem_cache_free", Scope::Own), listing("a", "kmem_cache_free", Scope::All));
    assert!(own.calls < all.calls && own.instructions < all.instructions);
}

#[test]
fn rows_have_every_instruction_of_both_sides_once() {
    let (a, b) = (listing("a", "pgd_alloc", Scope::Own), listing("b", "pgd_alloc", Scope::Own));
    let rows = rows(Some(&a), Some(&b));
    let of = |side: usize| -> Vec<u64> {
        let line = |row: &Row<'_>| match (*row, side) {
            (Row::Base(line), 0) | (Row::Value(line), 1) => Some(line.address),
            (Row::Both { base, .. }, 0) => Some(base.address),
            (Row::Both { value, .. }, 1) => Some(value.address),
            _ => None,
        };
        rows.iter().filter_map(line).collect()
    };
    let addresses = |listing: &Listing| listing.code.iter().map(|l| l.address).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (addresses(&a), addresses(&b)));
    let locks = rows.iter().filter(|row| {
        matches!(row, Row::Both { base, .. } if base.callee.as_deref() == Some("_raw_spin_lock"))
    });
    assert_eq!(locks.count(), 1, "calls of the same function belong together");
    let alone = Listing::of(&Rc::default(), &a.function, &[], Scope::Own);
    assert!(matches!(
        super::rows(Some(&alone), None)[..],
        [Row::Gap { base: Some(_), value: None }]
    ));
}

/// Two windows of two operations; a block of two bytes at 0x100, once with one and once with the other
/// code.
fn rewritten() -> Counts {
    let block = |bytes: &[u8], lengths: &[u8]| BlockRecord {
        address: 0xffff_ffff_8100_0000,
        bytes: bytes.to_vec(),
        lengths: lengths.to_vec(),
    };
    let blocks = vec![block(&[0x66, 0x90, 0xc3], &[2, 1]), block(&[0xeb, 0x02], &[2])];
    let window = |number, place: usize, executions| {
        let blocks = vec![BlockCount {
            block: place,
            executions,
            unfinished: 0,
            empty: 0,
            corrections: vec![],
        }];
        let context = Context { own: true, kind: Kind::Syscall(None) };
        let parts =
            ContextRecord { context, name: String::new(), totals: Totals::default(), blocks };
        WindowRecord { number, contexts: vec![parts] }
    };
    Counts {
        vcpus: 1,
        blocks,
        windows: vec![window(0, 0, 6), window(1, 1, 4)],
        ..Counts::default()
    }
}

#[test]
fn code_that_the_kernel_rewrote_is_shown_in_both_forms() {
    let counts = rewritten();
    let symbols = "ffffffff81000000 T fork\nffffffff81000010 T next\n";
    let names = Rc::new(Names::new(&Symbols::parse(symbols).unwrap()));
    let function = names.find(&Wanted::parse("fork")).remove(0);
    let boot = Boot { counts: &counts, windows: vec![(0, 2), (1, 2)] };
    let listing = Listing::of(&names, &function, &[boot], Scope::Own);
    let shown: Vec<_> =
        listing.code.iter().map(|l| (l.text.as_str(), l.executions, l.rewritten)).collect();
    assert_eq!(shown, [("xchg %ax,%ax", 6, true), ("jmp", 4, true), ("ret", 6, false)]);
    assert_eq!((listing.calls, listing.instructions, listing.gap_after), (10, 16, 13));
}

#[test]
fn what_cannot_be_answered_says_why() {
    let fixture = fixture();
    let ask = |name: &str| {
        let wanted = Wanted::parse(name);
        fixture.annotate(&wanted, Scope::Own).err()
    };
    assert_eq!(ask("pgd_aloc"), Some(Unanswered::Unknown(vec!["pgd_alloc".to_owned()])));
    assert_eq!(ask("_raw_spin_lock"), Some(Unanswered::NeverExecuted(false)));
    assert_eq!(ask("pgd_alloc"), None);
}

#[test]
fn of_several_functions_the_one_that_was_executed_is_shown() {
    let mut fixture = fixture();
    let twice = |names: &Rc<Names>, more: &str| {
        let lines: Vec<String> =
            names.iter().map(|s| format!("{:x} {} {}\n", s.address, s.letter, s.name)).collect();
        Rc::new(Names::new(&Symbols::parse(&(lines.concat() + more)).unwrap()))
    };
    let wanted = Wanted::parse("pgd_alloc");
    let names = twice(&fixture.names[0], "ffffffff90000000 t pgd_alloc\n");
    fixture.names[0] = names;
    let annotation = fixture.annotate(&wanted, Scope::Own).unwrap();
    assert!(
        annotation.notes[0].contains("only ffffffff8107d9f0 was executed"),
        "{:?}",
        annotation.notes
    );
    // A second name of what another function's code is: both were executed.
    let free = fixture.names[0].find(&Wanted::parse("kmem_cache_free"))[0].range.start;
    fixture.names[0] = twice(&fixture.names[0], &format!("{free:x} t pgd_alloc\n"));
    let Err(Unanswered::Several(places)) = fixture.annotate(&wanted, Scope::Own) else {
        panic!("one")
    };
    assert_eq!(places.iter().filter(|(side, ..)| side == "a").count(), 3);
    let chosen = Wanted::parse(&format!("pgd_alloc@{free:x}"));
    assert!(fixture.annotate(&chosen, Scope::Own).is_ok());
}
