//! Which calls of two kernels are the same although a name or a level between them is not.

use std::collections::{BTreeMap, BTreeSet};

/// A call and what it called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub name: String,
    /// Instructions of it and all that it called.
    pub instructions: u64,
    /// What it called, in order.
    pub calls: Vec<Call>,
}

/// A chain of calls with what each side executed in its last function itself, base first.
pub type SharedChain = (Vec<String>, [u64; 2]);

/// A function's name without what compilers and allocation profiling append: `foo.isra.0` and
/// `foo_noprof` are `foo`.
pub fn stem(name: &str) -> &str {
    let name = name.find('.').filter(|dot| *dot > 0).map_or(name, |dot| &name[..dot]);
    name.strip_suffix("_noprof").unwrap_or(name)
}

/// `calls` with what the other side calls directly beside, not within, what calls it here, where
/// that makes up most of the caller. So a dispatcher that jumps on one side and calls on the other makes no
/// difference, nor does a level that only one side has.
pub fn lifted(calls: &[Call], other: &[Call]) -> Vec<Call> {
    let stems = |calls: &[Call]| -> BTreeSet<String> {
        calls.iter().map(|call| stem(&call.name).to_owned()).collect()
    };
    let (ours, theirs) = (stems(calls), stems(other));
    let within = |name: &str, inner: &str| {
        let of_name = other.iter().filter(|call| stem(&call.name) == name);
        of_name.flat_map(|call| &call.calls).any(|call| stem(&call.name) == inner)
    };
    let mut lifted = Vec::with_capacity(calls.len());
    for call in calls {
        let is_beside = |inner: &Call| {
            let name = stem(&inner.name);
            theirs.contains(name) && !ours.contains(name) && !within(stem(&call.name), name)
        };
        let (beside, inner): (Vec<Call>, Vec<Call>) =
            call.calls.iter().cloned().partition(is_beside);
        let most: u64 = beside.iter().map(|call| call.instructions).sum();
        if most.saturating_mul(2) < call.instructions {
            lifted.push(call.clone());
            continue;
        }
        let instructions = call.instructions.saturating_sub(most);
        lifted.push(Call { name: call.name.clone(), instructions, calls: inner });
        lifted.extend(beside);
    }
    lifted
}

/// All chains of both sides, whatever order calls were made in.
pub fn shared_chains(base: &[Call], other: &[Call]) -> Vec<SharedChain> {
    let mut chains = Vec::new();
    collect(base, other, &mut Vec::new(), &mut chains);
    chains
}

fn collect(base: &[Call], other: &[Call], above: &mut Vec<String>, chains: &mut Vec<SharedChain>) {
    let mut pairs = BTreeMap::<String, [Call; 2]>::new();
    for (side, calls) in [base, other].into_iter().enumerate() {
        for call in calls {
            let both = pairs.entry(stem(&call.name).to_owned()).or_default();
            both[side].instructions += call.instructions;
            both[side].calls.extend_from_slice(&call.calls);
        }
    }
    for (name, [a, b]) in pairs {
        above.push(name);
        let inner_a = lifted(&a.calls, &b.calls);
        let inner_b = lifted(&b.calls, &inner_a);
        let own = |call: &Call, inner: &[Call]| {
            let inner: u64 = inner.iter().map(|call| call.instructions).sum();
            call.instructions.saturating_sub(inner)
        };
        chains.push((above.clone(), [own(&a, &inner_a), own(&b, &inner_b)]));
        collect(&inner_a, &inner_b, above, chains);
        above.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, own: u64, calls: Vec<Call>) -> Call {
        let inner: u64 = calls.iter().map(|call| call.instructions).sum();
        Call { name: name.to_owned(), instructions: own + inner, calls }
    }

    #[test]
    fn what_one_side_calls_a_level_deeper_stands_beside_its_caller() {
        let exit = || call("sys_exit", 100, vec![call("lock", 9, vec![])]);
        let base = [call("do_syscall", 5, vec![exit(), call("tail", 1, vec![])])];
        let other = [call("do_syscall", 4, vec![call("dispatch", 3, vec![exit()])])];
        let wanted = [
            ("do_syscall", [5, 4]),
            ("do_syscall;dispatch", [0, 3]),
            ("do_syscall;sys_exit", [100, 100]),
            ("do_syscall;sys_exit;lock", [9, 9]),
            ("do_syscall;tail", [1, 0]),
        ];
        let found = shared_chains(&base, &other);
        let found: Vec<_> = found.iter().map(|(names, own)| (names.join(";"), *own)).collect();
        assert_eq!(found, wanted.map(|(names, own)| (names.to_owned(), own)));
        // A function that merely also calls what the other side calls directly stays.
        let mixed = [call("other_work", 1000, vec![call("lock", 9, vec![])])];
        assert_eq!(lifted(&mixed, &[call("lock", 9, vec![])]), mixed);
    }

    #[test]
    fn suffixes_make_no_other_function() {
        assert_eq!(stem("get_partial_node.part.0"), "get_partial_node");
        assert_eq!(stem("kmalloc_noprof"), "kmalloc");
        assert_eq!(stem("[user]"), "[user]");
    }
}
