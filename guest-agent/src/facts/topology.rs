//! CPUs, NUMA nodes and their memory.

use kduel_protocol::{AccessFacts, CacheFacts, CpuFacts, NodeFacts};

use super::Source;
use crate::text::number_list;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

/// Online CPUs. Where `/sys` does not list them, one per processor of `/proc/cpuinfo`.
pub fn cpus(source: &Source<'_>) -> Vec<CpuFacts> {
    let mut online = number_list(&source.text(&format!("{CPU}/online"))).unwrap_or_default();
    if online.is_empty() {
        online = processors(&source.text("proc/cpuinfo"));
    }
    online.into_iter().map(|cpu| one_cpu(source, cpu)).collect()
}

/// A list of CPUs that the kernel keeps: `possible`, `present`.
pub fn cpu_list(source: &Source<'_>, name: &str) -> Option<String> {
    Some(source.text(&format!("{CPU}/{name}"))).filter(|list| !list.is_empty())
}

fn processors(cpuinfo: &str) -> Vec<u32> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let numbers = fields.filter(|(key, _)| key.trim() == "processor");
    numbers.filter_map(|(_, number)| number.trim().parse().ok()).collect()
}

fn one_cpu(source: &Source<'_>, cpu: u32) -> CpuFacts {
    let text = |name: &str| source.text(&format!("{CPU}/cpu{cpu}/topology/{name}"));
    CpuFacts {
        cpu,
        // The kernel says -1 where it does not know.
        socket: text("physical_package_id").parse().ok(),
        die: text("die_id").parse().ok(),
        core: text("core_id").parse().ok(),
        siblings: number_list(&text("thread_siblings_list")).unwrap_or_default(),
    }
}

/// Caches of these CPUs, by level and type; none where the kernel does not tell them.
pub fn caches(source: &Source<'_>, cpus: &[CpuFacts]) -> Vec<CacheFacts> {
    let mut found: Vec<CacheFacts> = Vec::new();
    for CpuFacts { cpu, .. } in cpus {
        let folder = format!("{CPU}/cpu{cpu}/cache");
        for index in source.names(&folder) {
            let text = |name: &str| source.text(&format!("{folder}/{index}/{name}"));
            let Ok(level) = text("level").parse() else { continue };
            let (kind, shared) = (text("type"), text("shared_cpu_list"));
            let size_kib = text("size").strip_suffix('K').and_then(|size| size.parse().ok());
            let same =
                |c: &&mut CacheFacts| (c.level, &c.kind, c.size_kib) == (level, &kind, size_kib);
            match found.iter_mut().find(same) {
                Some(known) if known.shared.contains(&shared) => {}
                Some(known) => known.shared.push(shared),
                None => found.push(CacheFacts { level, kind, size_kib, shared: vec![shared] }),
            }
        }
    }
    found
}

/// NUMA nodes; none where the kernel has no support for them.
pub fn nodes(source: &Source<'_>) -> Vec<NodeFacts> {
    numbered(source, NODE, "node").into_iter().map(|node| one_node(source, node)).collect()
}

/// What follows `prefix` in the names of a folder, ascending.
fn numbered(source: &Source<'_>, folder: &str, prefix: &str) -> Vec<u32> {
    let names = source.names(folder);
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

fn one_node(source: &Source<'_>, node: u32) -> NodeFacts {
    let text = |name: &str| source.text(&format!("{NODE}/node{node}/{name}"));
    NodeFacts {
        node,
        cpus: number_list(&text("cpulist")).unwrap_or_default(),
        memory_kib: kib_of(&text("meminfo"), "MemTotal"),
        distances: text("distance")
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect(),
        access: access(source, &format!("{NODE}/node{node}/access0/initiators")),
    }
}

/// What the firmware told about the memory of a node; nothing if it told nothing.
fn access(source: &Source<'_>, folder: &str) -> Option<AccessFacts> {
    // The kernel's 0 means that it does not know.
    let figure = |name: &str| {
        let value = source.text(&format!("{folder}/{name}")).parse().ok();
        value.filter(|value| *value > 0)
    };
    let access = AccessFacts {
        initiators: numbered(source, folder, "node"),
        read_latency: figure("read_latency"),
        write_latency: figure("write_latency"),
        read_bandwidth: figure("read_bandwidth"),
        write_bandwidth: figure("write_bandwidth"),
    };
    (access != AccessFacts::default()).then_some(access)
}

/// The number after `name:` in a table of memory sizes in kB, if it is there.
pub fn kib_of(table: &str, name: &str) -> Option<u64> {
    let key = format!("{name}:");
    let value = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != key).skip(1);
        words.next()?.parse().ok()
    };
    table.lines().find_map(value)
}
