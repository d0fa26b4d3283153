//! Work that moved from one function to others: the differences of related functions that cancel.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Code;
use super::difference::{Operations, Row};
use super::names::share_rare_word;

/// What remains of work that was inlined may be so much of it: the compiler makes it cheaper, calls
/// and returns fall away.
const INLINED_REST: f64 = 0.25;

/// What remains where functions are related by less than a call.
const MOVED_REST: f64 = 0.02;

/// Less than so much of the total is not looked at …
const SMALLEST: f64 = 0.0002;

/// … nor less than so many instructions per operation.
const SMALLEST_INSTRUCTIONS: f64 = 2.0;

/// Rows that are looked at, the largest differences first.
const LOOKED_AT: usize = 200;

/// Work that went elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The function that lost or gained, with its difference per operation.
    pub from: (String, f64),
    /// Those that gained or lost instead.
    pub to: Vec<(String, f64)>,
    /// Whether one calls the other: then it was inlined, or is no more.
    pub calls: bool,
}

impl Moved {
    /// What the differences add up to.
    pub fn rest(&self) -> f64 {
        self.from.1 + self.to.iter().map(|(_, difference)| difference).sum::<f64>()
    }
}

/// Finds them among the rows of one scope. `edges` are calls seen on either side.
pub(super) fn moved(
    rows: &[Row],
    edges: &[(&Code, &Code)],
    operations: Operations,
) -> Vec<Moved> {
    let total: u64 = rows.iter().map(|row| row.base.instructions).sum();
    let smallest = SMALLEST_INSTRUCTIONS.max(SMALLEST * operations.base(total));
    let mut changes: Vec<Change<'_>> = rows
        .iter()
        .filter(|row| row.code.name().is_some())
        .map(|row| Change { row, by: row.difference(operations) })
        .filter(|change| change.by.abs() >= smallest)
        .collect();
    changes.sort_by(|a, b| b.by.abs().total_cmp(&a.by.abs()));
    changes.truncate(LOOKED_AT);
    let neighbours = neighbours(edges);
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    // What is on one side only is the plainer begin of a search.
    let (lonely, both): (Vec<_>, Vec<_>) =
        changes.iter().copied().partition(|change| change.row.one_sided().is_some());
    for change in lonely.iter().chain(&both) {
        if used.contains(&change.row.code) {
            continue;
        }
        let search = Search { change: *change, changes: &changes, neighbours: &neighbours };
        if let Some((moved, codes)) = search.best(&used, operations) {
            used.extend(codes);
            found.push(moved);
        }
    }
    found
}

#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    row: &'a Row,
    by: f64,
}

type Neighbours<'a> = BTreeMap<&'a Code, BTreeSet<&'a Code>>;

fn neighbours<'a>(edges: &[(&'a Code, &'a Code)]) -> Neighbours<'a> {
    let mut neighbours = Neighbours::new();
    for (from, to) in edges {
        neighbours.entry(from).or_default().insert(to);
        neighbours.entry(to).or_default().insert(from);
    }
    neighbours
}

struct Search<'a> {
    change: Change<'a>,
    changes: &'a [Change<'a>],
    neighbours: &'a Neighbours<'a>,
}

impl<'a> Search<'a> {
    /// The partner, or the two, that leave the least.
    fn best(
        &self,
        used: &BTreeSet<&Code>,
        operations: Operations,
    ) -> Option<(Moved, Vec<&'a Code>)> {
        let own = &self.change;
        let mut partners: Vec<(Change<'a>, bool)> = self
            .changes
            .iter()
            .filter(|other| other.by.signum() != own.by.signum())
            .filter(|other| !used.contains(&other.row.code))
            .filter_map(|other| Some((*other, self.relation(other, operations)?)))
            .collect();
        partners.sort_by(|a, b| a.0.row.code.cmp(&b.0.row.code));
        let mut best: Option<(f64, Vec<(Change<'a>, bool)>)> = None;
        let mut offer = |chosen: Vec<(Change<'a>, bool)>| {
            let rest = (own.by + chosen.iter().map(|(c, _)| c.by).sum::<f64>()).abs();
            let largest = chosen.iter().map(|(c, _)| c.by.abs()).fold(own.by.abs(), f64::max);
            let limit = if chosen.iter().all(|(_, calls)| *calls) && own.row.one_sided().is_some() {
                INLINED_REST
            } else {
                MOVED_REST
            };
            // A new or lost function among them, else equal sums are chance.
            let plain = own.row.one_sided().is_some()
                || chosen.iter().any(|(c, _)| c.row.one_sided().is_some());
            if plain && rest <= limit * largest && best.as_ref().is_none_or(|(b, _)| rest < *b) {
                best = Some((rest, chosen));
            }
        };
        for (place, partner) in partners.iter().enumerate() {
            offer(vec![*partner]);
            for second in &partners[place + 1..] {
                offer(vec![*partner, *second]);
            }
        }
        let (_, chosen) = best?;
        let name = |change: &Change<'_>| (change.row.code.to_string(), change.by);
        let mut codes: Vec<&Code> = chosen.iter().map(|(c, _)| &c.row.code).collect();
        codes.push(&own.row.code);
        let moved = Moved {
            from: name(own),
            to: chosen.iter().map(|(change, _)| name(change)).collect(),
            calls: chosen.iter().all(|(_, calls)| *calls),
        };
        Some((moved, codes))
    }

    /// Whether the two have to do with each other, and if so whether by a call.
    fn relation(&self, other: &Change<'_>, operations: Operations) -> Option<bool> {
        let (own, other) = (self.change.row, other.row);
        if self.neighbours.get(&own.code).is_some_and(|near| near.contains(&other.code)) {
            return Some(true);
        }
        let words = share_rare_word(own.code.name()?, other.code.name()?);
        // One gone and one come, called equally often.
        let swapped = own.one_sided().is_some()
            && other.one_sided().is_some()
            && own.base.calls + own.value.calls > 0
            && operations.exact(own.base.calls + other.base.calls, own.value.calls + other.value.calls)
                == 0;
        (words || swapped).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::super::{Code, Groups, Moved, compare_profiles};

    fn found(base: &[(&str, u64, u64)], value: &[(&str, u64, u64)], edge: [&str; 2]) -> Vec<Moved> {
        let (mut base, value) = (profile(10, base), profile(10, value));
        base.edges.push((Code::function(edge[0]), Code::function(edge[1])));
        compare_profiles(&base, &value, &Groups::default(), true).moved
    }

    #[test]
    fn work_that_went_into_new_functions_is_moved() {
        let found = found(
            &[("pgd_alloc", 5000, 10), ("rest", 100_000, 10)],
            &[
                ("pgd_alloc", 870, 10),
                ("clear_page_tables", 2320, 10),
                ("pgd_ctor", 1810, 10),
                ("rest", 100_000, 10),
            ],
            ["pgd_alloc", "clear_page_tables"],
        );
        let [moved] = &found[..] else { panic!("{found:?}") };
        let names: Vec<&str> =
            [&moved.from].into_iter().chain(&moved.to).map(|(name, _)| name.as_str()).collect();
        assert!(
            ["pgd_alloc", "pgd_ctor", "clear_page_tables"].iter().all(|name| names.contains(name)),
            "{names:?}"
        );
        assert_eq!(moved.rest(), 0.0);
    }

    #[test]
    fn a_function_that_is_inlined_into_its_caller_is_moved() {
        let found = found(
            &[("caller", 1000, 10), ("callee", 800, 40), ("other", 9000, 10)],
            &[("caller", 1650, 10), ("other", 9000, 10)],
            ["caller", "callee"],
        );
        let [moved] = &found[..] else { panic!("{found:?}") };
        assert_eq!(moved.from, ("callee".to_owned(), -80.0));
        assert_eq!(moved.to, [("caller".to_owned(), 65.0)]);
        assert!(moved.calls);
    }

    #[test]
    fn equal_sums_of_strangers_are_chance() {
        let found = found(
            &[("alpha", 1000, 10), ("beta", 800, 20)],
            &[("alpha", 900, 10), ("beta", 900, 20)],
            ["x", "y"],
        );
        assert_eq!(found, []);
    }
}
