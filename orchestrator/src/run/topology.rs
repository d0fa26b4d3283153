//! Compares the topology that was asked for with what the guest's kernel sees. Pure.

use std::collections::{BTreeMap, BTreeSet};

use kduel_protocol::{Facts, Group, NodeFacts, SharedCache, Topology, ranges};

use crate::fault::{Failure, FailureClass};
use crate::text::escape;

/// A guest's kernel keeps some memory for itself; with less than this share left, memory is missing.
const MEMORY_SHARE: f64 = 0.75;

/// Checks `facts` against `wanted`. What the kernel does not tell is not compared; [`untold`] says it.
///
/// # Errors
///
/// `TopologyMismatch` with a table: what, wanted, found.
pub fn check(wanted: &Topology, facts: &Facts) -> Result<(), Failure> {
    let mut table = Table::default();
    processors(&mut table, wanted, facts);
    caches(&mut table, wanted, facts);
    nodes(&mut table, wanted, facts);
    if is_short(wanted.memory_mib, facts.memory_kib) {
        table.compare("memory", mib(wanted.memory_mib), mib(facts.memory_kib / 1024));
    }
    if table.rows.is_empty() {
        return Ok(());
    }
    let title = "the guest's kernel does not see what was asked for";
    Err(table.lines().into_iter().fold(
        Failure::new(FailureClass::TopologyMismatch, title)
            .hint("a kernel built with a smaller NR_CPUS, or without NUMA or ACPI, sees less"),
        Failure::detail,
    ))
}

/// What was asked for and cannot be compared, since the guest's kernel does not tell it.
pub fn untold(wanted: &Topology, facts: &Facts) -> Vec<String> {
    let mut untold = Vec::new();
    let mut note = |is: bool, what: &str| {
        if is {
            untold.push(what.to_owned());
        }
    };
    note(wanted.sockets > 1 && groups(facts, Group::Socket).is_none(), "sockets");
    note(wanted.dies > 1 && groups(facts, Group::Die).is_none(), "dies");
    note(wanted.threads > 1 && groups(facts, Group::Core).is_none(), "threads of a core");
    note(!wanted.caches.is_empty() && facts.caches.is_empty(), "caches");
    let tells_access = facts.nodes.iter().any(|node| node.access.is_some());
    note(wanted.has_attributes() && !tells_access, "latencies and bandwidths");
    let room = possible(facts);
    if let Some(room) = room.filter(|room| (wanted.cpus()..wanted.possible_cpus()).contains(room)) {
        let of = wanted.possible_cpus();
        note(true, &format!("room for further CPUs (it keeps room for {room}, not {of})"));
    }
    untold
}

/// How many CPUs the kernel has room for.
fn possible(facts: &Facts) -> Option<u32> {
    let of_part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    let parts = facts.possible_cpus.as_deref()?.split(',');
    parts.map(of_part).try_fold(0, |sum: u32, part| sum.checked_add(part?))
}

/// Rows that differ.
#[derive(Default)]
struct Table {
    rows: Vec<[String; 3]>,
}

impl Table {
    fn compare(&mut self, what: impl Into<String>, wanted: String, found: String) {
        if wanted != found {
            let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
            self.rows.push([what.into(), or_none(wanted), escape(&or_none(found))]);
        }
    }

    /// Aligned, a line of headings first.
    fn lines(self) -> Vec<String> {
        let heading = ["", "wanted", "found"].map(str::to_owned);
        let rows: Vec<[String; 3]> = std::iter::once(heading).chain(self.rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let (what, wanted) = (width(0), width(1));
        let line = |row: &[String; 3]| format!("{:what$}  {:wanted$}  {}", row[0], row[1], row[2]);
        rows.iter().map(line).collect()
    }
}

fn processors(table: &mut Table, wanted: &Topology, facts: &Facts) {
    let all = ranges(&(0..wanted.cpus()).collect::<Vec<_>>());
    let online: Vec<u32> = facts.cpus.iter().map(|cpu| cpu.cpu).collect();
    if let Some(present) = &facts.present_cpus {
        table.compare("present CPUs", all.clone(), present.clone());
    }
    table.compare("online CPUs", all, ranges(&online));
    if let Some(room) = possible(facts).filter(|room| *room > wanted.possible_cpus()) {
        table.compare("possible CPUs", wanted.possible_cpus().to_string(), room.to_string());
    }
    let names = [(Group::Socket, "sockets"), (Group::Die, "dies"), (Group::Core, "cores")];
    for (group, name) in names {
        // With one in each socket, dies say nothing that sockets do not.
        let is_same = group == Group::Die
            && wanted.dies == 1
            && groups(facts, Group::Die) == groups(facts, Group::Socket);
        if is_same {
            continue;
        }
        if let Some(found) = groups(facts, group) {
            let wanted = wanted.groups(group).iter().map(|cpus| ranges(cpus)).collect();
            compare_groups(table, name, wanted, found);
        }
    }
}

/// Lists of CPUs; only how many there are of them if that differs already.
fn compare_groups(table: &mut Table, name: &str, wanted: Vec<String>, found: Vec<String>) {
    if wanted.len() == found.len() {
        table.compare(format!("CPUs of {name}"), wanted.join(" "), found.join(" "));
    } else {
        table.compare(name, wanted.len().to_string(), found.len().to_string());
    }
}

/// The online CPUs by socket, die or core; nothing if the kernel tells it of none.
fn groups(facts: &Facts, group: Group) -> Option<Vec<String>> {
    let mut found: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for cpu in &facts.cpus {
        let key = match group {
            Group::Socket => (cpu.socket, None, None),
            Group::Die => (cpu.socket, Some(cpu.die?), None),
            Group::Core => (None, None, Some(*cpu.siblings.first()?)),
        };
        found.entry(key).or_default().push(cpu.cpu);
    }
    let is_told = facts.cpus.iter().any(|cpu| group != Group::Socket || cpu.socket.is_some());
    let mut groups: Vec<Vec<u32>> = found.into_values().collect();
    groups.sort();
    is_told.then(|| groups.iter().map(|cpus| ranges(cpus)).collect())
}

fn caches(table: &mut Table, wanted: &Topology, facts: &Facts) {
    if facts.caches.is_empty() {
        return;
    }
    for SharedCache { cache, by } in &wanted.caches {
        let (level, kind) = cache.kernel_name();
        let same = facts.caches.iter().filter(|found| (found.level, &*found.kind) == (level, kind));
        let found = same.flat_map(|found| found.shared.iter().cloned()).collect();
        let wanted = wanted.groups(*by).iter().map(|cpus| ranges(cpus)).collect();
        compare_groups(table, &format!("{} caches", cache.name()), wanted, found);
    }
}

fn nodes(table: &mut Table, wanted: &Topology, facts: &Facts) {
    let numbers: BTreeSet<u32> = facts.nodes.iter().map(|node| node.node).collect();
    let found = ranges(&numbers.into_iter().collect::<Vec<_>>());
    if wanted.nodes.is_empty() {
        // A kernel may do without nodes altogether.
        if facts.nodes.len() > 1 {
            table.compare("nodes", "0".to_owned(), found);
        }
        return;
    }
    table.compare("nodes", ranges(&(0..).take(wanted.nodes.len()).collect::<Vec<_>>()), found);
    for (id, node) in (0..).zip(&wanted.nodes) {
        let Some(found) = facts.nodes.iter().find(|found| found.node == id) else { continue };
        let cpus = ranges(&wanted.present_in(node));
        table.compare(format!("CPUs of node {id}"), cpus, ranges(&found.cpus));
        one_node(table, wanted, found);
    }
}

fn one_node(table: &mut Table, wanted: &Topology, found: &NodeFacts) {
    let (id, index) = (found.node, found.node as usize);
    if let Some(row) = wanted.distances.get(index).filter(|_| !found.distances.is_empty()) {
        let shown = |row: &[u32]| row.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
        table.compare(format!("distances of node {id}"), shown(row), shown(&found.distances));
    }
    let memory = wanted.nodes.get(index).map_or(0, |node| node.memory_mib);
    if let Some(kib) = found.memory_kib
        && (is_short(memory, kib) || kib > memory * 1024)
    {
        table.compare(format!("memory of node {id}"), mib(memory), format!("{kib} KiB"));
    }
    let Some(access) = &found.access else { return };
    let Some(best) = wanted.best_initiator(index).filter(|_| memory > 0) else { return };
    table.compare(
        format!("nearest CPUs of node {id}"),
        format!("of node {best}"),
        format!("of node {}", ranges(&access.initiators)),
    );
    let (latency, bandwidth) = (wanted.latency(best, index), wanted.bandwidth(best, index));
    let figures = [
        ("read latency", latency, access.read_latency, "ns"),
        ("write latency", latency, access.write_latency, "ns"),
        ("read bandwidth", bandwidth, access.read_bandwidth, "MiB/s"),
        ("write bandwidth", bandwidth, access.write_bandwidth, "MiB/s"),
    ];
    for (name, wanted, found, unit) in figures {
        let shown = |figure: u32| format!("{figure} {unit}");
        if let Some(wanted) = wanted {
            let found = found.map(shown).unwrap_or_default();
            table.compare(format!("{name} of node {id}"), shown(wanted), found);
        }
    }
}

fn mib(mib: u64) -> String {
    format!("{mib} MiB")
}

#[expect(clippy::cast_precision_loss, reason = "a share of memory needs no more than 52 bits")]
fn is_short(wanted_mib: u64, found_kib: u64) -> bool {
    (found_kib as f64) < wanted_mib as f64 * 1024.0 * MEMORY_SHARE - 64.0 * 1024.0
}

#[cfg(test)]
#[path = "topology_tests.rs"]
mod tests;
