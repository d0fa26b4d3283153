//! The processor of exact guests, as they read it back.

use std::collections::BTreeSet;

use crate::analyse::{ExactGuest, SideSummary};
use crate::plan::PlannedExperiment;

use super::Report;

/// By CPU model what QEMU's translator lacks of it and what the guests say of it: what they agree on
/// once, then what one of them says beyond that.
pub(super) fn read_back(report: &Report<'_>, experiment: &PlannedExperiment) -> Vec<String> {
    let own = report.analysis.sides.iter().filter(|side| side.experiment == experiment.name);
    let sides: Vec<&SideSummary> = own.collect();
    let mut cpus: Vec<&str> = guests(&sides).map(|(_, guest)| guest.boot.cpu.as_str()).collect();
    let mut seen = BTreeSet::new();
    cpus.retain(|cpu| seen.insert(*cpu));
    let on = |cpu: &str| -> Vec<_> {
        guests(&sides).filter(|(_, guest)| guest.boot.cpu == cpu).collect()
    };
    cpus.into_iter().flat_map(|cpu| of_model(cpu, &on(cpu))).collect()
}

fn guests<'a>(sides: &[&'a SideSummary]) -> impl Iterator<Item = (&'a str, &'a ExactGuest)> {
    sides.iter().flat_map(|side| side.exact.iter().map(|guest| (side.name.as_str(), guest)))
}

fn of_model(cpu: &str, guests: &[(&str, &ExactGuest)]) -> Vec<String> {
    let mut lines = Vec::new();
    let dropped: BTreeSet<&str> = guests
        .iter()
        .flat_map(|(_, guest)| guest.boot.dropped.iter().map(String::as_str))
        .collect();
    if !dropped.is_empty() {
        let features = joined(&dropped, ", ");
        lines.push(format!("{cpu} without {features}: TCG lacks them"));
    }
    let told: Vec<[BTreeSet<String>; 3]> = guests.iter().map(|(_, guest)| says(guest)).collect();
    let Some(first) = told.first() else { return lines };
    let common: Vec<BTreeSet<String>> = (0..first.len())
        .map(|kind| {
            let agree = |word: &&String| told.iter().all(|own| own[kind].contains(*word));
            first[kind].iter().filter(agree).cloned().collect()
        })
        .collect();
    lines.push(format!("guests on {cpu}: {}", sentence(&common)));
    for ((name, _), own) in guests.iter().zip(&told) {
        let beyond: Vec<BTreeSet<String>> =
            own.iter().zip(&common).map(|(own, common)| own - common).collect();
        if beyond.iter().any(|words| !words.is_empty()) {
            lines.push(format!("only {name}: {}", sentence(&beyond)));
        }
    }
    lines
}

/// State of the alternatives, vulnerabilities that the guest is open to, features.
fn says(guest: &ExactGuest) -> [BTreeSet<String>; 3] {
    let smp = guest.smp_alternatives.as_deref().unwrap_or("unknown");
    let open = guest.vulnerabilities.iter().filter(|(_, state)| !state.starts_with("Not affected"));
    [
        BTreeSet::from([format!("SMP alternatives {smp}")]),
        open.map(|(name, state)| format!("{name}: {state}")).collect(),
        guest.features.iter().cloned().collect(),
    ]
}

fn sentence(told: &[BTreeSet<String>]) -> String {
    let kinds = [("", ""), ("vulnerabilities ", "; "), ("features ", " ")];
    let parts = kinds.iter().zip(told).filter(|(_, words)| !words.is_empty());
    let parts: Vec<String> =
        parts.map(|((name, between), words)| format!("{name}{}", joined(words, between))).collect();
    parts.join("; ")
}

fn joined<S: AsRef<str>>(words: &BTreeSet<S>, between: &str) -> String {
    words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().join(between)
}
