//! `monitors:`, a list of names or `NAME: { interval: … }`.

use kduel_protocol::{Monitor, MonitorTerms};

use super::check::Check;
use super::diagnostic::Spot;
use super::node::{Content, Node};

/// What the document says and the flags add, each once, in the order of reports.
pub fn read(
    check: &mut Check<'_>,
    experiment: &Node,
    flags: &[Monitor],
) -> (Vec<Monitor>, MonitorTerms) {
    let (mut found, mut terms) = (Vec::new(), MonitorTerms::default());
    let items = experiment.get("monitors").and_then(|node| check.list(node, "`monitors`"));
    for item in items.unwrap_or_default() {
        let Some(monitor) = one(check, item, &mut terms) else { continue };
        if found.contains(&monitor) {
            check.complain(item.spot, format!("monitor `{}` is listed twice", monitor.name()));
        }
        found.push(monitor);
    }
    found.extend(flags);
    found.sort_unstable();
    found.dedup();
    (found, terms)
}

fn one(check: &mut Check<'_>, item: &Node, terms: &mut MonitorTerms) -> Option<Monitor> {
    if let Some(name) = item.text() {
        return named(check, item.spot, name);
    }
    let Content::Map(entries) = &item.content else {
        check.complain(item.spot, "a monitor must be a word, or a word with its interval");
        return None;
    };
    let [entry] = &entries[..] else {
        check.complain(item.spot, "one monitor an entry, as in `- vmstat: { interval: 1s }`");
        return None;
    };
    let monitor = named(check, entry.spot, &entry.key)?;
    let what = format!("monitor `{}`", monitor.name());
    let keys: &[&str] =
        if matches!(monitor, Monitor::Vmstat | Monitor::Profile) { &["interval"] } else { &[] };
    check.map(&entry.value, &what, keys)?;
    if let Some(node) = entry.value.get("interval") {
        interval(check, monitor, node, terms);
    }
    Some(monitor)
}

fn named(check: &mut Check<'_>, spot: Spot, name: &str) -> Option<Monitor> {
    let found = Monitor::named(name);
    if found.is_none() {
        check.unknown(spot, "monitor", name, &Monitor::ALL.map(Monitor::name));
    }
    found
}

fn interval(check: &mut Check<'_>, monitor: Monitor, node: &Node, terms: &mut MonitorTerms) {
    let what = format!("`interval` of `{}`", monitor.name());
    let Some(ns) = check.duration_ns(node, &what) else { return };
    let (unit_ns, shortest, longest, words) = match monitor {
        Monitor::Profile => (1000, 50, 1_000_000, "from 50us to 1s"),
        _ => (1_000_000, 10, 600_000, "from 10ms to 600s"),
    };
    match u32::try_from(ns / unit_ns).ok().filter(|value| (shortest..=longest).contains(value)) {
        None => check.advise(node.spot, format!("{what} is out of range"), words),
        Some(value) if monitor == Monitor::Profile => terms.profile_us = value,
        Some(value) => terms.vmstat_ms = value,
    }
}
