//! NUMA nodes of a topology: their CPUs, memory, distances and memory attributes.

use kduel_protocol::{Topology, TopologyNode};

use super::check::Check;
use super::node::{Content, Entry, Node};
use super::topologies::memory_mib;
use crate::plan::topology::{LOCAL_DISTANCE, MAX_CPUS, distances, ring};
use crate::text::count;

/// As many as every kernel has room for; QEMU would take 128.
const MAX_NODES: usize = 64;

/// The largest distance; 255 means that there is no way.
const MAX_DISTANCE: u32 = 254;

/// QEMU writes latencies and bandwidths as 16 bits in a common unit; all ones mean unknown.
const MAX_ENTRY: u32 = 65_534;

/// Reads `nodes:`.
pub fn nodes(check: &mut Check<'_>, node: &Node) -> Option<Vec<TopologyNode>> {
    let items = check.list(node, "`nodes`")?;
    if items.is_empty() || items.len() > MAX_NODES {
        check.complain(node.spot, format!("`nodes` must name 1 to {MAX_NODES} nodes"));
        return None;
    }
    let read: Vec<Option<TopologyNode>> = items.iter().map(|item| numa_node(check, item)).collect();
    read.into_iter().collect()
}

fn numa_node(check: &mut Check<'_>, item: &Node) -> Option<TopologyNode> {
    check.map(item, "a node", &["cpus", "memory"])?;
    let cpus = item.get("cpus").map_or(Some(Vec::new()), |node| cpu_list(check, node));
    let memory = item.get("memory").map_or(Some(0), |node| memory_mib(check, node));
    Some(TopologyNode { cpus: cpus?, memory_mib: memory? })
}

/// `0-3`, `0-3,8`, `[0, 1]`.
fn cpu_list(check: &mut Check<'_>, node: &Node) -> Option<Vec<u32>> {
    let texts = match &node.content {
        Content::List(items) if items.is_empty() => return Some(Vec::new()),
        _ => check.texts(node, "`cpus`")?,
    };
    let cpus = parse_cpu_list(&texts.join(",")).map(|mut cpus| {
        cpus.sort_unstable();
        cpus
    });
    if cpus.is_none() {
        check.advise(node.spot, "`cpus` is no list of CPUs", "write for example 0-3 or 0-3,8");
    }
    cpus
}

/// The numbers that `0-3,8` names; `None` if it names none.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let number = |digits: &str| digits.trim().parse::<u32>().ok().filter(|n| *n < MAX_CPUS);
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
        if cpus.len() > MAX_CPUS as usize {
            return None;
        }
    }
    Some(cpus)
}

/// Reads `distances:` of `n` nodes: `ring`, one number for all, or a matrix.
pub fn read_distances(check: &mut Check<'_>, node: &Node, n: u32) -> Option<Vec<Vec<u32>>> {
    match node.text() {
        Some("ring") => {
            let farthest = ring(n, 0, n / 2);
            if farthest > MAX_DISTANCE {
                let message = format!(
                    "the farthest of {n} nodes in a ring are {farthest} apart, more than {MAX_DISTANCE}"
                );
                check.complain(node.spot, message);
                return None;
            }
            return Some(distances(n, &|i, j| ring(n, i, j)));
        }
        Some(text) if text.starts_with(|c: char| c.is_ascii_digit()) => {
            let range = LOCAL_DISTANCE + 1..=MAX_DISTANCE;
            let far = check.small(node, "the distance between nodes", range)?;
            return Some(distances(n, &|_, _| far));
        }
        _ => {}
    }
    let Content::List(_) = &node.content else {
        let hint = "write `ring`, a number for all, or one list per node, as [[10, 20], [20, 10]]";
        let given = node.text().map_or_else(|| node.kind().to_owned(), |text| format!("`{text}`"));
        check.advise(node.spot, format!("`distances` cannot be {given}"), hint);
        return None;
    };
    let ids: Vec<usize> = (0..n as usize).collect();
    matrix(check, node, "distances", [&ids, &ids], &mut |check, item, [from, to]| {
        let remote = LOCAL_DISTANCE + 1..=MAX_DISTANCE;
        let range = if from == to { LOCAL_DISTANCE..=LOCAL_DISTANCE } else { remote };
        check.small(item, &format!("the distance from node {from} to node {to}"), range)
    })
}

type Cell<'c, 'a> = &'c mut dyn FnMut(&mut Check<'a>, &Node, [usize; 2]) -> Option<u32>;

/// A row for each of the nodes `rows`, in each a number for each of the nodes `columns`.
fn matrix<'a>(
    check: &mut Check<'a>,
    node: &Node,
    key: &str,
    [rows, columns]: [&[usize]; 2],
    cell: Cell<'_, 'a>,
) -> Option<Vec<Vec<u32>>> {
    let named = |ids: &[usize]| {
        let ids: Vec<String> = ids.iter().map(usize::to_string).collect();
        format!("{} (nodes {})", ids.len(), ids.join(", "))
    };
    let items = check.list(node, &format!("`{key}`"))?;
    if items.len() != rows.len() {
        let message =
            format!("`{key}` has {}, and must have {}", count(items.len(), "row"), named(rows));
        check.complain(node.spot, message);
        return None;
    }
    let mut found = Some(Vec::new());
    for (item, from) in items.iter().zip(rows) {
        let row = row(check, item, (key, *from), columns, cell, &named);
        found = found.zip(row).map(|(mut found, row)| {
            found.push(row);
            found
        });
    }
    found
}

fn row<'a>(
    check: &mut Check<'a>,
    node: &Node,
    (key, from): (&str, usize),
    columns: &[usize],
    cell: Cell<'_, 'a>,
    named: &dyn Fn(&[usize]) -> String,
) -> Option<Vec<u32>> {
    let items = check.list(node, &format!("a row of `{key}`"))?;
    if items.len() != columns.len() {
        let message = format!(
            "the row of node {from} in `{key}` has {}, and must have {}",
            count(items.len(), "number"),
            named(columns)
        );
        check.complain(node.spot, message);
        return None;
    }
    let cells: Vec<Option<u32>> =
        items.iter().zip(columns).map(|(item, to)| cell(check, item, [from, *to])).collect();
    cells.into_iter().collect()
}

/// Reads `latencies:` and `bandwidths:` of a topology whose nodes are known.
pub fn read_attributes(check: &mut Check<'_>, entry: &Entry, topology: &mut Topology) {
    let (initiators, targets) = (topology.initiators(), topology.targets());
    let ids: [&[usize]; 2] = [&initiators, &targets];
    if let Some(node) = entry.value.get("latencies") {
        let found = matrix(check, node, "latencies", ids, &mut |check, item, [from, to]| {
            let what = format!("the latency (in ns) from node {from} to node {to}");
            check.small(item, &what, 1..=MAX_ENTRY)
        });
        topology.latencies = found.unwrap_or_default();
    }
    if let Some(node) = entry.value.get("bandwidths") {
        let found = matrix(check, node, "bandwidths", ids, &mut |check, item, [from, to]| {
            bandwidth(check, item, &format!("the bandwidth from node {from} to node {to}"))
        });
        topology.bandwidths = found.unwrap_or_default();
        let all = || topology.bandwidths.iter().flatten().copied();
        let unit = 1 << all().fold(0, |bits, mib| bits | mib).trailing_zeros().min(31);
        if all().any(|mib| mib / unit > MAX_ENTRY) {
            let message = format!(
                "the bandwidths are too different: none may be more than {MAX_ENTRY} times {unit} MiB, \
                 the largest power of two that divides all of them"
            );
            check.advise(node.spot, message, "round them, for example to whole G");
        }
    }
}

/// In MiB/s.
fn bandwidth(check: &mut Check<'_>, node: &Node, what: &str) -> Option<u32> {
    let bytes = check.size(node, what)?;
    let mib = u32::try_from(bytes >> 20).ok().filter(|mib| (1..=1 << 24).contains(mib));
    if mib.is_none() || bytes % (1 << 20) != 0 {
        let message = format!("{what} must be a whole number of MiB a second");
        check.advise(node.spot, message, "write it as 800M or 20G; at most 16T");
        return None;
    }
    mib
}
