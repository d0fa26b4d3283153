use crate::analyse::{Comparison, DistributionSummary, SideSummary, Verdict};
use crate::boot::Accel;
use crate::plan::{Measure, Pairing, PlannedExperiment, shape};
use crate::text::count;

use super::outcome::mark;
use super::page::{Look, Page, Span};
use super::words::short;
use super::{Report, claims, exact, geometric, monitors, series, sides};

/// The report for a terminal or a file, verdict first. Ends with a newline.
pub fn text(report: &Report<'_>, look: Look) -> String {
    let mut page = Page::new(look);
    match report.plan.measure {
        Measure::Time => verdicts(&mut page, report),
        Measure::Instructions => exact::verdicts(&mut page, report),
    }
    for line in geometric::lines(report) {
        page.paragraph("  ", [line.into()]);
    }
    claims::claims(&mut page, report);
    for experiment in &report.plan.experiments {
        page.blank();
        one_experiment(&mut page, report, experiment);
    }
    let warnings = report.analysis.warnings.iter().chain(&report.profiles.notes).cloned();
    let notes: Vec<String> = exact::cached(report).into_iter().chain(warnings).collect();
    if !notes.is_empty() {
        page.blank();
        for warning in &notes {
            page.paragraph("note: ", [warning.as_str().into()]);
        }
    }
    page.blank();
    for (name, line) in foot(report) {
        let lead = format!("{name}:{}", " ".repeat(6_usize.saturating_sub(name.len())));
        match name {
            // Unbroken: broken lines would not be one command any more.
            "again" | "this" => page.line(&format!("{lead}{line}")),
            _ => page.paragraph(&lead, [line.into()]),
        }
    }
    page.finish()
}

fn accel(report: &Report<'_>) -> Accel {
    report.analysis.accel.unwrap_or(report.info.accelerator)
}

fn verdicts(page: &mut Page, report: &Report<'_>) {
    page.paragraph("verdict: ", headline(report));
    page.blank();
    let analysis = report.analysis;
    let several = report.plan.experiments.len() > 1;
    let names: Vec<String> = analysis.comparisons.iter().map(|c| series_name(c, several)).collect();
    // A long name gets a line of its own rather than pushing all sentences to the right.
    let width = names.iter().map(|name| name.chars().count()).filter(|n| *n <= 28).max();
    for (comparison, name) in analysis.comparisons.iter().zip(&names) {
        let width = width.unwrap_or(0);
        let mut lead = format!("  {name:<width$}  ");
        if name.chars().count() > width {
            page.line(&format!("  {name}"));
            lead = "      ".to_owned();
        }
        page.paragraph(&lead, short(comparison, mark(report)));
    }
}

/// The worst verdict, and how often which.
pub(super) fn headline(report: &Report<'_>) -> Vec<Span> {
    let analysis = report.analysis;
    let primary: Vec<&Comparison> = analysis.comparisons.iter().filter(|c| c.primary).collect();
    let tally = [
        Verdict::Fails,
        Verdict::Regression,
        Verdict::Invalid,
        Verdict::Inconclusive,
        Verdict::Improvement,
        Verdict::NoChange,
    ]
    .map(|verdict| (verdict, primary.iter().filter(|c| c.verdict == verdict).count()));
    let mut spans: Vec<Span> = vec![Span::Verdict(analysis.worst)];
    if primary.len() > 1 {
        let parts: Vec<String> = tally
            .iter()
            .filter(|(_, found)| *found > 0)
            .map(|(verdict, found)| format!("{found} {}", verdict.words()))
            .collect();
        spans.push(
            format!("(of {}: {})", count(primary.len(), "comparison"), parts.join(", ")).into(),
        );
    }
    spans
}

/// With its experiment where there are several.
pub(super) fn series_name(comparison: &Comparison, several: bool) -> String {
    let series = &comparison.series;
    let experiment = if several { format!("{}: ", series.experiment) } else { String::new() };
    format!("{experiment}{} {}", series.workload, series.metric)
}

fn one_experiment(page: &mut Page, report: &Report<'_>, experiment: &PlannedExperiment) {
    let analysis = report.analysis;
    let own_sides: Vec<&SideSummary> =
        analysis.sides.iter().filter(|side| side.experiment == experiment.name).collect();
    let comparisons: Vec<&Comparison> =
        analysis.comparisons.iter().filter(|c| c.series.experiment == experiment.name).collect();
    let operations: Vec<&DistributionSummary> =
        analysis.distributions.iter().filter(|d| d.series.experiment == experiment.name).collect();
    let (name, topology) = (&experiment.name, &experiment.topology_name);
    let shape = shape::summary(&experiment.topology);
    let how = at_once(experiment);
    page.paragraph("", [format!("{name} on {topology} ({shape}){how}").into()]);
    sides::sides(page, report, &own_sides);
    if own_sides.iter().any(|side| !side.failures.is_empty()) {
        page.blank();
        page.line("failures");
        sides::failures(page, &own_sides);
    }
    if let Some(base) = own_sides.first()
        && analysis.accel.is_some()
    {
        if report.plan.measure == Measure::Instructions {
            exact::numbers(page, &base.name, &comparisons, report.profiles);
        } else {
            page.blank();
            page.paragraph("", [executed_by(report).into()]);
            series::numbers(page, &base.name, &comparisons, &operations, mark(report));
        }
    }
    for line in monitors::lines(analysis, name) {
        page.line(&line);
    }
}

/// What is to be said of guests that were not alone.
pub(super) fn at_once(experiment: &PlannedExperiment) -> &'static str {
    match experiment.pairing {
        Pairing::Duet => ", duet: the guests of a pair at once",
        Pairing::Auto | Pairing::Interleave => "",
    }
}

fn executed_by(report: &Report<'_>) -> &'static str {
    match accel(report) {
        Accel::Kvm => "numbers, measured under KVM",
        Accel::Tcg => "numbers, emulated (TCG): ~ is of QEMU's translator, not of hardware",
    }
}

/// What the numbers rest on, what they are about, which run it is, and its commands.
pub(super) fn foot(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let Report { info, analysis, plan, .. } = report;
    let measure = match plan.measure {
        Measure::Time => "time",
        Measure::Instructions => "instructions",
    };
    let claim = "about these builds, here; the same source built again lies differently in memory, \
                 which alone can change a number";
    let label = info.label.as_ref().map(|label| format!(" \"{label}\"")).unwrap_or_default();
    let qemu = info.qemu.as_ref().map(|qemu| format!(", QEMU {}", qemu.version));
    let run = format!(
        "{}{label}, {}, kduel {}{}, host {} on {}",
        info.id,
        info.started.strftime("%Y-%m-%d %H:%M UTC"),
        info.kduel,
        qemu.unwrap_or_default(),
        info.host.kernel,
        info.host.cpu_model
    );
    let mut lines = vec![
        ("basis", format!("{measure}; {}", analysis.basis)),
        ("claim", claim.to_owned()),
        ("run", run),
        ("again", shell_words(&info.command)),
    ];
    if info.compared.is_empty() {
        lines.push(("this", format!("kduel report {}", shell_words(&[info.reference()]))));
    }
    lines
}

/// A command that can be pasted into a shell.
fn shell_words(command: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+,@%^~[]".contains(c);
    let quoted = command.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) && !word.contains(['[', '~']) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
