//! The numbers behind the charts.

use super::{Asked, SHOWN};
use crate::analyse::{Ecdf, Fate, Half, PairPoint};
use crate::report::markup::safe;
use crate::report::number::{quantity, signed_percent};

/// Tables that open on a click: one for pairs, windows and operations each.
pub(super) fn tables(asked: &Asked<'_>) -> String {
    let tables = [pairs(asked), windows(asked), operations(asked)];
    let tables: String = tables.into_iter().flatten().collect();
    if tables.is_empty() {
        return tables;
    }
    format!(
        "<details><summary>the numbers</summary>\n<div class=\"beside\">\n{tables}</div></details>\n"
    )
}

fn table(headings: &[&str], rows: Vec<Vec<String>>, all: usize) -> String {
    let headings: String =
        headings.iter().map(|name| format!("<th scope=\"col\">{}</th>", safe(name))).collect();
    let shown = rows.len();
    let row = |cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", safe(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows.into_iter().map(row).collect();
    let rest = match all - shown {
        0 => String::new(),
        rest => format!("<p>{rest} more are in the run's folder</p>\n"),
    };
    format!(
        "<div class=\"wide\"><table class=\"data\"><thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n{rest}</div>\n"
    )
}

fn pairs(asked: &Asked<'_>) -> Option<String> {
    let pairs = &asked.points.pairs;
    let [base, side] = asked.sides;
    let headings = [
        "pair",
        "first",
        &format!("{base} started"),
        base,
        &format!("{side} started"),
        side,
        "change",
        "counts",
    ];
    let row = |pair: &PairPoint| {
        let change = pair.base.value.zip(pair.value.value);
        let change = change
            .map(|(base, value)| format!("{}{}", asked.mark, signed_percent(value / base - 1.0)));
        vec![
            (pair.block + 1).to_string(),
            if pair.base_first { base } else { side }.to_owned(),
            started(&pair.base),
            asked.show(pair.base.value),
            started(&pair.value),
            asked.show(pair.value.value),
            change.unwrap_or_else(|| "-".to_owned()),
            match &pair.fate {
                Fate::Valid => "yes".to_owned(),
                Fate::Dropped(why) => format!("dropped: {why}"),
                Fate::Contaminated(why) => format!("contaminated: {why}"),
                Fate::Sentinel => "the same side twice".to_owned(),
            },
        ]
    };
    let rows: Vec<Vec<String>> = pairs.iter().take(SHOWN).map(row).collect();
    (!pairs.is_empty()).then(|| table(&headings, rows, pairs.len()))
}

fn started(half: &Half) -> String {
    half.started.map_or_else(|| "-".to_owned(), |at| at.strftime("%H:%M:%S UTC").to_string())
}

fn windows(asked: &Asked<'_>) -> Option<String> {
    let [a, b] = asked.points.windows.each_ref();
    let seeds = a.len().max(b.len());
    let longest =
        |seed: usize| [a, b].map(|side| side.get(seed).map_or(0, Vec::len)).into_iter().max();
    let places =
        (0..seeds).flat_map(|seed| (0..longest(seed).unwrap_or(0)).map(move |w| (seed, w)));
    let all: Vec<(usize, usize)> = places.collect();
    let row = |(seed, window): &(usize, usize)| {
        let of =
            |side: &[Vec<f64>]| asked.show(side.get(*seed).and_then(|s| s.get(*window)).copied());
        let mut cells = vec![(window + 1).to_string(), of(a), of(b)];
        if seeds > 1 {
            cells.insert(0, (seed + 1).to_string());
        }
        cells
    };
    let mut headings = vec!["window", asked.sides[0], asked.sides[1]];
    if seeds > 1 {
        headings.insert(0, "seed");
    }
    let rows = all.iter().take(SHOWN).map(row).collect();
    (!all.is_empty()).then(|| table(&headings, rows, all.len()))
}

fn operations(asked: &Asked<'_>) -> Option<String> {
    let [a, b] = asked.points.operations.each_ref();
    let shares: Vec<f64> =
        a.as_ref().or(b.as_ref())?.quantiles.iter().map(|(share, _)| *share).collect();
    let at = |side: &Option<Ecdf>, place: usize| {
        side.as_ref().map_or_else(
            || "-".to_owned(),
            |side| format!("{}{}", asked.mark, quantity(side.quantiles[place].1, &side.unit)),
        )
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (place, share) in shares.iter().enumerate() {
        let name = match share {
            0.0 => "smallest".to_owned(),
            1.0 => "largest".to_owned(),
            share => format!("{:.1} %", share * 100.0).replace(".0", ""),
        };
        rows.push(vec![name, at(a, place), at(b, place)]);
    }
    let counted = |side: &Option<Ecdf>| side.as_ref().map_or(0, |side| side.operations).to_string();
    rows.push(vec!["operations".to_owned(), counted(a), counted(b)]);
    let number = rows.len();
    Some(table(&["share", asked.sides[0], asked.sides[1]], rows, number))
}
