use kduel_protocol::{Cache, Group, SharedCache, Topology};

use super::check::Check;
use super::node::{Entry, Node};
use super::{numa, topology_rules};
use crate::plan::topology::{self, MAX_CPUS, PRESETS, REMOTE_DISTANCE, distances};

/// A topology of the document; absent if something is wrong with it, which was complained about.
pub type NamedTopology = (String, Option<Topology>);

/// The largest guest that QEMU's translator has addresses for, in GiB.
const MAX_MEMORY_GIB: u64 = 960;

const KEYS: &[&str] = &[
    "sockets",
    "dies",
    "clusters",
    "cores",
    "threads",
    "cpus",
    "maxcpus",
    "caches",
    "memory",
    "nodes",
    "distances",
    "latencies",
    "bandwidths",
];

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
    let mut topology = processors(check, entry)?;
    if let Some(node) = entry.value.get("caches") {
        topology.caches = caches(check, node);
    }
    let memory = entry.value.get("memory").map(|node| memory_mib(check, node));
    let nodes = entry.value.get("nodes").map(|node| numa::nodes(check, node));
    topology.nodes = nodes.unwrap_or(Some(Vec::new()))?;
    topology.memory_mib = memory.unwrap_or_else(|| Some(default_memory(&topology)))?;
    let n = u32::try_from(topology.nodes.len()).ok()?;
    topology.distances = distances(n, &|_, _| REMOTE_DISTANCE);
    if let Some(node) = entry.value.get("distances").filter(|_| n > 0) {
        topology.distances = numa::read_distances(check, node, n).unwrap_or_default();
    }
    topology_rules::check(check, entry, &topology);
    if n > 0 {
        numa::read_attributes(check, entry, &mut topology);
    }
    (check.found.len() == complaints).then_some(topology)
}

/// A topology with these processors and nothing else.
fn processors(check: &mut Check<'_>, entry: &Entry) -> Option<Topology> {
    let mut count = |key: &str| {
        let node = entry.value.get(key);
        node.map_or(Some(1), |node| check.small(node, &format!("`{key}`"), 1..=MAX_CPUS))
    };
    let (sockets, dies, clusters) = (count("sockets"), count("dies"), count("clusters"));
    let (cores, threads) = (count("cores"), count("threads"));
    if let Some(node) = entry.value.get("clusters").filter(|_| clusters.is_some_and(|n| n > 1)) {
        let hint = "leave them out; cores that share an L2 cache are a cluster to the kernel: \
                    `caches: { l2: die }`";
        check.advise(node.spot, "QEMU has no `clusters` on an x86 machine", hint);
    }
    let (sockets, dies, cores, threads) = (sockets?, dies?, cores?, threads?);
    let counts = [sockets, dies, cores, threads];
    let possible = counts.iter().try_fold(1_u32, |product, n| product.checked_mul(*n));
    let Some(possible) = possible.filter(|possible| *possible <= MAX_CPUS) else {
        let product = counts.map(|n| n.to_string()).join(" x ");
        let message = format!("topology `{}` has more than {MAX_CPUS} CPUs: {product}", entry.key);
        check.complain(entry.spot, message);
        return None;
    };
    let present = present(check, entry, possible)?;
    Some(Topology { sockets, dies, cores, threads, present, ..Topology::default() })
}

/// How many of the `possible` CPUs are there, if not all.
fn present(check: &mut Check<'_>, entry: &Entry, possible: u32) -> Option<Option<u32>> {
    if let Some(node) = entry.value.get("maxcpus") {
        let most = check.small(node, "`maxcpus`", 1..=MAX_CPUS)?;
        if most != possible {
            let message = format!(
                "`maxcpus` says {most}, and sockets x dies x cores x threads is {possible}"
            );
            let hint = "make them equal, or leave `maxcpus` out; `cpus` says how many are there";
            check.advise(node.spot, message, hint);
            return None;
        }
    }
    let Some(node) = entry.value.get("cpus") else { return Some(None) };
    let present = check.small(node, "`cpus`", 1..=possible)?;
    Some(Some(present).filter(|present| *present < possible))
}

/// `{ l2: die, l3: socket }`, in the order of the caches.
fn caches(check: &mut Check<'_>, node: &Node) -> Vec<SharedCache> {
    let names = Cache::ALL.map(Cache::name);
    if check.map(node, "`caches`", &names).is_none() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for cache in Cache::ALL {
        let Some(value) = node.get(cache.name()) else { continue };
        let Some(word) = check.text(value, &format!("`{}`", cache.name())) else { continue };
        match Group::ALL.into_iter().find(|group| group.name() == word) {
            Some(by) => found.push(SharedCache { cache, by }),
            None if ["thread", "cluster", "module"].contains(&word.as_str()) => {
                let message = format!("QEMU has no cache for each {word} of an x86 machine");
                check.advise(value.spot, message, "write `core`, `die` or `socket`");
            }
            None => {
                let valid = Group::ALL.map(Group::name);
                check.unknown(value.spot, "group of CPUs", &word, &valid);
            }
        }
    }
    found
}

fn default_memory(topology: &Topology) -> u64 {
    let nodes = &topology.nodes;
    if nodes.is_empty() { 512 } else { nodes.iter().map(|node| node.memory_mib).sum() }
}

/// A size that is a whole number of MiB.
pub fn memory_mib(check: &mut Check<'_>, node: &Node) -> Option<u64> {
    let bytes = check.size(node, "`memory`")?;
    if bytes > MAX_MEMORY_GIB << 30 {
        let message = "`memory` is more than an emulated processor has addresses for";
        check.advise(node.spot, message, format!("write at most {MAX_MEMORY_GIB}G"));
        return None;
    }
    if bytes % (1 << 20) != 0 {
        let message = "`memory` must be a whole number of MiB";
        check.advise(node.spot, message, "write it as 512M or 4G");
        return None;
    }
    Some(bytes >> 20)
}
