//! What the host's kernel does to guests' memory.

use super::finding::{Seen, State};
use super::{Check, check, with_kvm};
use crate::host::files::{HostFiles, in_force};
use crate::host::topology::CpuList;
use crate::text;

pub(super) const CHECKS: &[Check] = &[
    check("memory", memory, "guests that do not fit are killed or swapped"),
    check("swap", swap, "a page of a guest that was swapped out is read back inside a window"),
    with_kvm(
        "thp",
        thp,
        "guests' memory is in small pages: each miss of the TLB walks two tables to their ends",
    ),
    check(
        "ksm",
        ksm,
        "equal pages of both sides are merged, and the next write to one takes a fault",
    ),
    check("nodes", nodes, ""),
    check(
        "numa-balancing",
        numa_balancing,
        "guests' pages are unmapped now and then to see who uses them, and moved",
    ),
];

fn memory(files: &HostFiles) -> Option<Seen> {
    let mib = files.meminfo_kib("MemAvailable")? / 1024;
    let fix = "end what else runs here: a guest of the default topology takes 512 MiB";
    Some(Seen::either(mib >= 1024, State::Worse, format!("{mib} MiB can be had"), fix))
}

fn swap(files: &HostFiles) -> Option<Seen> {
    let table = files.text("proc/swaps")?;
    let sizes = |column: usize| -> u64 {
        let field = |line: &str| line.split_whitespace().nth(column)?.parse::<u64>().ok();
        table.lines().skip(1).filter_map(field).sum()
    };
    let (size, used) = (sizes(2) / 1024, sizes(3) / 1024);
    let fix = "sudo swapoff -a   if memory is enough without it";
    Some(match (table.lines().count(), used) {
        (0 | 1, _) => Seen::good("none"),
        (_, 0) => Seen::new(State::Fair, format!("{size} MiB, not used"), fix),
        (_, _) => Seen::new(State::Worse, format!("{used} of {size} MiB used"), fix),
    })
}

/// With `madvise`, too, guests get huge pages: QEMU asks for them.
fn thp(files: &HostFiles) -> Option<Seen> {
    let text = files.text("sys/kernel/mm/transparent_hugepage/enabled")?;
    let value = in_force(&text);
    let fix = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled";
    Some(Seen::either(value != "never", State::Worse, text::escape(value), fix))
}

fn ksm(files: &HostFiles) -> Option<Seen> {
    let runs = files.number("sys/kernel/mm/ksm/run")? == 1;
    let found = if runs { "runs" } else { "does not run" };
    Some(Seen::either(!runs, State::Worse, found, "echo 0 | sudo tee /sys/kernel/mm/ksm/run"))
}

fn online_nodes(files: &HostFiles) -> Option<usize> {
    Some(CpuList::parse(&files.text("sys/devices/system/node/online")?)?.len())
}

fn nodes(files: &HostFiles) -> Option<Seen> {
    Some(Seen::good(text::count(online_nodes(files)?, "node")))
}

fn numa_balancing(files: &HostFiles) -> Option<Seen> {
    let on = files.number("proc/sys/kernel/numa_balancing")? != 0;
    let fix = "echo 0 | sudo tee /proc/sys/kernel/numa_balancing";
    Some(match (on, online_nodes(files)) {
        (false, _) => Seen::good("off"),
        (true, Some(0 | 1)) => Seen::good("on, with nothing to balance"),
        (true, _) => Seen::new(State::Worse, "on", fix),
    })
}
