//! Work that moved from one function to others: the differences of related functions that cancel.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Code;
use super::difference::{Operations, Row};
use super::names::{likeness, telling_words, words};

/// What remains of work that a caller took over from a callee, or left to it, may be so much of it: the
/// compiler makes it cheaper, calls and returns fall away.
const INLINED_REST: f64 = 0.25;

/// What remains where functions are related by less than a call, if there is one way to choose them;
/// with more ways chance finds sums that cancel, so it must be less.
const MOVED_REST: f64 = 0.02;

/// Less than so much of the total is not looked at …
const SMALLEST: f64 = 0.001;

/// … nor less than so many instructions per operation.
const SMALLEST_INSTRUCTIONS: f64 = 2.0;

/// Rows that are looked at, the largest differences first.
const LOOKED_AT: usize = 200;

/// A function with more callers is everybody's: a call of it relates nobody to it.
const HUB: usize = 12;

/// A word that more functions have in their names does not relate them.
const RARE: usize = 8;

/// So much of two names is the same.
const HALF: f64 = 0.5;

/// Work that went elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub struct Moved {
    /// The function that lost or gained, with its difference per operation.
    pub from: (String, f64),
    /// Those that gained or lost instead.
    pub to: Vec<(String, f64)>,
    /// How they are related.
    pub route: Route,
}

/// How functions that share work are related.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// One calls the other: it was inlined, or is no more.
    Call,
    /// One is gone and the other new, called as often, with half of the name's words.
    Replaced,
    /// By a call or a word of the name, and the sum is as good as nothing.
    Related,
}

impl Moved {
    /// What the differences add up to.
    pub fn rest(&self) -> f64 {
        self.from.1 + self.to.iter().map(|(_, difference)| difference).sum::<f64>()
    }
}

/// Finds them among the rows of one scope. `edges` are calls seen on either side.
pub(super) fn moved(rows: &[Row], edges: &[(&Code, &Code)], operations: Operations) -> Vec<Moved> {
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
    let relations = Relations::new(rows, edges);
    let mut used = BTreeSet::new();
    let mut found = Vec::new();
    // What is on one side only is the plainer begin of a search.
    let (lonely, both): (Vec<_>, Vec<_>) =
        changes.iter().copied().partition(|change| change.is_lonely());
    for change in lonely.iter().chain(&both) {
        if used.contains(&change.row.code) {
            continue;
        }
        let free = |other: &&Change<'_>| {
            !used.contains(&other.row.code) && other.by.signum() != change.by.signum()
        };
        let others: Vec<Change<'_>> = changes.iter().filter(free).copied().collect();
        let chosen = relations
            .inlined(*change, &others)
            .map(|to| (to, Route::Call))
            .or_else(|| Some((replaced(*change, &others, operations)?, Route::Replaced)))
            .or_else(|| Some((relations.went(*change, &others)?, Route::Related)));
        if let Some((to, route)) = chosen {
            used.insert(&change.row.code);
            used.extend(to.iter().map(|other| &other.row.code));
            let name = |change: &Change<'_>| (change.row.code.to_string(), change.by);
            found.push(Moved { from: name(change), to: to.iter().map(name).collect(), route });
        }
    }
    found
}

#[derive(Debug, Clone, Copy)]
struct Change<'a> {
    row: &'a Row,
    by: f64,
}

impl Change<'_> {
    fn is_lonely(&self) -> bool {
        self.row.one_sided().is_some()
    }
}

/// What remains of a change beside others, relative to the change.
fn rest(change: Change<'_>, others: &[Change<'_>]) -> f64 {
    (change.by + others.iter().map(|other| other.by).sum::<f64>()).abs() / change.by.abs()
}

/// The new function that is called instead of one that is gone, or the other way round.
fn replaced<'a>(
    change: Change<'a>,
    others: &[Change<'a>],
    operations: Operations,
) -> Option<Vec<Change<'a>>> {
    let own = words(change.row.code.name()?);
    let calls = |row: &Row| operations.exact(row.base.calls, row.value.calls);
    let fits = |other: &&Change<'a>| {
        let name = other.row.code.name().unwrap_or_default();
        other.is_lonely()
            && calls(change.row) != 0
            && calls(change.row) + calls(other.row) == 0
            && likeness(&own, &words(name)) >= HALF
    };
    let choices = others.iter().filter(|_| change.is_lonely()).filter(fits);
    best(change, choices.map(|other| vec![*other]).collect(), INLINED_REST)
}

/// Which functions have to do with each other.
struct Relations<'a> {
    callers: BTreeMap<&'a Code, BTreeSet<&'a Code>>,
    /// By word, in how many names it is.
    words: BTreeMap<&'a str, usize>,
}

impl<'a> Relations<'a> {
    fn new(rows: &'a [Row], edges: &[(&'a Code, &'a Code)]) -> Self {
        let mut callers = BTreeMap::<&Code, BTreeSet<&Code>>::new();
        for (from, to) in edges {
            callers.entry(to).or_default().insert(from);
        }
        let mut words = BTreeMap::new();
        for name in rows.iter().filter_map(|row| row.code.name()) {
            for word in telling_words(name) {
                *words.entry(word).or_default() += 1;
            }
        }
        Self { callers, words }
    }

    fn by_call(&self, one: &Code, other: &Code) -> bool {
        let calls = |from: &Code, to: &Code| {
            let callers = self.callers.get(to).filter(|callers| callers.len() <= HUB);
            callers.is_some_and(|callers| callers.contains(from))
        };
        calls(one, other) || calls(other, one)
    }

    fn by_word(&self, one: &Code, other: &Code) -> bool {
        let (Some(one), Some(other)) = (one.name(), other.name()) else { return false };
        let rare = |word: &&str| self.words.get(word).is_some_and(|names| *names <= RARE);
        let other: BTreeSet<&str> = telling_words(other).filter(rare).collect();
        telling_words(one).any(|word| other.contains(word))
    }

    /// The callers or callees that took over the work of a function that one side does not have: one of
    /// them, or all.
    fn inlined(&self, change: Change<'a>, others: &[Change<'a>]) -> Option<Vec<Change<'a>>> {
        if !change.is_lonely() {
            return None;
        }
        let near = others.iter().filter(|other| self.by_call(&change.row.code, &other.row.code));
        let near: Vec<Change<'a>> = near.copied().collect();
        let mut choices: Vec<Vec<Change<'a>>> = near.iter().map(|other| vec![*other]).collect();
        choices.push(near);
        best(change, choices, INLINED_REST)
    }

    /// One or two related functions that gained what this one lost, or lost what it gained. One of all
    /// must be on one side only: else equal sums are chance.
    fn went(&self, change: Change<'a>, others: &[Change<'a>]) -> Option<Vec<Change<'a>>> {
        let related = |other: &&Change<'a>| {
            let (own, other) = (&change.row.code, &other.row.code);
            self.by_call(own, other) || self.by_word(own, other)
        };
        let related: Vec<Change<'a>> = others.iter().filter(related).copied().collect();
        let mut choices = Vec::new();
        for (place, one) in related.iter().enumerate() {
            choices.push(vec![*one]);
            choices.extend(related[place + 1..].iter().map(|second| vec![*one, *second]));
        }
        choices.retain(|chosen| change.is_lonely() || chosen.iter().any(Change::is_lonely));
        let limit = MOVED_REST / choices.len().max(1) as f64;
        best(change, choices, limit)
    }
}

/// The choice that leaves the least, if that is no more than `limit`.
fn best<'a>(
    change: Change<'_>,
    choices: Vec<Vec<Change<'a>>>,
    limit: f64,
) -> Option<Vec<Change<'a>>> {
    let fit = choices.into_iter().map(|chosen| (rest(change, &chosen), chosen));
    let fit = fit.filter(|(rest, chosen)| !chosen.is_empty() && *rest <= limit + 1e-9);
    fit.min_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, chosen)| chosen)
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::super::{Code, Groups, Moved, compare_profiles};
    use super::Route;

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
        assert_eq!(moved.route, Route::Call);
    }

    #[test]
    fn a_new_function_called_instead_of_an_old_one_took_over_its_work() {
        let found = found(
            &[("mas_next_entry", 5840, 58), ("rest", 100_000, 10)],
            &[("mas_next_slot", 4812, 58), ("rest", 100_000, 10)],
            ["x", "y"],
        );
        let [moved] = &found[..] else { panic!("{found:?}") };
        assert_eq!(moved.route, Route::Replaced);
        assert!((moved.rest() + 102.8).abs() < 1e-9);
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
