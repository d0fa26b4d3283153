//! What comes first and what comes last: the verdict, and what it holds for.

use super::super::markup::{safe, spans};
use super::super::page::Span;
use super::super::{Report, exact, profile, sides, text, words};
use crate::analyse::{Comparison, SideSummary};
use crate::plan::{Measure, PlannedExperiment, shape};

/// The worst verdict, and a sentence for each comparison.
pub(super) fn verdict(report: &Report<'_>, headline: Vec<Span>) -> String {
    let several = report.plan.experiments.len() > 1;
    let item = |name: String, comparison: &Comparison, said: Vec<Span>| {
        format!("<li>{}: {}</li>\n", linked(report, comparison, &name), spans(said))
    };
    let (items, rest): (String, Option<String>) = match report.plan.measure {
        Measure::Time => {
            let sentence = |c| words::sentence(c, text::mark(report));
            let all = report.analysis.comparisons.iter();
            (all.map(|c| item(text::series_name(c, several), c, sentence(c))).collect(), None)
        }
        Measure::Instructions => {
            let (shown, rest) = exact::shown(report);
            let name = |c: &Comparison| match several {
                true => format!("{}: {}", c.series.experiment, c.series.workload),
                false => c.series.workload.clone(),
            };
            let sentence = |c| exact::sentence(c, report.profiles);
            (shown.into_iter().map(|c| item(name(c), c, sentence(c))).collect(), rest)
        }
    };
    let rest = rest.map(|rest| format!("<p>{}</p>\n", safe(&rest))).unwrap_or_default();
    format!(
        "<header>\n<p class=\"dim\">kduel, run {}</p>\n<h1>{}</h1>\n<ul>\n{items}</ul>\n{rest}</header>\n",
        safe(&report.info.id.to_string()),
        spans(headline)
    )
}

/// The name, as a link where the series has functions.
fn linked(report: &Report<'_>, comparison: &Comparison, name: &str) -> String {
    let own = profile::of(report.profiles, comparison);
    let all = &report.profiles.series;
    match all.iter().position(|series| own.is_some_and(|own| std::ptr::eq(own, series))) {
        Some(place) => format!("<a href=\"#s{place}\">{}</a>", safe(name)),
        None => safe(name),
    }
}

/// The sides, the processor and the limits of what is said.
pub(super) fn conditions(report: &Report<'_>) -> String {
    let mut html = "<section class=\"conditions\">\n".to_owned();
    for experiment in &report.plan.experiments {
        html += &one(report, experiment);
    }
    if report.plan.measure == Measure::Instructions {
        html += &format!("<dl><dt>limits</dt><dd>{}</dd></dl>\n", exact::LIMITS.join("<br>"));
    }
    let warnings = report.analysis.warnings.iter().chain(&report.profiles.notes).cloned();
    for note in exact::cached(report).into_iter().chain(warnings) {
        html += &format!("<p class=\"note\">note: {}</p>\n", safe(&note));
    }
    html + "</section>\n"
}

fn one(report: &Report<'_>, experiment: &PlannedExperiment) -> String {
    let mut html = format!(
        "<h2>{} on {} ({})</h2>\n<dl>\n",
        safe(&experiment.name),
        safe(&experiment.topology_name),
        shape::summary(&experiment.topology)
    );
    let own = report.analysis.sides.iter().filter(|side| side.experiment == experiment.name);
    for side in own {
        let lines = sides::describe(report.info, side);
        html += &format!("<dt>{}</dt>{}\n", safe(&side.name), folded(&lines));
        html += &failures(side);
    }
    let lines = exact::machine(report, experiment);
    if !lines.is_empty() {
        html += &format!("<dt>CPU</dt>{}\n", folded(&lines));
    }
    html + "</dl>\n"
}

/// The first line, the others behind it.
fn folded(lines: &[String]) -> String {
    let Some((first, rest)) = lines.split_first() else { return String::new() };
    let rest: Vec<String> = rest.iter().map(|line| safe(line)).collect();
    if rest.is_empty() {
        return format!("<dd>{}</dd>", safe(first));
    }
    format!("<dd><details><summary>{}</summary>{}</details></dd>", safe(first), rest.join("<br>"))
}

fn failures(side: &SideSummary) -> String {
    let mut html = String::new();
    for group in &side.failures {
        html += &format!("<dd class=\"worse\">{}", safe(&sides::headline(side, group)));
        for line in group.first.details.iter().chain(&group.first.hint) {
            html += &format!("<br>{}", safe(line));
        }
        if let Some((boot, lines)) = sides::tail(group).filter(|(_, lines)| !lines.is_empty()) {
            let lines: Vec<String> = lines.iter().map(|line| safe(line)).collect();
            html += &format!(
                "<br>console/{}.log ends with<pre>{}</pre>",
                safe(&boot.0),
                lines.join("\n")
            );
        }
        html += "</dd>\n";
    }
    html
}

/// Which run it was, and how to do it again.
pub(super) fn foot(report: &Report<'_>) -> String {
    let lines = text::foot(report).map(|(name, line)| match name {
        "again" | "this" => format!("<dt>{name}</dt><dd><code>{}</code></dd>\n", safe(&line)),
        _ => format!("<dt>{name}</dt><dd>{}</dd>\n", safe(&line)),
    });
    format!("<footer>\n<dl>\n{}</dl>\n</footer>\n", lines.concat())
}
