//! A report to be sent to a mailing list: plain ASCII that no mail program breaks.

use crate::analyse::{Comparison, SideSummary, Verdict, relative_deviation};
use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::plan::{Measure, PlannedExperiment, machine_of, series_label, shape};
use crate::text::count;
use kduel_protocol::{Better, TrialSpec};

use super::headline::{headline, metric, word};
use super::number::{interval, margin, quantity, signed_percent};
use super::outcome::mark;
use super::plain::{Plain, clipped, command_lines};
use super::text::at_once;
use super::{Report, geometric, monitors, profile, sides};

const WIDTH: usize = 75;

/// Functions shown of each comparison.
const FUNCTIONS: usize = 5;

/// The mail, its subject as the first line. `records` are the run's. Ends with a newline.
pub fn mail(report: &Report<'_>, records: &[BootRecord]) -> String {
    let mut page = Plain::new(WIDTH);
    page.line(&format!("kduel: {}", headline(report)));
    for experiment in &report.plan.experiments {
        page.blank();
        page.line(&format!("Sides of {}", experiment.name));
        sides_of(&mut page, report, experiment);
        page.blank();
        page.line("Parameters");
        parameters(&mut page, experiment);
        for side in experiment.sides.iter().skip(1) {
            page.blank();
            Table { report, records, experiment, side: &side.name }.write(&mut page);
        }
        for line in monitors::lines(report.analysis, &experiment.name) {
            page.line(&line);
        }
    }
    for (place, line) in geometric::lines(report).iter().enumerate() {
        if place == 0 {
            page.blank();
        }
        page.paragraph("", line);
    }
    page.blank();
    page.line("Method");
    method(&mut page, report);
    page.blank();
    page.line("Host");
    host(&mut page, report);
    page.blank();
    page.line("To reproduce");
    for line in command_lines(&report.info.command, WIDTH) {
        page.line(&line);
    }
    page.finish()
}

/// The line that tells the regression tracker of it, to be put behind a mail.
pub fn regzbot(range: &str) -> String {
    format!("\n#regzbot introduced: {range}\n")
}

fn sides_of(page: &mut Plain, report: &Report<'_>, experiment: &PlannedExperiment) {
    let own = |side: &&SideSummary| side.experiment == experiment.name;
    let own: Vec<&SideSummary> = report.analysis.sides.iter().filter(own).collect();
    let width = own.iter().map(|side| side.name.chars().count()).max().unwrap_or(0).min(16);
    for side in own {
        let mut lead = format!("  {:<width$}  ", clipped(&side.name, width));
        for line in sides::describe(report, side) {
            page.paragraph(&lead, &line);
            lead = " ".repeat(lead.len());
        }
        for failure in &side.failures {
            let (words, title) = (failure.first.class.words(), &failure.first.title);
            page.paragraph(&lead, &format!("FAILED: {words}: {title}"));
        }
    }
}

fn parameters(page: &mut Plain, experiment: &PlannedExperiment) {
    let shape = shape::summary(&experiment.topology);
    let how = at_once(experiment);
    page.paragraph("  guest: ", &format!("{}, {shape}{how}", experiment.topology_name));
    if let Some(terms) = &experiment.exact {
        page.paragraph("  guest CPU: ", &machine_of(experiment, terms));
    }
    for trial in &experiment.trials {
        page.paragraph(&format!("  {}: ", series_label(trial)), &trial_words(trial));
    }
}

fn trial_words(trial: &TrialSpec) -> String {
    let params = trial.params.iter().map(|(name, value)| format!("{name}={value}, "));
    let command = trial.command.as_ref().map(|command| format!("{}, ", command.argv.join(" ")));
    let interval = match trial.min_interval_ns {
        0 => String::new(),
        ns => format!(" of at least {}", quantity(ns as f64, "ns")),
    };
    format!(
        "{}{}{}{interval}, {} before them not counted",
        params.collect::<String>(),
        command.unwrap_or_default(),
        count(trial.iterations as usize, "iteration"),
        trial.warmup
    )
}

/// One candidate against the base, series by series.
struct Table<'a> {
    report: &'a Report<'a>,
    records: &'a [BootRecord],
    experiment: &'a PlannedExperiment,
    side: &'a str,
}

impl Table<'_> {
    fn write(&self, page: &mut Plain) {
        let base = self.experiment.sides.first().map_or("base", |side| &side.name);
        page.line(&format!(
            "  {:>10} {:>8} {:>11} {:>12} {:>8}",
            clipped(base, 10),
            "%stddev",
            "%change",
            clipped(self.side, 12),
            "%stddev"
        ));
        let own =
            |c: &&Comparison| c.series.experiment == self.experiment.name && c.side == self.side;
        for comparison in self.report.analysis.comparisons.iter().filter(own) {
            self.row(page, base, comparison);
        }
    }

    /// What is counted beside a comparison: boots of different runs are no pairs.
    fn unit(&self) -> &'static str {
        if self.report.info.compared.is_empty() { "pair" } else { "boot" }
    }

    fn row(&self, page: &mut Plain, base: &str, comparison: &Comparison) {
        let mark = mark(self.report);
        let show = |value: Option<f64>| {
            let shown = value.map(|value| format!("{mark}{}", quantity(value, &comparison.unit)));
            shown.unwrap_or_else(|| "-".to_owned())
        };
        let deviation = |side| {
            let found = relative_deviation(self.report.plan, self.records, comparison, side);
            found.map_or_else(|| "-".to_owned(), |found| format!("{:.2}%", found * 100.0))
        };
        let change = comparison.change.map(|c| format!("{mark}{}", signed_percent(c)));
        page.paragraph("", &heading(comparison, self.unit()));
        page.line(&format!(
            "  {:>10} {:>8} {:>11} {:>12} {:>8}  {}",
            show(comparison.base),
            deviation(base),
            change.unwrap_or_else(|| "-".to_owned()),
            show(comparison.value),
            deviation(self.side),
            word(self.report, comparison)
        ));
        if !matches!(comparison.verdict, Verdict::Regression | Verdict::Improvement) {
            page.paragraph("  ", &comparison.reason);
        }
        if comparison.primary {
            self.functions(page, comparison);
        }
    }

    /// Which functions account for most of a difference.
    fn functions(&self, page: &mut Plain, comparison: &Comparison) {
        let Some(series) = profile::of(self.report.profiles, comparison) else { return };
        let operations = series.profile.operations;
        let Some(own) = series.profile.own().filter(|own| own.changed(operations).next().is_some())
        else {
            return;
        };
        page.line("  instructions per operation in functions, the largest differences");
        for row in profile::matter(own, operations, FUNCTIONS) {
            page.line(&format!(
                "  {:>10} {:>8} {:>11} {:>12} {:>8}  {}",
                profile::short(operations.base(row.base.instructions)),
                "",
                profile::signed(row.difference(operations)),
                profile::short(operations.value(row.value.instructions)),
                "",
                profile::name(row)
            ));
        }
    }
}

/// `fork-exit time (lower is better, margin 10 %, 8 pairs, 99 % interval [+13.9, +16.1])`.
fn heading(comparison: &Comparison, unit: &str) -> String {
    let mut notes = Vec::new();
    if comparison.exact.is_none() {
        notes.push(match comparison.better {
            Better::Lower => "lower is better".to_owned(),
            Better::Higher => "higher is better".to_owned(),
        });
    }
    // An exact margin may be three instructions: a part with many digits.
    notes.push(format!("margin {}", margin((comparison.margin * 1e4).round() / 1e4)));
    if comparison.exact.is_none() {
        notes.push(count(comparison.pairs, unit));
    }
    if comparison.dropped > 0 {
        notes.push(format!("{} dropped", comparison.dropped));
    }
    if let Some((low, high)) = comparison.low.zip(comparison.high) {
        let level = comparison.confidence.map(|level| format!("{:.1} % ", level * 100.0));
        notes.push(format!("{}interval {}", level.unwrap_or_default(), interval(low, high)));
    }
    if !comparison.primary {
        notes.push("secondary, decides nothing".to_owned());
    }
    format!("{} {} ({})", comparison.series.workload, metric(comparison), notes.join(", "))
}

fn method(page: &mut Plain, report: &Report<'_>) {
    let (what, words, deviation) = match report.plan.measure {
        Measure::Time => (
            format!("wall time in the guests, {}", super::outcome::boots_compared(report)),
            "better and worse go by the metric's direction, beyond the margin",
            "%stddev is over the means of the boots",
        ),
        Measure::Instructions => (
            "instructions executed in deterministic guests, no times: work, not speed".to_owned(),
            "more and fewer are beyond the margin",
            "%stddev is over the windows of the one boot, or over boots where there are several",
        ),
    };
    for line in [&what, &report.analysis.basis, words, "%change is value / base - 1", deviation] {
        page.paragraph("  ", line);
    }
    if mark(report).starts_with('~') {
        page.paragraph("  ", "~ is emulated (TCG): of QEMU's translator, not of hardware");
    }
}

fn host(page: &mut Plain, report: &Report<'_>) {
    let info = report.info;
    let cpus = count(info.host.cpus as usize, "CPU");
    page.paragraph("  ", &format!("{cpus}, {}, Linux {}", info.host.cpu_model, info.host.kernel));
    let qemu = info.qemu.as_ref().map(|qemu| format!("QEMU {}, ", qemu.version));
    let accel = match report.analysis.accel.unwrap_or(info.accelerator) {
        Accel::Kvm => "guests under KVM",
        Accel::Tcg => "guests emulated by TCG",
    };
    page.paragraph("  ", &format!("{}{accel}, kduel {}", qemu.unwrap_or_default(), info.kduel));
    page.paragraph("  ", &format!("run {}", info.id));
    for note in report.analysis.warnings.iter().chain(&report.profiles.notes) {
        page.paragraph("  note: ", note);
    }
}
