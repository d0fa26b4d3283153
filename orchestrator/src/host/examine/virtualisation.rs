//! Hypervisors: the one below the host, and the host's own.

use super::finding::{Seen, State};
use super::{Check, check, with_kvm};
use crate::host::files::HostFiles;
use crate::text;

pub(super) const CHECKS: &[Check] = &[
    check(
        "hypervisor",
        hypervisor,
        "its own host takes time away, and moves it, without a word; guests in it are nested",
    ),
    check("steal", steal, "its own host gives its time to others"),
    with_kvm(
        "halt-poll",
        halt_poll,
        "a CPU whose guest went idle polls for a while: wake-ups vary, and its sibling is slowed",
    ),
    with_kvm(
        "nx-huge-pages",
        nx_huge_pages,
        "huge pages that guests execute are split, and joined again in the background",
    ),
];

fn hypervisor(files: &HostFiles) -> Option<Seen> {
    let flags = files.cpuinfo("flags")?;
    let virtual_machine = flags.first()?.split_whitespace().any(|flag| flag == "hypervisor");
    let found = match virtual_machine {
        true => "this host is a virtual machine itself",
        false => "none: this host is hardware",
    };
    let fix = "measure on hardware, or exactly: --measure instructions";
    Some(Seen::either(!virtual_machine, State::Fair, found, fix))
}

fn steal(files: &HostFiles) -> Option<Seen> {
    let stat = files.text("proc/stat")?;
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    // Guest time, behind steal, is part of user time already.
    let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    let (stolen, all) = (*ticks.get(7)?, ticks.iter().sum::<u64>());
    let part = if all == 0 { 0.0 } else { stolen as f64 / all as f64 };
    let state = if part > 0.05 { State::Bad } else { State::Worse };
    let found = format!("{:.1} % of its time since it booted", part * 100.0);
    let fix = "move to a host that is less busy, or measure exactly: --measure instructions";
    Some(Seen::either(part <= 0.005, state, found, fix))
}

fn halt_poll(files: &HostFiles) -> Option<Seen> {
    let ns = files.number("sys/module/kvm/parameters/halt_poll_ns")?;
    let found = if ns == 0 { "off".to_owned() } else { format!("up to {} µs", ns / 1000) };
    let fix = "echo 0 | sudo tee /sys/module/kvm/parameters/halt_poll_ns";
    Some(Seen::either(ns == 0, State::Fair, found, fix))
}

fn nx_huge_pages(files: &HostFiles) -> Option<Seen> {
    let value = files.text("sys/module/kvm/parameters/nx_huge_pages")?;
    let off = matches!(value.as_str(), "N" | "never" | "off");
    let fix = "load kvm with nx_huge_pages=never, if all guests are trusted";
    Some(Seen::either(off, State::Fair, text::escape(&value), fix))
}
