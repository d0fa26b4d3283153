//! Which functions account for a difference, as bars.

use std::collections::BTreeSet;

use super::super::markup::safe;
use super::super::number::quantity;
use super::super::profile::{self, folded, moved_words, name, ratio, short, signed, total};
use super::super::{Report, exact};
use super::Beside;
use super::bars::{Bar, Bars};
use crate::analyse::profile::{
    DiffProfile, Fold, Operations, Row, Scope, Section, SeriesProfile, Sums,
};
use crate::analyse::{Comparison, CountPair};
use crate::text::count;
use kduel_protocol::workload;

/// Rows that are shown before the reader asks for all.
const ROWS: usize = 24;

const COLUMNS: [&str; 9] = [
    "ratio",
    "-base",
    "-value",
    "-base calls",
    "-value calls",
    "-base each",
    "-value each",
    "-by calls",
    "-by cost",
];
const WAYS: [&str; 4] = ["-base", "-value", "base times", "value times"];

/// Everything of one comparison.
pub(super) fn section(report: &Report<'_>, beside: &Beside, place: usize) -> String {
    let series = &report.profiles.series[place];
    let profile = &series.profile;
    let word = series.workload.split(' ').next().unwrap_or_default();
    let operation = workload(word).map_or("operation", |info| info.operation);
    let mut html = format!(
        "<section id=\"s{place}\">\n<h2>{}: {} against {}, instructions per {operation}</h2>\n",
        safe(&series.workload),
        safe(&series.side),
        safe(&series.base)
    );
    if let Some(own) = profile.own() {
        html += &functions(own, series, beside, place);
    }
    html += &notes(profile);
    let group =
        |group: &crate::analyse::profile::GroupRow| (group.name.clone(), group.base, group.value);
    let groups: Vec<_> = profile.groups.iter().map(group).collect();
    html +=
        &ways("groups of functions, own tasks", &format!("g{place}"), &groups, profile.operations);
    let entries: Vec<_> = profile
        .entries
        .iter()
        .map(|entry| (entry.label.clone(), entry.base, entry.value))
        .collect();
    html += &ways("ways into the kernel", &format!("e{place}"), &entries, profile.operations);
    html += &counts(report, series);
    for other in profile.sections.iter().filter(|section| section.scope != Scope::Own) {
        html += &beyond(other, profile.operations, place);
    }
    html + "</section>\n"
}

fn functions(own: &Section, series: &SeriesProfile, beside: &Beside, place: usize) -> String {
    let operations = series.profile.operations;
    let changed = own.changed(operations).count();
    let mut html = format!(
        "<h3>functions, own tasks: {} differ, {} are the same</h3>\n",
        if changed == 0 { "none".to_owned() } else { changed.to_string() },
        own.rows.len() - changed
    );
    if changed == 0 {
        return html;
    }
    html += "<p class=\"key dim\"><i class=\"mk\"></i><i class=\"lk\"></i> more or fewer calls \
             <i class=\"me\"></i><i class=\"le\"></i> more or less for each call</p>\n";
    let shown = profile::matter(own, operations, ROWS);
    let is_shown = |row: &Row| shown.iter().any(|one| std::ptr::eq(*one, row));
    let bar = |row: &Row| Bar {
        name: code(row, &series.profile.folds, beside, place),
        minor: !is_shown(row),
        ..of_row(row, operations)
    };
    let rest = profile::rest(own, &shown);
    let rest_name = format!("(the {} other rows)", own.rows.len() - shown.len());
    let bars = Bars {
        id: format!("f{place}"),
        what: "function",
        columns: &COLUMNS,
        bars: own.rows.iter().map(bar).collect(),
        sums: [
            Some(Bar { name: "(total)".to_owned(), ..sum(&total(own), operations) }),
            Some(Bar { name: rest_name, ..sum(&rest, operations) }),
        ],
    };
    html += &bars.render();
    if !beside.code.keys().any(|(series, _)| *series == place) {
        html += "<p class=\"dim\">the executed code of a function: <code>kduel annotate FUNCTION</code></p>\n";
    }
    html
}

/// The name, as a link to the executed code where that is at hand; so are the names that are folded
/// into it.
fn code(row: &Row, folds: &[Fold], beside: &Beside, place: usize) -> String {
    let link = |function: &str, shown: &str| {
        let found = beside.code.get(&(place, function.to_owned()));
        found.map(|to| format!("<a href=\"{to}\">{}</a>", safe(shown)))
    };
    let shown = name(row);
    let own = row.code.name().unwrap_or_default();
    let fold = folds.iter().find(|fold| fold.row == row.code.to_string());
    let other = |name: &String| link(name, name).unwrap_or_else(|| safe(name));
    let folded = match fold.map(|fold| (&fold.base[..], &fold.value[..])) {
        // The row has both names already.
        Some(([base], [value])) if base != own && value != own => {
            return format!("{} -&gt; {}", other(base), other(value));
        }
        Some((base, value)) => [base, value].concat(),
        None => Vec::new(),
    };
    let mut html = link(own, &shown).unwrap_or_else(|| safe(&shown));
    if let Some(word) = row.one_sided() {
        html += &format!(" <small>{word}</small>");
    }
    let others: BTreeSet<&String> = folded.iter().filter(|name| *name != own).collect();
    for name in others {
        html += &format!(" <small>with {}</small>", other(name));
    }
    html
}

fn of_row(row: &Row, operations: Operations) -> Bar {
    let calls = [operations.base(row.base.calls), operations.value(row.value.calls)];
    let cost = [operations.base(row.base.instructions), operations.value(row.value.instructions)];
    let each = |side: usize| match calls[side] {
        0.0 => "-".to_owned(),
        calls => short(cost[side] / calls),
    };
    let split = row.split(operations);
    let (by_calls, by_cost) = profile::parts(split);
    Bar {
        name: safe(&name(row)),
        difference: row.difference(operations),
        parts: split.map(|split| [split.calls, split.cost]),
        cells: vec![
            ratio(row, operations),
            short(cost[0]),
            short(cost[1]),
            short(calls[0]),
            short(calls[1]),
            each(0),
            each(1),
            by_calls,
            by_cost,
        ],
        minor: false,
    }
}

/// A row that stands for several: calls of all together say nothing.
fn sum(row: &Row, operations: Operations) -> Bar {
    let mut bar = of_row(row, operations);
    bar.cells.truncate(3);
    bar.cells.resize(COLUMNS.len(), String::new());
    bar
}

fn notes(profile: &DiffProfile) -> String {
    let list = |title: String, lines: Vec<String>| {
        if lines.is_empty() {
            return String::new();
        }
        let items: String = lines.iter().map(|line| format!("<li>{}</li>\n", safe(line))).collect();
        format!("<details><summary>{title}</summary>\n<ul>\n{items}</ul>\n</details>\n")
    };
    list(
        format!("{} folded: names that are plainly the same", count(profile.folds.len(), "row")),
        profile.folds.iter().map(folded).collect(),
    ) + &list(
        format!("work that moved between functions: {}", count(profile.moved.len(), "case")),
        profile.moved.iter().map(moved_words).collect(),
    )
}

/// Groups or entries: how often, and instructions.
fn ways(title: &str, id: &str, rows: &[(String, Sums, Sums)], operations: Operations) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut rows: Vec<&(String, Sums, Sums)> = rows.iter().collect();
    rows.sort_by_key(|(_, base, value)| {
        std::cmp::Reverse(operations.exact(base.instructions, value.instructions))
    });
    let bar = |(name, base, value): &(String, Sums, Sums)| Bar {
        name: safe(name),
        difference: operations.difference(base.instructions, value.instructions),
        parts: None,
        cells: vec![
            short(operations.base(base.instructions)),
            short(operations.value(value.instructions)),
            short(operations.base(base.calls)),
            short(operations.value(value.calls)),
        ],
        minor: false,
    };
    let bars = rows.into_iter().map(bar).collect();
    let what = if id.starts_with('g') { "group" } else { "entry" };
    let table = Bars { id: id.to_owned(), what, columns: &WAYS, bars, sums: [None, None] };
    format!("<h3>{title}</h3>\n{}", table.render())
}

/// What others than the workload's own tasks executed: the rows that differ.
fn beyond(section: &Section, operations: Operations, place: usize) -> String {
    let bars: Vec<Bar> = section.changed(operations).map(|row| of_row(row, operations)).collect();
    let title = format!(
        "{}: {} per operation, {} that differ",
        section.scope.words(),
        signed(operations.difference(section.base, section.value)),
        count(bars.len(), "function")
    );
    let id = format!("o{place}-{}", section.scope.words().replace(' ', "-"));
    let sums = [Some(Bar { name: "(total)".to_owned(), ..sum(&total(section), operations) }), None];
    let table = Bars { id, what: "function", columns: &COLUMNS, bars, sums };
    format!("<details><summary>{title}</summary>\n{}</details>\n", table.render())
}

/// By context and class of instruction, and events.
fn counts(report: &Report<'_>, series: &SeriesProfile) -> String {
    let is_own = |c: &&Comparison| {
        c.primary && profile::of(report.profiles, c).is_some_and(|own| std::ptr::eq(own, series))
    };
    let own = report.analysis.comparisons.iter().find(is_own);
    let Some(found) = own.and_then(|comparison| comparison.exact.as_ref()) else {
        return String::new();
    };
    let table = |title: &str, pairs: &[CountPair]| {
        let row = |pair: &CountPair| {
            let cells =
                [quantity(pair.base, "count"), quantity(pair.value, "count"), exact::change(pair)]
                    .map(|cell| format!("<td>{}</td>", safe(&cell)));
            format!("<tr><th scope=\"row\">{}</th>{}</tr>\n", safe(&pair.name), cells.concat())
        };
        let rows: String = pairs.iter().map(row).collect();
        format!(
            "<table class=\"numbers\"><thead><tr><th scope=\"col\">{title}</th><th scope=\"col\">base</th>\
             <th scope=\"col\">value</th><th scope=\"col\">change</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        )
    };
    format!(
        "<details><summary>counts by context and class, events</summary>\n<div class=\"beside\">\n{}{}{}</div></details>\n",
        table("instructions by context", &found.contexts),
        table("own tasks, by class", &found.classes),
        table("events", &found.events)
    )
}
