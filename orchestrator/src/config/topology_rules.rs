//! Rules between the keys of a topology: what QEMU would refuse, and what no kernel could see.

use kduel_protocol::{Cache, Group, Topology};

use super::check::Check;
use super::diagnostic::Spot;
use super::node::{Content, Entry};

/// The highest local interrupt controller that can be named without x2APIC.
const MAX_APIC_ID: u32 = 254;

/// Kernels leave out the memory of a node that has less, in MiB.
const MIN_NODE_MIB: u64 = 4;

/// Complains about everything that does not fit together.
pub fn check(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    apic_ids(check, entry, topology);
    caches(check, entry, topology);
    if topology.memory_mib == 0 {
        let spot = entry.value.get("memory").map_or(entry.spot, |node| node.spot);
        check.complain(spot, format!("topology `{}` has no memory", entry.key));
    }
    if topology.nodes.is_empty() {
        for key in ["distances", "latencies", "bandwidths"] {
            if let Some(node) = entry.value.get(key) {
                check.complain(node.spot, format!("`{key}` means nothing without `nodes`"));
            }
        }
        return;
    }
    nodes(check, entry, topology);
    assigned(check, entry, topology);
    let sum: u64 = topology.nodes.iter().map(|node| node.memory_mib).sum();
    if sum != topology.memory_mib {
        let spot = entry.value.get("memory").map_or(entry.spot, |node| node.spot);
        let message = format!(
            "`memory` says {} MiB, and the nodes have {sum} MiB together",
            topology.memory_mib
        );
        check.advise(spot, message, "make them equal, or leave `memory` out");
    }
}

/// Every CPU has a number made of its place, with whole bits for each part of it.
fn apic_ids(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    let Topology { dies, cores, threads, .. } = *topology;
    let last = topology.cpus().saturating_sub(1);
    let bits = |n: u32| n.next_power_of_two().trailing_zeros();
    let (core, rest) = (last / threads % cores, last / threads / cores);
    let (die, socket) = (rest % dies, rest / dies);
    let parts = [(die, dies), (core, cores), (last % threads, threads)];
    let id = parts.iter().fold(socket, |id, (part, of)| (id << bits(*of)) | part);
    if id > MAX_APIC_ID {
        let message = format!(
            "topology `{}`: its last CPU would have the APIC ID {id}, above {MAX_APIC_ID}",
            entry.key
        );
        let hint = "counts of dies, cores and threads that are powers of two leave no gaps";
        check.advise(entry.spot, message, hint);
    }
}

/// A cache is shared by no fewer CPUs than the one before it. Without a word, L3 is of the die and the
/// others of the core.
fn caches(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    let shared = |cache: Cache| {
        let own = topology.caches.iter().find(|shared| shared.cache == cache);
        let usual = if cache == Cache::L3 { Group::Die } else { Group::Core };
        own.map_or(usual, |shared| shared.by)
    };
    let pairs = [(Cache::L1d, Cache::L2), (Cache::L1i, Cache::L2), (Cache::L2, Cache::L3)];
    for (near, far) in pairs {
        if shared(near) > shared(far) {
            let node = entry.value.get("caches");
            let value =
                node.and_then(|node| node.get(near.name()).or_else(|| node.get(far.name())));
            let spot = value.map_or(entry.spot, |node| node.spot);
            let message = format!(
                "{} is shared by a {}, {} only by a {}",
                near.name(),
                shared(near).name(),
                far.name(),
                shared(far).name()
            );
            let hint =
                format!("a farther cache is shared at least as widely; say `{}`", far.name());
            check.advise(spot, message, hint);
        }
    }
}

/// Where the node `id` is written.
fn node_spot(entry: &Entry, id: usize) -> Spot {
    let Some(nodes) = entry.value.get("nodes") else { return entry.spot };
    match &nodes.content {
        Content::List(items) => items.get(id).map_or(nodes.spot, |item| item.spot),
        _ => nodes.spot,
    }
}

/// What each node needs to be one.
fn nodes(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    for (id, node) in topology.nodes.iter().enumerate() {
        let spot = node_spot(entry, id);
        if node.memory_mib == 0 && topology.present_in(node).is_empty() {
            let what = if node.cpus.is_empty() { "CPUs" } else { "CPUs that are there" };
            let message =
                format!("node {id} has neither {what} nor memory: no kernel would see it");
            check.complain(spot, message);
        }
        if (1..MIN_NODE_MIB).contains(&node.memory_mib) {
            let message =
                format!("node {id} has less than {MIN_NODE_MIB} MiB, which kernels leave out");
            check.complain(spot, message);
        }
    }
}

/// Every CPU that there is room for is in one node, and the threads of a core in the same.
fn assigned(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    let possible = topology.possible_cpus();
    let mut owner: Vec<Option<usize>> = vec![None; possible as usize];
    for (id, node) in topology.nodes.iter().enumerate() {
        let spot = node_spot(entry, id);
        for cpu in &node.cpus {
            match owner.get_mut(*cpu as usize) {
                None => {
                    let message = format!("there is no CPU {cpu}, the last is {}", possible - 1);
                    check.complain(spot, message);
                    break;
                }
                Some(Some(other)) => {
                    let message = format!("CPU {cpu} is in node {other} already");
                    check.complain(spot, message);
                    break;
                }
                Some(free) => *free = Some(id),
            }
        }
    }
    let spot = entry.value.get("nodes").map_or(entry.spot, |node| node.spot);
    if let Some(cpu) = owner.iter().position(Option::is_none) {
        let also = if topology.present.is_some() { ", also those that are not there" } else { "" };
        check.advise(
            spot,
            format!("CPU {cpu} is in no node"),
            format!("every CPU is in one{also}"),
        );
    }
    for (core, owners) in owner.chunks(topology.threads as usize).enumerate() {
        if let [first, rest @ ..] = owners
            && rest.iter().any(|other| other != first && other.is_some() && first.is_some())
        {
            let message = format!("the threads of core {core} are in different nodes");
            check.advise(spot, message, "no kernel takes them for threads of one core then");
            break;
        }
    }
}
