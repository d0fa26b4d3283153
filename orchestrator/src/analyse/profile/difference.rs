//! What differs between the profiles of two sides, to the instruction.

use std::collections::BTreeMap;

use super::code::Code;
use super::count::{Profile, Scope, Sums};
use super::entries::{EntryRow, entry_rows};
use super::fold::{Fold, Folding};
use super::groups::{GroupRow, Groups};
use super::moved::{Moved, moved};

/// Operations in the windows of either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// Of the base.
    pub base: u64,
    /// Of the candidate.
    pub value: u64,
}

impl Operations {
    /// Per operation of the base.
    pub fn base(self, sum: u64) -> f64 {
        sum as f64 / self.base.max(1) as f64
    }

    /// Per operation of the candidate.
    pub fn value(self, sum: u64) -> f64 {
        sum as f64 / self.value.max(1) as f64
    }

    /// Candidate minus base per operation, times the operations of both: a whole number, which can be
    /// added up without loss.
    pub fn exact(self, base: u64, value: u64) -> i128 {
        i128::from(value) * i128::from(self.base) - i128::from(base) * i128::from(self.value)
    }

    /// Candidate minus base per operation.
    pub fn difference(self, base: u64, value: u64) -> f64 {
        self.per(self.exact(base, value))
    }

    /// What [`Operations::exact`] gave, per operation.
    pub fn per(self, exact: i128) -> f64 {
        exact as f64 / (i128::from(self.base.max(1)) * i128::from(self.value.max(1))) as f64
    }
}

/// Where a difference comes from; the two add up to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Calls more, at what a call costs on the base.
    pub calls: f64,
    /// Cost more of a call, times the calls of the candidate.
    pub cost: f64,
}

/// One function, or several that are plainly the same, on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub code: Code,
    /// On the base.
    pub base: Sums,
    /// On the candidate.
    pub value: Sums,
    /// At how many addresses functions of this name lie on one side, where it is more than one.
    pub places: usize,
}

impl Row {
    /// Candidate minus base, in instructions per operation.
    pub fn difference(&self, operations: Operations) -> f64 {
        operations.difference(self.base.instructions, self.value.instructions)
    }

    /// The same as a whole number: see [`Operations::exact`].
    pub fn exact(&self, operations: Operations) -> i128 {
        operations.exact(self.base.instructions, self.value.instructions)
    }

    /// Whether instructions or calls per operation differ at all.
    pub fn changed(&self, operations: Operations) -> bool {
        self.exact(operations) != 0 || operations.exact(self.base.calls, self.value.calls) != 0
    }

    /// Only on the base, with the word for it; only on the candidate; on both: nothing.
    pub fn one_sided(&self) -> Option<&'static str> {
        match (self.base.instructions, self.value.instructions) {
            (0, 1..) => Some("new"),
            (1.., 0) => Some("gone"),
            _ => None,
        }
    }

    /// Splits the difference. Nothing where a side executed code without calling it, as that of
    /// processes.
    pub fn split(&self, operations: Operations) -> Option<Split> {
        let (base, value) = (self.base, self.value);
        let known = |sums: Sums| (sums.calls > 0) == (sums.instructions > 0);
        if !known(base) || !known(value) || base.calls + value.calls == 0 {
            return None;
        }
        // What is on one side only costs the same on the other: all of it is calls.
        let priced = if base.calls > 0 { base } else { value };
        let each = priced.instructions as f64 / priced.calls as f64;
        let difference = self.difference(operations);
        if base.calls == 0 || value.calls == 0 {
            return Some(Split { calls: difference, cost: 0.0 });
        }
        let calls = operations.difference(base.calls, value.calls) * each;
        Some(Split { calls, cost: difference - calls })
    }
}

/// All rows of one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Whose work.
    pub scope: Scope,
    /// Worst first: by candidate minus base per operation, falling.
    pub rows: Vec<Row>,
    /// Of the windows: the sums over the rows are the same.
    pub base: u64,
    /// Of the windows of the candidate.
    pub value: u64,
}

impl Section {
    /// The rows that differ.
    pub fn changed(&self, operations: Operations) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.changed(operations))
    }

    /// Whether rows and their differences add up to the totals, to the instruction.
    pub fn adds_up(&self, operations: Operations) -> bool {
        let base: u64 = self.rows.iter().map(|row| row.base.instructions).sum();
        let value: u64 = self.rows.iter().map(|row| row.value.instructions).sum();
        let exact: i128 = self.rows.iter().map(|row| row.exact(operations)).sum();
        (base, value) == (self.base, self.value) && exact == operations.exact(self.base, self.value)
    }
}

/// The profiles of two sides, compared.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffProfile {
    /// Operations in the windows.
    pub operations: Operations,
    /// Own tasks first; scopes in which nothing was executed are left out.
    pub sections: Vec<Section>,
    /// What is shown as one though the sides call it differently.
    pub folds: Vec<Fold>,
    /// Work that moved between functions, in own tasks.
    pub moved: Vec<Moved>,
    /// Groups of functions, in own tasks.
    pub groups: Vec<GroupRow>,
    /// System calls, exceptions, interrupts.
    pub entries: Vec<EntryRow>,
}

impl DiffProfile {
    /// The work that exact runs compare.
    pub fn own(&self) -> Option<&Section> {
        self.sections.iter().find(|section| section.scope == Scope::Own)
    }
}

/// Compares a candidate's profile with the base's; without `fold` every name is a row of its own.
pub fn compare_profiles(
    base: &Profile,
    value: &Profile,
    groups: &Groups,
    fold: bool,
) -> DiffProfile {
    let operations = Operations { base: base.operations, value: value.operations };
    let folding = if fold { Folding::of(base, value) } else { Folding::default() };
    let sections: Vec<Section> = Scope::ALL
        .into_iter()
        .map(|scope| section(scope, base, value, &folding))
        .filter(|section| !section.rows.is_empty())
        .collect();
    let own = sections.iter().find(|section| section.scope == Scope::Own);
    let rows = own.map_or(&[][..], |section| &section.rows);
    let edges: Vec<(&Code, &Code)> = [base, value]
        .into_iter()
        .flat_map(|side| &side.edges)
        .map(|(from, to)| (folding.row(from).0, folding.row(to).0))
        .collect();
    DiffProfile {
        operations,
        moved: moved(rows, &edges, operations),
        groups: groups.rows(base, value),
        entries: entry_rows(base, value),
        folds: folding.into_folds(),
        sections,
    }
}

fn section(scope: Scope, base: &Profile, value: &Profile, folding: &Folding) -> Section {
    let operations = Operations { base: base.operations, value: value.operations };
    let mut rows = BTreeMap::<&Code, Row>::new();
    for (side, profile) in [base, value].into_iter().enumerate() {
        let own = profile.rows.iter().filter(|((of, _), _)| *of == scope);
        for ((_, code), sums) in own {
            let (name, calls) = folding.row(code);
            let row = rows.entry(name).or_insert_with(|| Row {
                code: name.clone(),
                base: Sums::default(),
                value: Sums::default(),
                places: 1,
            });
            row.places = row.places.max(profile.places.get(code).copied().unwrap_or(1));
            let sum = if side == 0 { &mut row.base } else { &mut row.value };
            sum.instructions += sums.instructions;
            sum.calls += if calls { sums.calls } else { 0 };
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.exact(operations)));
    Section { scope, rows, base: base.total(scope), value: value.total(scope) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::profile;
    use super::*;

    #[test]
    fn rows_add_up_to_the_total_whatever_the_numbers_of_operations() {
        let base = profile(3, &[("same", 300, 3), ("schedule", 1000, 7), ("gone", 50, 1)]);
        let value = profile(7, &[("same", 700, 7), ("do_schedule", 2333, 16), ("new", 1, 0)]);
        for fold in [true, false] {
            let found = compare_profiles(&base, &value, &Groups::default(), fold);
            let own = found.own().unwrap();
            assert!(own.adds_up(found.operations), "{own:?}");
            assert_eq!((own.base, own.value), (1350, 3034));
            let same = own.rows.iter().find(|row| row.code.name() == Some("same")).unwrap();
            assert!(!same.changed(found.operations));
        }
    }

    #[test]
    fn a_difference_is_more_calls_and_more_cost_of_each() {
        let base = profile(10, &[("f", 1000, 100)]);
        let value = profile(20, &[("f", 3600, 300)]);
        let found = compare_profiles(&base, &value, &Groups::default(), true);
        let row = &found.own().unwrap().rows[0];
        // 10 calls of 10 each against 15 calls of 12 each.
        let split = row.split(found.operations).unwrap();
        assert_eq!((split.calls, split.cost), (5.0 * 10.0, 2.0 * 15.0));
        assert_eq!(row.difference(found.operations), 80.0);
    }

    #[test]
    fn what_one_side_has_is_all_calls_and_what_is_not_called_is_not_split() {
        let base = profile(1, &[("gone", 10, 2), ("label", 5, 0)]);
        let value = profile(1, &[("new", 9, 3), ("label", 7, 1)]);
        let found = compare_profiles(&base, &value, &Groups::default(), true);
        let rows = &found.own().unwrap().rows;
        let row = |name| rows.iter().find(|row| row.code.name() == Some(name)).unwrap();
        assert_eq!(row("new").split(found.operations), Some(Split { calls: 9.0, cost: 0.0 }));
        assert_eq!(row("gone").split(found.operations), Some(Split { calls: -10.0, cost: 0.0 }));
        assert_eq!(row("label").split(found.operations), None);
        assert_eq!((row("new").one_sided(), row("gone").one_sided()), (Some("new"), Some("gone")));
        let names: Vec<_> = rows.iter().filter_map(|row| row.code.name()).collect();
        assert_eq!(names, ["new", "label", "gone"]);
    }
}
