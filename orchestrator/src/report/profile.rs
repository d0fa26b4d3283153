//! Which functions account for a difference, in the report of a run.

use crate::analyse::Comparison;
use crate::analyse::profile::{
    Code, DiffProfile, Fold, Moved, Operations, Route, Row, RunProfiles, Section, SeriesProfile,
    Split, Sums,
};
use crate::text::count;

use super::number::quantity;
use super::page::Page;

/// Rows that are shown where there is room, and where many comparisons share it.
const ROWS: usize = 10;
const FEW_ROWS: usize = 3;

/// The profile that belongs to a comparison.
pub(super) fn of<'a>(
    profiles: &'a RunProfiles,
    comparison: &Comparison,
) -> Option<&'a SeriesProfile> {
    profiles.series.iter().find(|series| {
        series.experiment == comparison.series.experiment
            && series.workload == comparison.series.workload
            && series.side == comparison.side
    })
}

/// Whether any function of own tasks differs.
pub(super) fn differs(profile: &DiffProfile) -> bool {
    profile.own().is_some_and(|own| own.changed(profile.operations).next().is_some())
}

/// The rows that matter, what was folded and moved, groups and entries. `detailed`: there is room.
pub(super) fn section(page: &mut Page, series: &SeriesProfile, detailed: bool) {
    let profile = &series.profile;
    let Some(own) = profile.own() else { return };
    functions(page, own, profile.operations, if detailed { ROWS } else { FEW_ROWS });
    if !detailed {
        return;
    }
    let shown: Vec<String> =
        matter(own, profile.operations, ROWS).into_iter().map(|row| row.code.to_string()).collect();
    let (here, rest): (Vec<&Fold>, Vec<&Fold>) =
        profile.folds.iter().partition(|fold| shown.contains(&fold.row));
    for fold in &here {
        page.paragraph("    ", [folded(fold).into()]);
    }
    if !rest.is_empty() {
        let others = if here.is_empty() { "" } else { "other " };
        page.line(&format!(
            "    {} folded: names that are plainly the same function",
            count(rest.len(), &format!("{others}row"))
        ));
    }
    for moved in profile.moved.iter().take(ROWS) {
        page.paragraph("    ", [moved_words(moved).into()]);
    }
    groups(page, profile, true);
    entries(page, profile, true);
    page.line("  all functions: --format diffprofile");
}

/// The largest differences of own tasks in either direction, worst first.
pub(super) fn matter(section: &Section, operations: Operations, rows: usize) -> Vec<&Row> {
    let mut largest: Vec<&Row> = section.changed(operations).collect();
    largest.sort_by_key(|row| std::cmp::Reverse(row.exact(operations).unsigned_abs()));
    largest.truncate(rows);
    largest.sort_by_key(|row| std::cmp::Reverse(row.exact(operations)));
    largest
}

fn functions(page: &mut Page, section: &Section, operations: Operations, rows: usize) {
    let changed = section.changed(operations).count();
    let same = section.rows.len() - changed;
    page.line(&format!(
        "  functions, own tasks: {} differ, {same} are the same",
        if changed == 0 { "none".to_owned() } else { changed.to_string() }
    ));
    if changed == 0 {
        return;
    }
    let heading = ["change", "", "base", "value", "base", "value", "more", "more"];
    page.line(&columns(heading.map(str::to_owned), ""));
    let heading = ["", "ratio", "", "", "calls", "calls", "calls", "each"];
    page.line(&columns(heading.map(str::to_owned), "function"));
    let shown = matter(section, operations, rows);
    let total = total(section);
    let mut lines: Vec<&Row> = shown.clone();
    let rest = rest(section, &shown);
    if changed > shown.len() {
        lines.push(&rest);
    }
    lines.push(&total);
    lines.sort_by_key(|row| std::cmp::Reverse(row.exact(operations)));
    for row in lines {
        let plain = std::ptr::eq(row, &raw const rest) || std::ptr::eq(row, &raw const total);
        let calls = |number: f64| if plain { "-".to_owned() } else { short(number) };
        let (by_calls, by_cost) = parts(row.split(operations).filter(|_| !plain));
        let name = match row {
            _ if std::ptr::eq(row, &raw const rest) => {
                format!("(the {} other rows)", section.rows.len() - shown.len())
            }
            _ if plain => "(total)".to_owned(),
            row => name(row),
        };
        let cells = [
            signed(row.difference(operations)),
            ratio(row, operations),
            short(operations.base(row.base.instructions)),
            short(operations.value(row.value.instructions)),
            calls(operations.base(row.base.calls)),
            calls(operations.value(row.value.calls)),
            by_calls,
            by_cost,
        ];
        page.cut(&columns(cells, &name));
    }
}

/// The width of a page of 80 columns leaves 22 for the name.
fn columns(cells: [String; 8], name: &str) -> String {
    let [change, ratio, base, value, base_calls, value_calls, by_calls, by_cost] = cells;
    format!(
        "  {change:>7} {ratio:>5} {base:>6} {value:>6} {base_calls:>5} {value_calls:>5} \
         {by_calls:>7} {by_cost:>7}  {name}"
    )
}

/// The sums of a section as a row.
pub(super) fn total(section: &Section) -> Row {
    let sums = |instructions| Sums { instructions, calls: 0 };
    row(sums(section.base), sums(section.value))
}

fn rest(section: &Section, shown: &[&Row]) -> Row {
    let of = |part: fn(&Row) -> u64| shown.iter().map(|row| part(row)).sum::<u64>();
    let sums = |instructions| Sums { instructions, calls: 0 };
    row(
        sums(section.base - of(|row| row.base.instructions)),
        sums(section.value - of(|row| row.value.instructions)),
    )
}

fn row(base: Sums, value: Sums) -> Row {
    Row { code: Code::Unnamed, base, value, places: 1 }
}

/// With what is to be known of it.
pub(super) fn name(row: &Row) -> String {
    match row.places {
        0 | 1 => row.code.to_string(),
        places => format!("{} (at {places} addresses)", row.code),
    }
}

/// `1.72`, `new`, `gone`.
pub(super) fn ratio(row: &Row, operations: Operations) -> String {
    if let Some(word) = row.one_sided() {
        return word.to_owned();
    }
    let (base, value) =
        (operations.base(row.base.instructions), operations.value(row.value.instructions));
    if base == 0.0 { "-".to_owned() } else { format!("{:.2}", value / base) }
}

pub(super) fn parts(split: Option<Split>) -> (String, String) {
    split.map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |split| (signed(split.calls), signed(split.cost)),
    )
}

/// `renamed, as many calls: page_remove_rmap -> folio_remove_rmap_ptes`.
pub(super) fn folded(fold: &Fold) -> String {
    let list = |names: &[String]| if names.is_empty() { "-".to_owned() } else { names.join(" + ") };
    format!("folded ({}): {} | {}", fold.reason.words(), list(&fold.base), list(&fold.value))
}

/// `moved: pgd_alloc -413 to clear_page_tables +232, pgd_ctor +181; together 0`.
pub(super) fn moved_words(moved: &Moved) -> String {
    let one = |(name, by): &(String, f64)| format!("{name} {}", signed(*by));
    let to: Vec<String> = moved.to.iter().map(one).collect();
    let how = match moved.route {
        Route::Call => "moved between caller and callee",
        Route::Replaced => "moved, called instead",
        Route::Related => "moved",
    };
    format!("{how}: {} | {}; together {}", one(&moved.from), to.join(", "), signed(moved.rest()))
}

/// Groups of functions: how often, and instructions. `changed`: only those that differ.
pub(super) fn groups(page: &mut Page, profile: &DiffProfile, changed: bool) {
    let rows: Vec<Line<'_>> = profile
        .groups
        .iter()
        .map(|group| Line { name: &group.name, base: group.base, value: group.value })
        .collect();
    lines(page, "groups, own tasks", &rows, profile.operations, changed);
}

/// System calls, exceptions, interrupts.
pub(super) fn entries(page: &mut Page, profile: &DiffProfile, changed: bool) {
    let rows: Vec<Line<'_>> = profile
        .entries
        .iter()
        .map(|entry| Line { name: &entry.label, base: entry.base, value: entry.value })
        .collect();
    lines(page, "entries", &rows, profile.operations, changed);
}

struct Line<'a> {
    name: &'a str,
    base: Sums,
    value: Sums,
}

fn lines(page: &mut Page, title: &str, rows: &[Line<'_>], operations: Operations, changed: bool) {
    let differs = |line: &&Line<'_>| {
        operations.exact(line.base.instructions, line.value.instructions) != 0
            || operations.exact(line.base.calls, line.value.calls) != 0
    };
    let shown: Vec<&Line<'_>> = rows.iter().filter(|line| !changed || differs(line)).collect();
    if shown.is_empty() {
        return;
    }
    page.line(&format!(
        "  {:>8} {:>7} {:>7} {:>7} {:>7}  {title}",
        "change", "times", "times", "base", "value"
    ));
    for line in shown {
        page.cut(&format!(
            "  {:>8} {:>7} {:>7} {:>7} {:>7}  {}",
            signed(operations.difference(line.base.instructions, line.value.instructions)),
            short(operations.base(line.base.calls)),
            short(operations.value(line.value.calls)),
            short(operations.base(line.base.instructions)),
            short(operations.value(line.value.instructions)),
            line.name
        ));
    }
}

/// Four digits, with a sign unless it is zero.
pub(super) fn signed(value: f64) -> String {
    let bare = short(value);
    if value > 0.0 && bare != "0" { format!("+{bare}") } else { bare }
}

/// Four digits; what is less than a thousandth is told apart from nothing.
pub(super) fn short(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.001 {
        return if value > 0.0 { "<.001".to_owned() } else { "-<.001".to_owned() };
    }
    quantity(value, "count")
}
