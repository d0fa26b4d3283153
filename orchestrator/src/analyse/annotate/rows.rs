//! Two listings side by side.

use std::collections::BTreeMap;

use super::align::align;
use super::listing::{Instruction, Listing};

/// A line of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row<'a> {
    /// Bytes that were never executed, on either side or both.
    Gap {
        /// So many on the base.
        base: Option<u64>,
        /// So many on the candidate.
        value: Option<u64>,
    },
    /// An instruction of the base only.
    Base(&'a Instruction),
    /// An instruction of the candidate only.
    Value(&'a Instruction),
    /// The same instruction, but for registers, offsets and addresses.
    Both {
        /// On the base.
        base: &'a Instruction,
        /// On the candidate.
        value: &'a Instruction,
        /// Nothing differs but where it is.
        same: bool,
    },
}

/// Aligns what the sides executed. A side that is not there has no rows.
pub fn rows<'a>(base: Option<&'a Listing>, value: Option<&'a Listing>) -> Vec<Row<'a>> {
    let code = |side: Option<&'a Listing>| side.map_or(&[][..], |listing| &listing.code[..]);
    let (first, second) = (code(base), code(value));
    let operations = |side: Option<&Listing>| side.map_or(1, |listing| listing.operations);
    let (base_ops, value_ops) = (operations(base), operations(value));
    let pairs = align(first.len(), second.len(), |i, j| {
        let as_often = u128::from(first[i].executions) * u128::from(value_ops)
            == u128::from(second[j].executions) * u128::from(base_ops);
        likeness(&first[i], &second[j], as_often)
    });
    let goes: BTreeMap<u64, u64> = pairs
        .iter()
        .filter_map(|(i, j)| Some((first[(*i)?].address, second[(*j)?].address)))
        .collect();
    let mut rows = Vec::with_capacity(pairs.len());
    for (i, j) in pairs {
        let (base, value) = (i.map(|i| &first[i]), j.map(|j| &second[j]));
        push_gap(&mut rows, base.map_or(0, |line| line.gap), value.map_or(0, |line| line.gap));
        rows.extend(match (base, value) {
            (Some(base), Some(value)) => {
                Some(Row::Both { base, value, same: is_same(base, value, &goes) })
            }
            (Some(base), None) => Some(Row::Base(base)),
            (None, Some(value)) => Some(Row::Value(value)),
            (None, None) => None,
        });
    }
    let after = |side: Option<&Listing>| side.map_or(0, |listing| listing.gap_after);
    push_gap(&mut rows, after(base), after(value));
    rows
}

fn push_gap(rows: &mut Vec<Row<'_>>, base: u64, value: u64) {
    let some = |bytes: u64| (bytes > 0).then_some(bytes);
    if base + value > 0 {
        rows.push(Row::Gap { base: some(base), value: some(value) });
    }
}

/// How much two instructions belong together. Calls of one function are what holds the two together
/// best; equal counts tell alike instructions apart.
fn likeness(base: &Instruction, value: &Instruction, as_often: bool) -> i32 {
    if base.shape != value.shape {
        return 0;
    }
    let called = match (&base.callee, &value.callee) {
        (Some(base), Some(value)) if base == value => 8,
        (Some(_), Some(_)) => 0,
        _ if base.text == value.text => 3,
        _ => 0,
    };
    2 + called + i32::from(as_often)
}

/// Whether two instructions differ in nothing but where they are: a branch must go to what belongs
/// together, as far as that was executed.
fn is_same(base: &Instruction, value: &Instruction, goes: &BTreeMap<u64, u64>) -> bool {
    let target = match (base.target, value.target) {
        (Some(base), Some(value)) => goes.get(&base).is_none_or(|goes| *goes == value),
        _ => true,
    };
    base.text == value.text && target
}
