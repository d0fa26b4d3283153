//! One operation call by call, and two of them side by side.

use kduel_counts::{CallRecord, Chains, RootEntry, TraceRecord};

use super::align::{Call, lifted, stem};
use super::chains::plain_name;
use crate::text::count;

/// A call on one side or on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    /// The function.
    pub name: String,
    /// Instructions with all that it called, base first; nothing on a side that does not make the call.
    pub instructions: [Option<u64>; 2],
    /// The call and all that it calls are the same on both sides, to the instruction.
    pub same: bool,
    /// What it calls.
    pub calls: Vec<TracedCall>,
}

/// The calls of operation `number`, counted from one, of a window with `ops` operations.
///
/// An operation is the stretch of a certain number of system calls (where it makes none: exceptions)
/// of the task that began the window, with all that other tasks of the workload do meanwhile.
///
/// # Errors
///
/// Why there is no such operation, in a sentence.
pub fn operation(
    chains: &Chains,
    trace: &TraceRecord,
    ops: u64,
    number: u64,
) -> Result<Vec<Call>, String> {
    let (kind, noun, all) = if trace.syscalls >= ops {
        (RootEntry::Syscall, "system call", trace.syscalls)
    } else {
        (RootEntry::Exception, "exception", trace.exceptions)
    };
    let ops = ops.max(1);
    let per_op = (all + ops / 2) / ops;
    if per_op == 0 || all.abs_diff(per_op * ops) > MOST_BESIDE {
        let all = count(usize::try_from(all).unwrap_or(usize::MAX), noun);
        return Err(format!(
            "its operations cannot be told apart: the task that measures made {all} in {ops} of them"
        ));
    }
    let is_entry =
        |(place, call): (usize, &CallRecord)| (call.entry == Some(kind)).then_some(place);
    let entries: Vec<usize> = trace.calls.iter().enumerate().filter_map(is_entry).collect();
    let place = |operation: u64| usize::try_from(operation * per_op).unwrap_or(usize::MAX);
    let end = if number == ops && trace.whole {
        Some(trace.calls.len())
    } else {
        entries.get(place(number)).copied()
    };
    let start = entries.get(place(number.saturating_sub(1))).copied();
    match (start, end) {
        (Some(start), Some(end)) if number > 0 => Ok(tree(chains, trace, start..end)),
        _ => {
            let last = (entries.len().saturating_sub(1) as u64 / per_op).min(ops);
            Err(format!("operations 1 to {last} were recorded, and this is {number}"))
        }
    }
}

/// Entries beside those of operations: what a window makes at its ends.
const MOST_BESIDE: u64 = 3;

/// Is part of the name of what stands for a return or an indirect call and is none of its own; its
/// instructions count as those of the caller.
const THUNK: &str = "_thunk";

fn tree(chains: &Chains, trace: &TraceRecord, range: std::ops::Range<usize>) -> Vec<Call> {
    let first = range.start;
    let mut calls: Vec<Option<Call>> = trace.calls[range.clone()]
        .iter()
        .map(|call| {
            Some(Call {
                name: plain_name(&chains.functions[call.function].name),
                instructions: call.instructions,
                calls: Vec::new(),
            })
        })
        .collect();
    let mut roots = Vec::new();
    // Callers come before what they call: from the last on, every call is whole when it is moved.
    for place in range.rev() {
        let Some(mut call) = calls[place - first].take() else { continue };
        call.calls.reverse();
        let is_thunk = call.name.contains(THUNK) && call.calls.is_empty();
        let parent = trace.calls[place].parent.and_then(|parent| parent.checked_sub(first));
        match parent.and_then(|parent| calls[parent].as_mut()) {
            Some(parent) => {
                parent.instructions += call.instructions;
                if !is_thunk {
                    parent.calls.push(call);
                }
            }
            None => roots.push(call),
        }
    }
    roots.reverse();
    roots
}

/// The calls of both sides as one sequence: those of one name and one order on both are one. What
/// one side calls a level deeper stands beside its caller, as on the other.
pub fn side_by_side(base: &[Call], other: &[Call]) -> Vec<TracedCall> {
    let base = &lifted(base, other);
    let other = &lifted(other, base);
    let mut merged = Vec::new();
    let (mut a, mut b) = (0, 0);
    for (x, y) in common(base, other) {
        merged.extend(base[a..x].iter().map(|call| alone(call, 0)));
        merged.extend(other[b..y].iter().map(|call| alone(call, 1)));
        let (call, its) = (&base[x], &other[y]);
        let renamed = call.name != its.name;
        merged.push(TracedCall {
            name: if renamed {
                format!("{} -> {}", call.name, its.name)
            } else {
                call.name.clone()
            },
            instructions: [Some(call.instructions), Some(its.instructions)],
            same: call == its,
            calls: side_by_side(&call.calls, &its.calls),
        });
        (a, b) = (x + 1, y + 1);
    }
    merged.extend(base[a..].iter().map(|call| alone(call, 0)));
    merged.extend(other[b..].iter().map(|call| alone(call, 1)));
    merged
}

fn alone(call: &Call, side: usize) -> TracedCall {
    let mut instructions = [None; 2];
    instructions[side] = Some(call.instructions);
    let calls = call.calls.iter().map(|call| alone(call, side)).collect();
    TracedCall { name: call.name.clone(), instructions, same: false, calls }
}

/// Lists longer than this in product are compared at their ends only.
const MOST_COMPARED: usize = 4_000_000;

/// Pairs of places with calls of one name, in one order on both sides: those with most instructions.
fn common(a: &[Call], b: &[Call]) -> Vec<(usize, usize)> {
    let alike = |(x, y): &(&Call, &Call)| stem(&x.name) == stem(&y.name);
    let front = a.iter().zip(b).take_while(alike).count();
    let (a_rest, b_rest) = (&a[front..], &b[front..]);
    let back = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(alike).count();
    let (inner_a, inner_b) = (&a_rest[..a_rest.len() - back], &b_rest[..b_rest.len() - back]);
    let mut pairs: Vec<(usize, usize)> = (0..front).map(|place| (place, place)).collect();
    pairs.extend(between(inner_a, inner_b).iter().map(|(x, y)| (x + front, y + front)));
    pairs.extend((0..back).map(|place| (a.len() - back + place, b.len() - back + place)));
    pairs
}

/// A common subsequence of the largest weight.
fn between(a: &[Call], b: &[Call]) -> Vec<(usize, usize)> {
    if a.len() * b.len() > MOST_COMPARED {
        return Vec::new();
    }
    let weight = |x: usize, y: usize| {
        let alike = stem(&a[x].name) == stem(&b[y].name);
        alike.then(|| 1 + a[x].instructions.min(b[y].instructions))
    };
    let width = b.len() + 1;
    let mut best = vec![0u64; (a.len() + 1) * width];
    for x in (0..a.len()).rev() {
        for y in (0..b.len()).rev() {
            let paired = weight(x, y).map_or(0, |weight| weight + best[(x + 1) * width + y + 1]);
            let apart = best[(x + 1) * width + y].max(best[x * width + y + 1]);
            best[x * width + y] = paired.max(apart);
        }
    }
    let (mut x, mut y, mut pairs) = (0, 0, Vec::new());
    while x < a.len() && y < b.len() {
        let here = best[x * width + y];
        if weight(x, y).is_some_and(|weight| here == weight + best[(x + 1) * width + y + 1]) {
            pairs.push((x, y));
            (x, y) = (x + 1, y + 1);
        } else if here == best[(x + 1) * width + y] {
            x += 1;
        } else {
            y += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use kduel_counts::FunctionRecord;

    use super::*;

    fn call(name: &str, own: u64, calls: Vec<Call>) -> Call {
        let inner: u64 = calls.iter().map(|call| call.instructions).sum();
        Call { name: name.to_owned(), instructions: own + inner, calls }
    }

    /// Two operations of two system calls each; what the first call of the second makes is deeper.
    fn recorded() -> (Chains, TraceRecord) {
        let function = |name: &str| FunctionRecord { name: name.to_owned(), address: 0 };
        let chains = Chains {
            functions: ["[user]", "entry", "work"].map(function).to_vec(),
            ..Chains::default()
        };
        let record = |parent, function, instructions, entry| CallRecord {
            parent,
            function,
            instructions,
            entry,
        };
        let entry = Some(RootEntry::Syscall);
        let calls = vec![
            record(None, 0, 5, None),
            record(None, 1, 10, entry),
            record(Some(1), 2, 100, None),
            record(None, 1, 20, entry),
            record(None, 0, 7, None),
            record(None, 1, 10, entry),
            record(Some(5), 2, 100, None),
            record(Some(6), 2, 1, None),
            record(None, 1, 20, entry),
        ];
        (chains, TraceRecord { window: 0, whole: true, syscalls: 4, exceptions: 0, calls })
    }

    #[test]
    fn an_operation_is_as_many_entries_as_each_makes() {
        let (chains, trace) = recorded();
        let first = operation(&chains, &trace, 2, 1).unwrap();
        let wanted = [
            call("entry", 10, vec![call("work", 100, vec![])]),
            call("entry", 20, vec![]),
            call("[user]", 7, vec![]),
        ];
        assert_eq!(first, wanted);
        let second = operation(&chains, &trace, 2, 2).unwrap();
        assert_eq!(second[0].instructions, 111);
        assert!(operation(&chains, &trace, 2, 3).unwrap_err().contains("1 to"));
        assert!(operation(&chains, &trace, 2, 0).is_err());
        assert!(operation(&chains, &trace, 13, 1).unwrap_err().contains("told apart"));
    }

    #[test]
    fn calls_of_one_name_and_order_stand_side_by_side() {
        let (chains, trace) = recorded();
        let of = |number| operation(&chains, &trace, 2, number).unwrap();
        let rows = side_by_side(&of(1), &of(2));
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0].instructions, [Some(110), Some(111)]);
        assert!(!rows[0].same && rows[1].same);
        let inner = &rows[0].calls[0].calls;
        assert_eq!(inner[0].instructions, [None, Some(1)], "a call that only the second makes");
        assert_eq!(rows[2].instructions, [Some(7), None]);
        let moved = side_by_side(
            &[call("a", 1, vec![]), call("b", 1, vec![]), call("c", 1, vec![])],
            &[call("b", 1, vec![]), call("x", 1, vec![]), call("c", 2, vec![])],
        );
        let names: Vec<&str> = moved.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "x", "c"]);
        let heavy = || call("heavy", 100, vec![]);
        let light = || [call("lock", 1, vec![]), call("unlock", 1, vec![])];
        let [lock, unlock] = light();
        let [its_lock, its_unlock] = light();
        let moved = side_by_side(&[lock, unlock, heavy()], &[heavy(), its_lock, its_unlock]);
        let both = moved.iter().filter(|row| row.instructions.iter().all(Option::is_some));
        assert_eq!(both.map(|row| row.name.as_str()).collect::<Vec<_>>(), ["heavy"]);
    }

    #[test]
    fn a_suffix_makes_no_other_function_and_a_thunk_is_none() {
        let renamed =
            side_by_side(&[call("get.part.0", 1, vec![])], &[call("get_noprof", 1, vec![])]);
        assert_eq!(renamed[0].name, "get.part.0 -> get_noprof");
        assert!(!renamed[0].same);
        let (mut chains, trace) = recorded();
        chains.functions[2].name = "its_return_thunk".to_owned();
        let first = operation(&chains, &trace, 2, 1).unwrap();
        assert_eq!(first[0], call("entry", 110, vec![]));
    }
}
