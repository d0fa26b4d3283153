//! What comes first and what comes last: the verdict, and which run it is of.

use super::super::claims::claim_lines;
use super::super::markup::{safe, spans};
use super::super::page::Span;
use super::super::{Report, exact, text};
use super::Beside;
use super::cards::cards;

/// The worst verdict, a card for each comparison, and what to know before believing them.
pub(super) fn verdict(report: &Report<'_>, beside: &Beside, headline: Vec<Span>) -> String {
    let warnings = report.analysis.warnings.iter().chain(&report.profiles.notes).cloned();
    let notes = exact::cached(report).into_iter().chain(warnings);
    let notes: String =
        notes.map(|note| format!("<p class=\"note\">note: {}</p>\n", safe(&note))).collect();
    format!(
        "<header>\n<p class=\"dim\">kduel, run {}</p>\n<h1>{}</h1>\n{}{notes}</header>\n",
        safe(&report.info.id.to_string()),
        spans(headline),
        cards(report, beside)
    )
}

/// What became of the claims of a report that is tried; nothing if there is none.
pub(super) fn claims(report: &Report<'_>) -> String {
    let lines = claim_lines(report).into_iter();
    let rows: String = lines
        .map(|(answer, sentence)| {
            format!("<tr><th scope=\"row\">{answer}</th><td>{}</td></tr>\n", safe(&sentence))
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    format!(
        "<section>\n<h2>Claims of the report</h2>\n<div class=\"wide\"><table class=\"sides\">\n<tbody>\n{rows}</tbody>\n</table></div>\n\
         </section>\n"
    )
}

/// Which run it was, and how to do it again.
pub(super) fn foot(report: &Report<'_>) -> String {
    let lines = text::foot(report).into_iter().map(|(name, line)| match name {
        "again" | "this" => format!("<dt>{name}</dt><dd><code>{}</code></dd>\n", safe(&line)),
        _ => format!("<dt>{name}</dt><dd>{}</dd>\n", safe(&line)),
    });
    format!("<footer>\n<dl>\n{}</dl>\n</footer>\n", lines.collect::<String>())
}
