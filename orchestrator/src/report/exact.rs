//! Exact runs in words: how much work, never how fast.

use kduel_protocol::{ExactMetric, workload};

use crate::analyse::profile::RunProfiles;
use crate::analyse::{
    Analysis, Comparison, CountPair, ExactFinding, ExactWord, SideSummary, Verdict,
};
use crate::collect::ExactBoot;
use crate::plan::{PlannedExperiment, machine_of};
use crate::text::count;

use super::number::{interval, margin, percent, quantity, signed_percent};
use super::page::{Page, Span};
use super::{Report, processor, profile};

/// With more comparisons than this only those that changed are shown.
const SHOWN_IN_FULL: usize = 8;

const INDENT: &str = "         ";

/// The limits of every exact run.
pub(super) const LIMITS: [&str; 2] = [
    "not cycles: no caches, TLB, branch misses, memory; a costly one is one",
    "vCPUs take turns: no speed-up, contention or line bouncing is modelled",
];

/// Verdict, machine and every comparison in a sentence.
pub(super) fn verdicts(page: &mut Page, report: &Report<'_>) {
    page.paragraph("verdict: ", headline(report));
    page.blank();
    for experiment in &report.plan.experiments {
        let mut lead = "CPU:     ";
        for line in machine(report, experiment) {
            page.paragraph(lead, [line.into()]);
            lead = INDENT;
        }
    }
    for (lead, line) in ["limits:  ", INDENT].iter().zip(LIMITS) {
        page.paragraph(lead, [line.into()]);
    }
    page.blank();
    let several = report.plan.experiments.len() > 1;
    let (rows, rest) = shown(report);
    for comparison in rows {
        let series = &comparison.series;
        let experiment = if several { format!("{}: ", series.experiment) } else { String::new() };
        page.paragraph(
            &format!("  {experiment}{}  ", series.workload),
            sentence(comparison, report.profiles),
        );
    }
    if let Some(rest) = rest {
        page.paragraph("  ", [rest.into()]);
    }
}

fn primary(analysis: &Analysis) -> Vec<&Comparison> {
    analysis.comparisons.iter().filter(|c| c.primary).collect()
}

/// The worst of what was found, of work where work was counted. Empty `profiles` do not tell equal
/// totals of different functions from identical ones.
pub fn worst_word(analysis: &Analysis, profiles: &RunProfiles) -> String {
    let worst = primary(analysis).into_iter().min_by_key(|c| c.verdict);
    worst.map_or_else(|| analysis.worst.words().to_owned(), |c| word_of(c, profiles))
}

/// The worst word, and how often which.
pub(super) fn headline(report: &Report<'_>) -> Vec<Span> {
    let (analysis, profiles) = (report.analysis, report.profiles);
    let primary = primary(analysis);
    let mut spans = vec![Span::Coloured(worst_word(analysis, profiles), analysis.worst)];
    if primary.len() > 1 {
        spans.push(
            format!("(of {}: {})", count(primary.len(), "comparison"), tally(&primary, profiles))
                .into(),
        );
    }
    spans
}

/// The comparisons that are shown, and what is to be said of the others.
pub(super) fn shown<'a>(report: &Report<'a>) -> (Vec<&'a Comparison>, Option<String>) {
    let (primary, profiles) = (primary(report.analysis), report.profiles);
    let is_shown = |comparison: &&Comparison| {
        primary.len() <= SHOWN_IN_FULL || changed(comparison) || unlike(comparison, profiles)
    };
    let rows: Vec<&Comparison> = primary.iter().copied().filter(is_shown).collect();
    let hidden = primary.len() - rows.len();
    let hides = |c: &&&Comparison| is(c, ExactWord::Identical) && !unlike(c, profiles);
    let same = primary.iter().filter(hides).count();
    let rest = (hidden > 0).then(|| {
        format!(
            "{} not shown: {same} identical, {} within the margin",
            count(hidden, "comparison"),
            hidden - same
        )
    });
    (rows, rest)
}

fn is(comparison: &Comparison, word: ExactWord) -> bool {
    comparison.exact.as_ref().is_some_and(|exact| exact.word == Some(word))
}

/// Equal totals of different functions are not identical.
pub(super) fn unlike(comparison: &Comparison, profiles: &RunProfiles) -> bool {
    let series = profile::of(profiles, comparison);
    is(comparison, ExactWord::Identical)
        && series.is_some_and(|series| profile::differs(&series.profile))
}

fn changed(comparison: &Comparison) -> bool {
    comparison.verdict != Verdict::NoChange
}

/// The word of a comparison, or the verdict where there is none.
pub(super) fn word_of(comparison: &Comparison, profiles: &RunProfiles) -> String {
    if unlike(comparison, profiles) {
        return "equal totals of different functions".to_owned();
    }
    let word = comparison.exact.as_ref().and_then(|exact| exact.word);
    let metric = &comparison.series.metric;
    word.map_or_else(|| comparison.verdict.words(), |word| word.words(metric)).to_owned()
}

fn tally(primary: &[&Comparison], profiles: &RunProfiles) -> String {
    let mut words: Vec<(Verdict, String, usize)> = Vec::new();
    for comparison in primary {
        let word = word_of(comparison, profiles);
        match words.iter_mut().find(|(_, known, _)| *known == word) {
            Some((_, _, number)) => *number += 1,
            None => words.push((comparison.verdict, word, 1)),
        }
    }
    words.sort();
    let parts: Vec<String> =
        words.iter().map(|(_, word, number)| format!("{number} {word}")).collect();
    parts.join(", ")
}

/// What the numbers hold for: the processor first, since it decides which code runs.
pub(super) fn machine(report: &Report<'_>, experiment: &PlannedExperiment) -> Vec<String> {
    let Some(terms) = &experiment.exact else { return Vec::new() };
    let name = match report.plan.experiments.len() {
        1 => String::new(),
        _ => format!("{}: ", experiment.name),
    };
    let line = format!("{name}{}", machine_of(experiment, terms));
    [vec![line], processor::read_back(report, experiment)].concat()
}

/// `patched has 20.0 % more instructions, 146476 to 175772 per fork+exit; …`.
pub(super) fn sentence(comparison: &Comparison, profiles: &RunProfiles) -> Vec<Span> {
    let (side, reason) = (&comparison.side, &comparison.reason);
    let word = Span::Coloured(word_of(comparison, profiles), comparison.verdict);
    let (Some(change), Some(exact)) = (comparison.change, &comparison.exact) else {
        return vec![format!("{side}:").into(), word, format!("; {reason}").into()];
    };
    let ends = comparison.low.zip(comparison.high);
    let ends = ends.map(|(low, high)| format!(" {}", interval(low, high))).unwrap_or_default();
    let mut spans = match exact.word {
        Some(ExactWord::MoreInstructions | ExactWord::FewerInstructions) => {
            vec![format!("{side}: {}{ends}", percent(change.abs())).into(), word]
        }
        Some(ExactWord::Identical) => return vec![format!("{side}:").into(), word],
        _ => vec![
            format!("{side}: {}{ends},", signed_percent(change)).into(),
            word,
            format!("; {reason}").into(),
        ],
    };
    spans.push(format!("; {}", values(comparison, exact)).into());
    if !exact.mixed.is_empty() {
        let more = format!("; mixed: fewer, but more of the costly {}", exact.mixed.join(", "));
        spans.push(more.into());
    }
    spans
}

/// `146476 -> 175772 per fork+exit, windows within 0.01 % and 0.04 %`.
pub(super) fn values(comparison: &Comparison, exact: &ExactFinding) -> String {
    let show = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |value| quantity(value, &comparison.unit))
    };
    let name = comparison.series.workload.split(' ').next().unwrap_or_default();
    let operation = workload(name).map_or("operation", |info| info.operation);
    let [base, value] = exact.spread;
    format!(
        "{} -> {} per {operation}, windows within {} and {}",
        show(comparison.base),
        show(comparison.value),
        percent(base),
        percent(value)
    )
}

/// The numbers of one experiment: what was executed, by context and class.
pub(super) fn numbers(
    page: &mut Page,
    base: &str,
    comparisons: &[&Comparison],
    profiles: &RunProfiles,
) {
    let primary: Vec<&&Comparison> = comparisons.iter().filter(|c| c.primary).collect();
    let detailed = primary.len() <= SHOWN_IN_FULL;
    for comparison in primary {
        let series = profile::of(profiles, comparison);
        // Equal totals of different functions are not identical.
        let differs = series.is_some_and(|series| profile::differs(&series.profile));
        let Some(exact) =
            comparison.exact.as_ref().filter(|_| detailed || changed(comparison) || differs)
        else {
            continue;
        };
        if exact.classes.is_empty() {
            continue;
        }
        let heading = format!(
            "{} on {}, per operation: {base}, {}, change (margin {})",
            comparison.series.workload,
            exact.cpu,
            comparison.side,
            margin((comparison.margin * 1e4).round() / 1e4)
        );
        page.blank();
        page.paragraph("", [heading.into()]);
        if detailed {
            table(page, "instructions by context", &exact.contexts);
            table(page, "own tasks, by class", &exact.classes);
            table(page, "events", &exact.events);
            beside(page, comparisons, comparison);
        }
        if let Some(series) = series {
            profile::section(page, series, detailed);
        }
    }
    if !detailed {
        page.blank();
        page.line("counts by context and class: --json, or run fewer workloads together");
    }
}

/// The other metric of the same series, which decides nothing.
fn beside(page: &mut Page, comparisons: &[&Comparison], primary: &Comparison) {
    let other = comparisons.iter().find(|other| {
        !other.primary
            && other.side == primary.side
            && other.series.workload == primary.series.workload
    });
    let Some(other) = other else { return };
    let what = if other.series.metric == ExactMetric::GuestTime.name() {
        "guest time, ticks and background included"
    } else {
        "instructions of own tasks"
    };
    let show =
        |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| quantity(v, &other.unit));
    let change = other.change.map(signed_percent).unwrap_or_default();
    page.line(&format!("  {what}: {}, {}, {change}", show(other.base), show(other.value)));
}

fn table(page: &mut Page, title: &str, pairs: &[CountPair]) {
    if pairs.is_empty() {
        return;
    }
    page.line(&format!("  {title}"));
    let width = pairs.iter().map(|pair| pair.name.chars().count()).max().unwrap_or(0);
    for pair in pairs {
        let change = change(pair);
        let show = |value: f64| quantity(value, "count");
        page.line(&format!(
            "    {:<width$}  {:>10}  {:>10}  {change:>9}",
            pair.name,
            show(pair.base),
            show(pair.value)
        ));
    }
}

/// `+1.5 %`, `=`, `new`.
pub(super) fn change(pair: &CountPair) -> String {
    match pair.base {
        base if base == pair.value => "=".to_owned(),
        0.0 => "new".to_owned(),
        base => signed_percent(pair.value / base - 1.0),
    }
}

/// Sides that were not booted for this run.
pub(super) fn cached(report: &Report<'_>) -> Vec<String> {
    let sides = report.analysis.sides.iter();
    let guests = sides.flat_map(|side| side.exact.iter().map(move |guest| (side, &guest.boot)));
    let line = |(side, exact): (&SideSummary, &ExactBoot)| {
        let run = exact.cached.as_ref()?;
        Some(format!("{}: cached, the same guest was booted in run {run}", side.name))
    };
    let mut lines: Vec<String> = guests.filter_map(line).collect();
    lines.dedup();
    lines
}
