//! What a run says as tests that pass, fail, break or are left out.

use crate::analyse::{Comparison, FailureGroup, SideSummary, Verdict};
use crate::boot::Accel;
use crate::plan::{Measure, PlannedExperiment};
use crate::text::{count, escape};

use super::page::{Look, Page, Span};
use super::{Report, exact, words};

/// What came of one test. Texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Worse than the base.
    Failed,
    /// A crash or the rig: in a few words, what.
    Error(String),
    /// Why nothing can be said.
    Skipped(String),
}

/// The name of the test that a side's boots are.
pub(super) const BOOTS: &str = "boots";

/// One comparison, or the boots of one side. Texts are escaped.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub side: String,
    pub name: String,
    pub outcome: Outcome,
    /// What is to be said of it, in a sentence.
    pub message: String,
    /// More lines.
    pub details: Vec<String>,
}

/// One experiment. Texts are escaped.
#[derive(Debug, Clone)]
pub(super) struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// Every experiment: its sides' boots first, then its comparisons.
pub(super) fn suites(report: &Report<'_>) -> Vec<Suite> {
    let suite = |experiment: &PlannedExperiment| {
        let own = |name: &String| *name == experiment.name;
        let comparisons: Vec<&Comparison> =
            report.analysis.comparisons.iter().filter(|c| own(&c.series.experiment)).collect();
        let sides = report.analysis.sides.iter().filter(|side| own(&side.experiment));
        let mut cases: Vec<Case> =
            sides.enumerate().map(|(place, side)| boots(side, place == 0, &comparisons)).collect();
        cases.extend(comparisons.iter().map(|comparison| case(report, comparison)));
        Suite { name: escape(&experiment.name), cases }
    };
    report.plan.experiments.iter().map(suite).collect()
}

/// A comparison in a sentence, without colour.
pub(super) fn said(report: &Report<'_>, comparison: &Comparison) -> String {
    let spans: Vec<Span> = match report.plan.measure {
        Measure::Time => words::sentence(comparison, mark(report)),
        Measure::Instructions => exact::sentence(comparison, report.profiles),
    };
    let mut page = Page::new(Look { width: usize::MAX, colour: false });
    page.paragraph("", spans);
    page.finish().trim_end().to_owned()
}

/// Whether threads of some guest shared the host's CPUs.
pub(super) fn is_overcommitted(report: &Report<'_>) -> bool {
    report.plan.experiments.iter().any(PlannedExperiment::is_overcommitted)
}

/// Stands before every number that is QEMU's translator's and no count, or whose guests had too few
/// CPUs.
pub(super) fn mark(report: &Report<'_>) -> &'static str {
    let accel = report.analysis.accel.unwrap_or(report.info.accelerator);
    let emulated = accel == Accel::Tcg && report.plan.measure == Measure::Time;
    match (emulated, is_overcommitted(report)) {
        (true, true) => "~!",
        (true, false) => "~",
        (false, true) => "!",
        (false, false) => "",
    }
}

/// What the numbers of a timed run rest on.
pub(super) fn boots_compared(report: &Report<'_>) -> &'static str {
    if report.info.compared.is_empty() { "pairs of boots" } else { "boots of several runs" }
}

fn case(report: &Report<'_>, comparison: &Comparison) -> Case {
    let reason = || escape(&comparison.reason);
    let decides = comparison.primary;
    let outcome = match comparison.verdict {
        Verdict::NoChange | Verdict::Improvement => Outcome::Passed,
        verdict if !decides => {
            Outcome::Skipped(format!("secondary, decides nothing: {}", verdict.words()))
        }
        Verdict::Regression => Outcome::Failed,
        Verdict::Inconclusive => Outcome::Skipped(format!("inconclusive: {}", reason())),
        verdict @ (Verdict::Fails | Verdict::Invalid) => {
            Outcome::Error(format!("{}: {}", verdict.words(), reason()))
        }
    };
    let series = &comparison.series;
    Case {
        side: escape(&comparison.side),
        name: escape(&format!("{} {}", series.workload, series.metric)),
        outcome,
        message: said(report, comparison),
        details: Vec::new(),
    }
}

/// Whether a side's guests did what they should. What was repeated with success cost nothing but time.
fn boots(side: &SideSummary, is_base: bool, comparisons: &[&Comparison]) -> Case {
    let lost = |c: &&Comparison| {
        (is_base || c.side == side.name)
            && (c.dropped > 0 || matches!(c.verdict, Verdict::Fails | Verdict::Invalid))
    };
    let broke = side.failures.first().filter(|_| comparisons.iter().any(lost));
    let outcome = broke.map_or(Outcome::Passed, |group| Outcome::Error(headline(group)));
    Case {
        side: escape(&side.name),
        name: BOOTS.to_owned(),
        outcome,
        message: format!("{} of {} completed", side.completed, count(side.boots, "boot")),
        details: side.failures.iter().flat_map(failure).collect(),
    }
}

fn headline(group: &FailureGroup) -> String {
    let workload = group.workload.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
    let (words, title) = (group.first.class.words(), &group.first.title);
    escape(&format!("{workload}{words} (fault: {}): {title}", group.fault))
}

fn failure(group: &FailureGroup) -> Vec<String> {
    let boots: Vec<&str> = group.boots.iter().map(|boot| boot.0.as_str()).collect();
    let mut lines = vec![headline(group), escape(&format!("in {}", boots.join(", ")))];
    lines.extend(group.first.details.iter().map(|line| escape(line)));
    lines.extend(group.first.console_tail.iter().map(|line| format!("| {}", escape(line))));
    lines
}
