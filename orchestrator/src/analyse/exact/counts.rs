use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::collect::WindowCounts;

/// Classes by which work with fewer instructions can be dearer: what drains the pipeline, the caches
/// or the TLB, or leaves the processor.
const COSTLY: &[&str] = &[
    "locked",
    "xchg-memory",
    "cr3-writes",
    "tlb-entry-flushes",
    "msr-reads",
    "msr-writes",
    "cpuid",
    "port-io",
    "mmio",
    "iret",
    "hlt",
    "divisions",
];

/// A costly class has risen if it rose by so much, relative and per operation.
const ROSE: f64 = 0.005;
const ROSE_BY: f64 = 0.1;

/// Something counted on either side, per operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CountPair {
    /// What.
    pub name: String,
    /// On the base.
    pub base: f64,
    /// On the candidate.
    pub value: f64,
}

/// What is taken from a window.
pub(super) type Part = fn(&WindowCounts) -> &BTreeMap<String, u64>;

/// Sums over windows, per operation, by name; what neither side has is left out.
pub(super) fn per_operation(
    base: &[&WindowCounts],
    value: &[&WindowCounts],
    part: Part,
) -> Vec<CountPair> {
    let (base, value) = (sums(base, part), sums(value, part));
    let mut names: Vec<&String> = base.keys().chain(value.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |sums: &BTreeMap<String, f64>, name: &String| sums.get(name).copied().unwrap_or(0.0);
    names
        .into_iter()
        .map(|name| CountPair {
            name: name.clone(),
            base: of(&base, name),
            value: of(&value, name),
        })
        .collect()
}

/// All that was executed, per operation.
pub(super) fn total(base: &[&WindowCounts], value: &[&WindowCounts]) -> CountPair {
    let total = |windows: &[&WindowCounts]| {
        per(windows.iter().map(|window| window.total).sum(), operations(windows))
    };
    CountPair { name: "total".to_owned(), base: total(base), value: total(value) }
}

/// Costly classes that rose from base to candidate.
pub(super) fn risen(classes: &[CountPair]) -> Vec<String> {
    let rose = |pair: &&CountPair| {
        COSTLY.contains(&pair.name.as_str())
            && pair.value - pair.base >= ROSE_BY
            && pair.value > pair.base * (1.0 + ROSE)
    };
    classes.iter().filter(rose).map(|pair| pair.name.clone()).collect()
}

fn sums(windows: &[&WindowCounts], part: Part) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::<String, u64>::new();
    for (name, number) in windows.iter().flat_map(|window| part(window)) {
        *sums.entry(name.clone()).or_default() += number;
    }
    let operations = operations(windows);
    sums.into_iter().map(|(name, sum)| (name, per(sum, operations))).collect()
}

fn operations(windows: &[&WindowCounts]) -> u64 {
    windows.iter().map(|window| window.ops).sum()
}

fn per(sum: u64, operations: u64) -> f64 {
    sum as f64 / operations.max(1) as f64
}
