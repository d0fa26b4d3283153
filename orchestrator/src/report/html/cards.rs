//! One card for each comparison that decides, worst first: the verdict at a glance.

use super::super::markup::{colour, safe};
use super::super::number::{interval, margin, signed_percent};
use super::super::{Report, exact, outcome, profile, series};
use super::Beside;
use super::rank::{full_name, worst_first};
use crate::analyse::{Comparison, Verdict};
use crate::text::count;

/// Cards before the rest is told in a sentence.
const CARDS: usize = 12;

/// All cards, and what is to be said of what has none.
pub(super) fn cards(report: &Report<'_>, beside: &Beside) -> String {
    let all = &report.analysis.comparisons;
    let mut places = worst_first(report.analysis);
    if all.iter().any(|comparison| comparison.primary) {
        places.retain(|place| all[*place].primary);
    }
    let rest = places.split_off(places.len().min(CARDS));
    let cards: String = places.iter().map(|place| card(report, beside, *place)).collect();
    if cards.is_empty() {
        return String::new();
    }
    let told = rest_words(rest.iter().map(|place| all[*place].verdict));
    format!("<ul class=\"cards\">\n{cards}</ul>\n{told}")
}

/// `8 more: 2 inconclusive, 6 no change; in the table below`.
fn rest_words(verdicts: impl Iterator<Item = Verdict>) -> String {
    let mut tally: Vec<(Verdict, usize)> = Vec::new();
    for verdict in verdicts {
        match tally.last_mut().filter(|(known, _)| *known == verdict) {
            Some((_, number)) => *number += 1,
            None => tally.push((verdict, 1)),
        }
    }
    if tally.is_empty() {
        return String::new();
    }
    let all: usize = tally.iter().map(|(_, number)| number).sum();
    let parts: Vec<String> =
        tally.iter().map(|(verdict, number)| format!("{number} {}", verdict.words())).collect();
    format!("<p>{all} more without a card: {}</p>\n", parts.join(", "))
}

fn card(report: &Report<'_>, beside: &Beside, place: usize) -> String {
    let comparison = &report.analysis.comparisons[place];
    let name = full_name(report, comparison);
    let verdict = match comparison.exact {
        Some(_) => exact::word_of(comparison, report.profiles),
        None => comparison.verdict.words().to_owned(),
    };
    let class = colour(comparison.verdict);
    let big = big(report, comparison);
    let (big, under) = match big {
        Some(big) => (big, format!("<b class=\"{class}\">{}</b>", safe(&verdict))),
        None => (verdict, String::new()),
    };
    format!(
        "<li class=\"{class}\"><p class=\"of\">{}</p>\n<p class=\"big\">{}</p>\n<p class=\"range\">{}{}</p>\n\
         <p class=\"why dim\">{}</p></li>\n",
        linked(report, beside, place, &name),
        safe(&big),
        under,
        range(comparison, under.is_empty()),
        safe(&why(comparison))
    )
}

/// The change in large digits, where there is one and it says more than the verdict.
fn big(report: &Report<'_>, comparison: &Comparison) -> Option<String> {
    let change = comparison.change.filter(|_| comparison.verdict != Verdict::Fails)?;
    let is_same = change == 0.0 && comparison.exact.is_some();
    (!is_same).then(|| format!("{}{}", outcome::mark(report), signed_percent(change)))
}

fn range(comparison: &Comparison, alone: bool) -> String {
    let ends = comparison.low.zip(comparison.high);
    let mut parts: Vec<String> = ends.map(|(low, high)| interval(low, high)).into_iter().collect();
    if comparison.change.is_some() {
        parts.push(format!("margin {}", margin((comparison.margin * 1e4).round() / 1e4)));
    }
    if comparison.pairs > 0 && comparison.exact.is_none() {
        parts.push(count(comparison.pairs, "pair"));
    }
    let lead = if alone || parts.is_empty() { "" } else { " " };
    let parts: Vec<String> = parts.iter().map(|part| format!("<span>{part}</span>")).collect();
    format!("{lead}{}", parts.join(" "))
}

/// Why, and for counts how many.
fn why(comparison: &Comparison) -> String {
    match &comparison.exact {
        Some(found) if comparison.change.is_some() => exact::values(comparison, found),
        _ => [Some(comparison.reason.clone()), series::pairing(comparison)]
            .into_iter()
            .flatten()
            .filter(|line| !line.is_empty())
            .collect::<Vec<_>>()
            .join("; "),
    }
}

/// The name, as a link to what the page has on the series.
pub(super) fn linked(report: &Report<'_>, beside: &Beside, place: usize, name: &str) -> String {
    let own = profile::of(report.profiles, &report.analysis.comparisons[place]);
    let all = &report.profiles.series;
    let functions = all.iter().position(|one| own.is_some_and(|own| std::ptr::eq(own, one)));
    match functions {
        Some(functions) => format!("<a href=\"#s{functions}\">{}</a>", safe(name)),
        None if beside.points.contains_key(&place) => {
            format!("<a href=\"#c{place}\">{}</a>", safe(name))
        }
        None => safe(name),
    }
}
