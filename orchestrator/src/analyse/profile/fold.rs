//! Functions that are plainly the same under two names.

use std::collections::{BTreeMap, BTreeSet};

use super::code::Code;
use super::count::{Profile, Scope, Sums};
use super::names::{PartOf, core_name, differ_harmlessly, likeness, source_name, words};

/// Numbers of calls per operation are equal if they differ by no more than this, relative.
const SAME_CALLS: f64 = 0.01;

/// Names of which only some words are the same must have calls that differ by no more than this.
const VERY_SAME_CALLS: f64 = 0.001;

/// … and so much of the names in common …
const ALIKE: f64 = 0.6;

/// … and calls of which neither costs more than so many times the other.
const SAME_COST: f64 = 2.0;

/// Why functions are one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FoldReason {
    /// The names differ by an ending of the compiler's or the kernel's.
    Ending,
    /// Both names are at the same address on one side.
    Alias,
    /// Each is on one side only, the names differ by a usual beginning or ending, the calls are as
    /// many.
    Renamed,
    /// Each is on one side only, the names have most words in common and differ in no telling one, the
    /// calls are as many and cost about as much.
    Reworded,
    /// One is on one side only and is called as often as the other, which lost work there.
    Split,
}

impl FoldReason {
    /// How it was decided, in reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ending => "ending of the compiler's",
            Self::Alias => "two names of one address",
            Self::Renamed => "renamed, as many calls",
            Self::Reworded => "reworded, as many calls at about the same cost",
            Self::Split => "split, as many calls",
        }
    }
}

/// Functions that are shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The row.
    pub row: String,
    /// Names on the base.
    pub base: Vec<String>,
    /// Names on the candidate.
    pub value: Vec<String>,
    /// Why.
    pub reason: FoldReason,
}

/// Which functions belong to which row.
#[derive(Debug, Default)]
pub(super) struct Folding {
    /// By function: its row, and whether its calls are calls of the row.
    rows: BTreeMap<Code, (Code, bool)>,
    folds: Vec<Fold>,
}

impl Folding {
    /// The row that a function belongs to, and whether its calls count there.
    pub fn row<'a>(&'a self, code: &'a Code) -> (&'a Code, bool) {
        self.rows.get(code).map_or((code, true), |(row, calls)| (row, *calls))
    }

    /// What differs in name between the sides and is shown as one, by row.
    pub fn into_folds(self) -> Vec<Fold> {
        let mut folds = self.folds;
        folds.sort_by(|one, other| one.row.cmp(&other.row));
        folds
    }

    /// Decides by names and by numbers of calls.
    pub fn of(base: &Profile, value: &Profile) -> Self {
        let sides = [base, value].map(Side::new);
        let mut folding = Self::default();
        folding.endings(&sides);
        let mut grouped = sides.map(|side| side.grouped(&folding));
        folding.aliases([base, value], &mut grouped);
        folding.renames(&mut grouped);
        folding.splits(&mut grouped);
        folding
    }

    /// Puts all parts and copies that compilers made of a function into the function's row.
    fn endings(&mut self, sides: &[Side; 2]) {
        let mut families: BTreeMap<Code, BTreeSet<&Code>> = BTreeMap::new();
        for code in sides.iter().flat_map(|side| side.rows.keys()) {
            let Code::Function { name, module } = code else { continue };
            let (source, _) = source_name(name);
            let row = Code::Function { name: source.into(), module: module.clone() };
            families.entry(row).or_default().insert(code);
        }
        for (row, members) in families.into_iter().filter(|(_, members)| members.len() > 1) {
            let kind = |code: &Code| code.name().map_or(PartOf::Whole, |name| source_name(name).1);
            for member in &members {
                // A part's calls are the function's where nothing else of the function is executed.
                let counts = match kind(member) {
                    PartOf::Whole => true,
                    PartOf::Cold => false,
                    PartOf::Part => !sides.iter().any(|side| {
                        let is_there = |code: &&Code| side.rows.contains_key(*code);
                        let mut there = members.iter().copied().filter(is_there);
                        is_there(member) && there.any(|code| kind(code) == PartOf::Whole)
                    }),
                };
                self.rows.insert((*member).clone(), (row.clone(), counts));
            }
            let names = |side: &Side| -> Vec<String> {
                let there = members.iter().filter(|code| side.rows.contains_key(**code));
                there.map(ToString::to_string).collect()
            };
            let [base, value] = [names(&sides[0]), names(&sides[1])];
            if base != value {
                let reason = FoldReason::Ending;
                self.folds.push(Fold { row: row.to_string(), base, value, reason });
            }
        }
    }

    fn aliases(&mut self, profiles: [&Profile; 2], grouped: &mut [Side; 2]) {
        for (own, other) in [(0, 1), (1, 0)] {
            for (code, names) in &profiles[own].aliases {
                let lonely = |side: &[Side; 2], here: usize, code: &Code| {
                    side[here].rows.contains_key(code) && !side[1 - here].rows.contains_key(code)
                };
                let alias = names.iter().map(|name| Code::function(name));
                let found = alias.into_iter().find(|alias| lonely(grouped, other, alias));
                if let Some(alias) = found.filter(|_| lonely(grouped, own, code)) {
                    let (from, to) = if own == 0 { (code, &alias) } else { (&alias, code) };
                    let (from, to) = (from.clone(), to.clone());
                    self.join(grouped, &from, &to, FoldReason::Alias);
                }
            }
        }
    }

    /// Joins functions of one side to functions of the other, the likest first.
    fn renames(&mut self, grouped: &mut [Side; 2]) {
        let lonely = |own: usize| -> Vec<Candidate<'_>> {
            let other = &grouped[1 - own].rows;
            let own = grouped[own].rows.iter();
            let functions = own.filter(|(code, _)| !other.contains_key(code));
            functions.filter_map(|(code, calls)| Candidate::new(code, *calls)).collect()
        };
        let (gone, come) = (lonely(0), lonely(1));
        let mut pairs: Vec<(FoldReason, f64, Code, Code)> = Vec::new();
        for one in &gone {
            for other in &come {
                if let Some((reason, likeness)) = one.same_as(other) {
                    pairs.push((reason, likeness, one.code.clone(), other.code.clone()));
                }
            }
        }
        pairs.sort_by(|a, b| {
            a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)).then_with(|| (&a.2, &a.3).cmp(&(&b.2, &b.3)))
        });
        let mut done = BTreeSet::new();
        for (place, (reason, likeness, from, to)) in pairs.iter().enumerate() {
            if done.contains(from) || done.contains(to) {
                continue;
            }
            // Two candidates that are equally good are no plain case.
            let rival = pairs[place + 1..].iter().any(|(other, rival, f, t)| {
                other == reason
                    && rival == likeness
                    && ((f == from) != (t == to))
                    && !done.contains(f)
                    && !done.contains(t)
            });
            if !rival {
                self.join(grouped, from, to, *reason);
                done.extend([from.clone(), to.clone()]);
            }
        }
    }

    /// Joins what one side split off a function that both have.
    fn splits(&mut self, grouped: &mut [Side; 2]) {
        for own in [0, 1] {
            let other = 1 - own;
            let mut found = Vec::new();
            for (code, sums) in &grouped[own].rows {
                let Some(name) = code.name().filter(|_| !grouped[other].rows.contains_key(code))
                else {
                    continue;
                };
                let whole = grouped[own].rows.iter().find(|(whole, whole_sums)| {
                    let theirs = grouped[other].rows.get(whole);
                    whole != &code
                        && whole.name().is_some_and(|whole| core_name(whole) == core_name(name))
                        && close(sums.0, whole_sums.0, SAME_CALLS)
                        && theirs.is_some_and(|theirs| whole_sums.each() < theirs.each())
                });
                found.extend(whole.map(|(whole, _)| (code.clone(), whole.clone())));
            }
            for (part, whole) in found {
                self.fold_into(&part, &whole, false);
                let (part, whole) = (part.to_string(), whole.to_string());
                let (one, both) = (vec![whole.clone()], vec![whole.clone(), part]);
                let (base, value) = if own == 0 { (both, one) } else { (one, both) };
                self.folds.push(Fold { row: whole, base, value, reason: FoldReason::Split });
            }
        }
    }

    fn join(&mut self, grouped: &mut [Side; 2], from: &Code, to: &Code, reason: FoldReason) {
        let module = match to {
            Code::Function { module, .. } => module.clone(),
            _ => None,
        };
        let row = Code::Function { name: format!("{from} -> {to}").into(), module };
        for code in [from, to] {
            self.fold_into(code, &row, true);
        }
        if let (Some(gone), Some(come)) = (grouped[0].rows.remove(from), grouped[1].rows.remove(to))
        {
            grouped[0].rows.insert(row.clone(), gone);
            grouped[1].rows.insert(row.clone(), come);
        }
        let (base, value) = (vec![from.to_string()], vec![to.to_string()]);
        self.folds.push(Fold { row: row.to_string(), base, value, reason });
    }

    /// Sends everything that is in the row `code` to the row `row`.
    fn fold_into(&mut self, code: &Code, row: &Code, calls: bool) {
        let members = self.rows.values_mut().filter(|(of, _)| of == code);
        for (of, counts) in members {
            *of = row.clone();
            *counts &= calls;
        }
        self.rows.entry(code.clone()).or_insert_with(|| (row.clone(), calls));
    }
}

/// Calls and instructions per operation.
#[derive(Debug, Clone, Copy, Default)]
struct Rate(f64, f64);

impl Rate {
    fn each(self) -> f64 {
        self.1 / self.0
    }
}

/// Functions of one side, per operation: in own tasks where they work for these, else for anyone.
struct Side {
    rows: BTreeMap<Code, Rate>,
}

impl Side {
    fn new(profile: &Profile) -> Self {
        let mut own = BTreeMap::<&Code, Sums>::new();
        let mut others = BTreeMap::<&Code, Sums>::new();
        for ((scope, code), sums) in &profile.rows {
            let rows = if *scope == Scope::Own { &mut own } else { &mut others };
            *rows.entry(code).or_default() += *sums;
        }
        for (code, sums) in others {
            own.entry(code).or_insert(sums);
        }
        let operations = profile.operations.max(1) as f64;
        let rate = |sums: Sums| {
            Rate(sums.calls as f64 / operations, sums.instructions as f64 / operations)
        };
        let rows = own.into_iter().map(|(code, sums)| (code.clone(), rate(sums))).collect();
        Self { rows }
    }

    fn grouped(self, folding: &Folding) -> Self {
        let mut rows = BTreeMap::<Code, Rate>::new();
        for (code, rate) in &self.rows {
            let (row, calls) = folding.row(code);
            let sum = rows.entry(row.clone()).or_default();
            sum.0 += if calls { rate.0 } else { 0.0 };
            sum.1 += rate.1;
        }
        Self { rows }
    }
}

/// A function that only one side has.
struct Candidate<'a> {
    code: &'a Code,
    core: &'a str,
    words: BTreeSet<&'a str>,
    rate: Rate,
}

impl<'a> Candidate<'a> {
    fn new(code: &'a Code, rate: Rate) -> Option<Self> {
        let name = code.name()?;
        Some(Self { code, core: core_name(name), words: words(name), rate })
    }

    fn same_as(&self, other: &Self) -> Option<(FoldReason, f64)> {
        if !close(self.rate.0, other.rate.0, SAME_CALLS) {
            return None;
        }
        if self.core == other.core {
            return Some((FoldReason::Renamed, 1.0));
        }
        let likeness = likeness(&self.words, &other.words);
        let cost = self.rate.each() / other.rate.each();
        let plain = likeness >= ALIKE
            && differ_harmlessly(&self.words, &other.words)
            && close(self.rate.0, other.rate.0, VERY_SAME_CALLS)
            && (1.0 / SAME_COST..=SAME_COST).contains(&cost);
        plain.then_some((FoldReason::Reworded, likeness))
    }
}

/// Whether two numbers are the same but for `part` of the larger, and not zero.
fn close(one: f64, other: f64, part: f64) -> bool {
    one > 0.0 && other > 0.0 && (one - other).abs() <= part * one.max(other)
}
