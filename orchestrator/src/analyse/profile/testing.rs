//! Made-up profiles.

use std::collections::BTreeMap;

use super::{Code, Profile, Scope, Sums};

/// Own work: name, instructions, calls.
pub(super) fn profile(operations: u64, rows: &[(&str, u64, u64)]) -> Profile {
    let row = |(name, instructions, calls): &(&str, u64, u64)| {
        let sums = Sums { instructions: *instructions, calls: *calls };
        ((Scope::Own, Code::function(name)), sums)
    };
    let rows: BTreeMap<_, _> = rows.iter().map(row).collect();
    Profile { operations, rows, ..Profile::default() }
}
