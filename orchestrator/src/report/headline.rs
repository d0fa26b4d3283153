//! What a run comes to, in one line, and what its kernels are called in short.

use crate::analyse::{Comparison, ExactWord, Verdict};
use crate::plan::PlannedExperiment;

use super::number::signed_percent;
use super::outcome::mark;
use super::{Report, exact};

/// `fork-exit +16.1 % instructions (6.1.176 -> 6.12.117)`.
pub(super) fn headline(report: &Report<'_>) -> String {
    let Some(worst) = telling(report) else { return "nothing was compared".to_owned() };
    let others = report.analysis.comparisons.iter().filter(|c| c.primary && has_changed(c)).count();
    let more = match others.saturating_sub(usize::from(has_changed(worst))) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let [base, value] = kernels(report, worst);
    format!("{}{more} ({base} -> {value})", short(report, worst))
}

/// The comparison that a reader has to know: of the worst verdict the largest change.
fn telling<'a>(report: &Report<'a>) -> Option<&'a Comparison> {
    let comparisons = &report.analysis.comparisons;
    let size = |c: &Comparison| c.change.map_or(0.0, f64::abs);
    comparisons.iter().min_by(|a, b| {
        let rank = |c: &Comparison| (!c.primary, c.verdict);
        rank(a).cmp(&rank(b)).then(size(b).total_cmp(&size(a)))
    })
}

/// Whether it is better or worse, more or less, by the margin or beyond it.
pub(super) fn has_changed(comparison: &Comparison) -> bool {
    matches!(comparison.verdict, Verdict::Regression | Verdict::Improvement)
}

fn short(report: &Report<'_>, comparison: &Comparison) -> String {
    let workload = &comparison.series.workload;
    let metric = metric(comparison);
    match (comparison.verdict, comparison.change) {
        (Verdict::Regression | Verdict::Improvement, Some(change)) => {
            format!("{workload} {}{} {metric}", mark(report), signed_percent(change))
        }
        (Verdict::Fails, _) => format!("{workload}: {} fails", comparison.side),
        _ => format!("{workload} {metric}: {}", word(report, comparison)),
    }
}

/// The metric as words.
pub(super) fn metric(comparison: &Comparison) -> String {
    match comparison.exact {
        Some(_) => comparison.series.metric.replace('-', " "),
        None => comparison.series.metric.clone(),
    }
}

/// What the change is: better or worse; in exact runs more or fewer.
pub(super) fn word(report: &Report<'_>, comparison: &Comparison) -> &'static str {
    let time = comparison.series.metric == kduel_protocol::ExactMetric::GuestTime.name();
    let word = comparison.exact.as_ref().and_then(|exact| exact.word);
    match (word, comparison.verdict) {
        (Some(ExactWord::Identical), _) if exact::unlike(comparison, report.profiles) => {
            "equal total"
        }
        (Some(ExactWord::MoreInstructions), _) => "more",
        (Some(ExactWord::FewerInstructions), _) if time => "less",
        (Some(ExactWord::FewerInstructions), _) => "fewer",
        (Some(word), _) => word.words(&comparison.series.metric),
        (None, Verdict::Regression) => "worse",
        (None, Verdict::Improvement) => "better",
        (None, verdict) => verdict.words(),
    }
}

/// The two kernels of a comparison in short, as far as needed to tell them apart: upstream's version,
/// the package's, the release, and where only knobs differ the sides' names.
fn kernels(report: &Report<'_>, comparison: &Comparison) -> [String; 2] {
    let own = |e: &&PlannedExperiment| e.name == comparison.series.experiment;
    let sides = report.plan.experiments.iter().find(own).map_or(&[][..], |e| &e.sides);
    let named = |name: &str| sides.iter().find(|side| side.name == name);
    let base = sides.first().map_or("base", |side| &side.name);
    let names = [base, &comparison.side];
    let identity = |name| report.info.kernels.get(&named(name)?.kernel_name);
    let [Some(a), Some(b)] = names.map(identity) else { return names.map(str::to_owned) };
    let ways: [fn(&crate::collect::KernelIdentity) -> Option<&str>; 3] =
        [|k| upstream(&k.origin), |k| package(&k.origin), |k| Some(&k.release)];
    let told = ways.iter().filter_map(|way| Some([way(a)?, way(b)?])).find(|[a, b]| a != b);
    told.unwrap_or(names).map(str::to_owned)
}

/// `6.1.176-1` of `linux-image-6.1.0-50-cloud-amd64 6.1.176-1 (bookworm)`.
fn package(origin: &str) -> Option<&str> {
    let mut words = origin.split_whitespace();
    let is_package = words.next()?.starts_with("linux-image-");
    words.next().filter(|_| is_package)
}

/// `6.1.176`: without Debian's revision.
fn upstream(origin: &str) -> Option<&str> {
    let version = package(origin)?;
    Some(version.rsplit_once('-').map_or(version, |(upstream, _)| upstream))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_off_packages_only() {
        let origin = "linux-image-6.1.0-50-cloud-amd64 6.1.176-1~deb12u1 (bookworm)";
        assert_eq!(package(origin), Some("6.1.176-1~deb12u1"));
        assert_eq!(upstream(origin), Some("6.1.176"));
        assert_eq!(upstream("/home/me/linux-image dir/bzImage"), None);
        assert_eq!(upstream("arch/x86/boot/bzImage"), None);
    }
}
