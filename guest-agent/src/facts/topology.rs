//! CPUs, NUMA nodes and their memory.

use kduel_protocol::{CpuFacts, NodeFacts};

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
        socket: text("physical_package_id").parse().unwrap_or(0),
        core: text("core_id").parse().unwrap_or(0),
        siblings: number_list(&text("thread_siblings_list")).unwrap_or_default(),
    }
}

/// NUMA nodes; none where the kernel has no support for them.
pub fn nodes(source: &Source<'_>) -> Vec<NodeFacts> {
    let names = source.names(NODE);
    let mut numbers: Vec<u32> =
        names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|node| one_node(source, node)).collect()
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
    }
}

/// The number after `name:` in a table of memory sizes in kB; 0 if it is not there.
pub fn kib_of(table: &str, name: &str) -> u64 {
    let key = format!("{name}:");
    let value = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != key).skip(1);
        words.next()?.parse().ok()
    };
    table.lines().find_map(value).unwrap_or(0)
}
