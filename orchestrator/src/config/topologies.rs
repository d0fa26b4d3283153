use kduel_protocol::{Topology, TopologyNode};

use super::check::Check;
use super::node::{Content, Entry, Node};
use crate::plan::topology::{
    self, LOCAL_DISTANCE, MAX_CPUS, PRESETS, REMOTE_DISTANCE, distances, ring,
};

/// A topology of the document; absent if something is wrong with it, which was complained about.
pub type NamedTopology = (String, Option<Topology>);

/// QEMU's limit.
const MAX_NODES: usize = 128;

const KEYS: &[&str] = &["sockets", "cores", "threads", "memory", "nodes", "distances"];

/// Reads `topologies:`.
pub fn read(check: &mut Check<'_>, node: &Node) -> Vec<NamedTopology> {
    let Some(entries) = check.section(node, "`topologies`") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries {
        check.name(entry.spot, "a topology", &entry.key);
        if topology::named(&entry.key).is_some() {
            let message = format!("`{}` already means something", entry.key);
            check.advise(entry.spot, message, "choose another name");
        }
        found.push((entry.key.clone(), full(check, entry)));
    }
    found
}

/// The topology that a word means: one of the document's, a preset, or an inline one.
pub fn resolve(check: &mut Check<'_>, node: &Node, named: &[NamedTopology]) -> Option<Topology> {
    let word = check.text(node, "a topology")?;
    if let Some((_, topology)) = named.iter().find(|(name, _)| *name == word) {
        return topology.clone();
    }
    let found = topology::named(&word);
    if found.is_none() {
        let own = named.iter().map(|(name, _)| name.as_str());
        let valid: Vec<&str> = own.chain(PRESETS.iter().map(|(name, _)| *name)).collect();
        let near = super::check::nearest(&word, valid.iter().copied());
        let hint = near.map_or_else(
            || {
                "write for example 2s4c (2 sockets, 4 cores each) or 1s4c2t (2 threads per core)"
                    .to_owned()
            },
            |near| format!("did you mean `{near}`?"),
        );
        check.advise(node.spot, format!("unknown topology `{word}`"), hint);
    }
    found
}

fn full(check: &mut Check<'_>, entry: &Entry) -> Option<Topology> {
    let what = format!("topology `{}`", entry.key);
    check.map(&entry.value, &what, KEYS)?;
    let complaints = check.found.len();
    let mut count = |key: &str| {
        entry
            .value
            .get(key)
            .map_or(Some(1), |node| check.small(node, &format!("`{key}`"), 1..=MAX_CPUS))
    };
    let (sockets, cores, threads) = (count("sockets"), count("cores"), count("threads"));
    let (sockets, cores, threads) = (sockets?, cores?, threads?);
    let cpus = u64::from(sockets) * u64::from(cores) * u64::from(threads);
    if cpus > u64::from(MAX_CPUS) {
        check.complain(entry.spot, format!("{what} has {cpus} CPUs, more than {MAX_CPUS}"));
        return None;
    }
    let memory = entry.value.get("memory").map(|node| memory_mib(check, node));
    let nodes = entry.value.get("nodes").map(|node| nodes(check, node));
    let nodes = nodes.unwrap_or(Some(Vec::new()))?;
    let memory_mib = memory.unwrap_or_else(|| Some(default_memory(&nodes)))?;
    let n = u32::try_from(nodes.len()).ok()?;
    let distances = match entry.value.get("distances") {
        Some(node) => read_distances(check, node, n)?,
        None => distances(n, &|_, _| REMOTE_DISTANCE),
    };
    let topology = Topology { sockets, cores, threads, memory_mib, nodes, distances };
    consistent(check, entry, &topology);
    (check.found.len() == complaints).then_some(topology)
}

fn default_memory(nodes: &[TopologyNode]) -> u64 {
    if nodes.is_empty() { 512 } else { nodes.iter().map(|node| node.memory_mib).sum() }
}

/// A size that is a whole number of MiB.
pub fn memory_mib(check: &mut Check<'_>, node: &Node) -> Option<u64> {
    let bytes = check.size(node, "`memory`")?;
    if bytes % (1 << 20) != 0 || bytes > 1 << 44 {
        let hint = "write it as 512M or 4G; at most 16T";
        check.advise(node.spot, "`memory` must be a whole number of MiB", hint);
        return None;
    }
    Some(bytes >> 20)
}

fn nodes(check: &mut Check<'_>, node: &Node) -> Option<Vec<TopologyNode>> {
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
    let cpus = parse_cpu_list(&texts.join(","));
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

fn read_distances(check: &mut Check<'_>, node: &Node, n: u32) -> Option<Vec<Vec<u32>>> {
    if node.text() == Some("ring") {
        let matrix = distances(n, &|i, j| ring(n, i, j));
        return Some(matrix);
    }
    let Content::List(rows) = &node.content else {
        let hint = "write `ring`, or one list of distances per node, as [[10, 20], [20, 10]]";
        check.advise(node.spot, format!("`distances` cannot be {}", node.kind()), hint);
        return None;
    };
    if rows.len() != n as usize {
        let rows = crate::text::count(rows.len(), "row");
        let message = format!("`distances` has {rows} for {n} nodes");
        check.complain(node.spot, message);
        return None;
    }
    let read: Vec<Option<Vec<u32>>> =
        rows.iter().enumerate().map(|(i, row)| distance_row(check, row, i, n)).collect();
    read.into_iter().collect()
}

fn distance_row(check: &mut Check<'_>, row: &Node, i: usize, n: u32) -> Option<Vec<u32>> {
    let items = check.list(row, "a row of `distances`")?;
    if items.len() != n as usize {
        let message = format!("row {i} of `distances` has {} numbers for {n} nodes", items.len());
        check.complain(row.spot, message);
        return None;
    }
    let mut values = Vec::new();
    for (j, item) in items.iter().enumerate() {
        let range = if i == j { LOCAL_DISTANCE..=LOCAL_DISTANCE } else { LOCAL_DISTANCE + 1..=254 };
        let what = format!("the distance from node {i} to node {j}");
        values.push(check.small(item, &what, range));
    }
    values.into_iter().collect()
}

/// Rules between the keys of a topology.
fn consistent(check: &mut Check<'_>, entry: &Entry, topology: &Topology) {
    let what = format!("topology `{}`", entry.key);
    if topology.nodes.is_empty() {
        if let Some(node) = entry.value.get("distances") {
            check.complain(node.spot, "`distances` means nothing without `nodes`");
        }
        return;
    }
    let spot = entry.value.get("nodes").map_or(entry.spot, |node| node.spot);
    for cpu in 0..topology.cpus() {
        let times =
            topology.nodes.iter().flat_map(|node| &node.cpus).filter(|c| **c == cpu).count();
        if times != 1 {
            let message =
                format!("{what}: CPU {cpu} is in {times} nodes, and must be in exactly one");
            check.complain(spot, message);
            break;
        }
    }
    if let Some(cpu) =
        topology.nodes.iter().flat_map(|node| &node.cpus).find(|c| **c >= topology.cpus())
    {
        let message = format!("{what}: there is no CPU {cpu}, the last is {}", topology.cpus() - 1);
        check.complain(spot, message);
    }
    let sum: u64 = topology.nodes.iter().map(|node| node.memory_mib).sum();
    if sum != topology.memory_mib {
        let message = format!(
            "{what}: its nodes have {sum} MiB together, and `memory` says {} MiB",
            topology.memory_mib
        );
        check.advise(spot, message, "make them equal, or leave `memory` out");
    }
}
