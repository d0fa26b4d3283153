//! QEMU's words for a topology. Pure.

use kduel_protocol::{Topology, TopologyNode};

/// The vendor whose processors QEMU's translator gives a leaf that tells threads, dies and caches. It
/// has none of AMD's, and AMD models are what it emulates where nobody says another. Kernels take such
/// a processor to be open to Meltdown, and isolate page tables.
const INTEL: &str = ",vendor=GenuineIntel";

/// What the names of AMD's models, and of QEMU's own, begin with.
const NOT_INTEL: [&str; 8] =
    ["EPYC", "Opteron", "phenom", "athlon", "Dhyana", "qemu64", "qemu32", "max"];

/// What is put behind the name of the CPU model `model` under emulation, so that the guest's kernel
/// sees threads, dies and shared caches.
pub(super) fn emulated_vendor(topology: &Topology, model: &str) -> &'static str {
    let is_told = topology.threads > 1 || topology.dies > 1 || !topology.caches.is_empty();
    let is_other = NOT_INTEL.iter().any(|prefix| model.starts_with(prefix));
    if is_told && is_other { INTEL } else { "" }
}

/// What is put behind the machine's name.
pub(super) fn machine(topology: &Topology) -> String {
    let mut words = String::new();
    if topology.has_attributes() {
        words.push_str(",hmat=on");
    }
    for (index, shared) in topology.caches.iter().enumerate() {
        let (cache, group) = (shared.cache.name(), shared.by.name());
        let property = format!("smp-cache.{index}");
        words.push_str(&format!(",{property}.cache={cache},{property}.topology={group}"));
    }
    words
}

/// Names of options without their dash, and their values.
pub(super) fn options(topology: &Topology) -> Vec<(&'static str, String)> {
    let mut options =
        vec![("smp", processors(topology)), ("m", format!("{}M", topology.memory_mib))];
    for (id, node) in topology.nodes.iter().enumerate() {
        options.extend(memory(topology, id, node));
        options.extend(node.cpus.iter().map(|cpu| ("numa", assigned(topology, id, *cpu))));
    }
    for (from, row) in topology.distances.iter().enumerate() {
        for (to, distance) in row.iter().enumerate() {
            options.push(("numa", format!("dist,src={from},dst={to},val={distance}")));
        }
    }
    options.extend(attributes(topology).into_iter().map(|value| ("numa", value)));
    options
}

fn processors(topology: &Topology) -> String {
    let Topology { sockets, dies, cores, threads, .. } = topology;
    let (cpus, possible) = (topology.cpus(), topology.possible_cpus());
    let room = if cpus == possible { String::new() } else { format!(",maxcpus={possible}") };
    let dies = if *dies == 1 { String::new() } else { format!(",dies={dies}") };
    format!("{cpus}{room},sockets={sockets}{dies},cores={cores},threads={threads}")
}

/// The node, behind the memory that it has.
fn memory(topology: &Topology, id: usize, node: &TopologyNode) -> Vec<(&'static str, String)> {
    let mut numa = format!("node,nodeid={id}");
    if node.memory_mib == 0 {
        return vec![("numa", numa)];
    }
    numa.push_str(&format!(",memdev=ram{id}"));
    if topology.has_attributes()
        && let Some(initiator) = topology.best_initiator(id)
    {
        numa.push_str(&format!(",initiator={initiator}"));
    }
    let backend = format!("memory-backend-ram,id=ram{id},size={}M", node.memory_mib);
    vec![("object", backend), ("numa", numa)]
}

fn assigned(topology: &Topology, node: usize, cpu: u32) -> String {
    let Topology { dies, cores, threads, .. } = topology;
    let (core, thread) = (cpu / threads % cores, cpu % threads);
    let (die, socket) = (cpu / (cores * threads) % dies, cpu / (cores * threads) / dies);
    let die = if *dies == 1 { String::new() } else { format!(",die-id={die}") };
    format!("cpu,node-id={node},socket-id={socket}{die},core-id={core},thread-id={thread}")
}

/// Latencies in ns, bandwidths in MiB/s.
fn attributes(topology: &Topology) -> Vec<String> {
    let mut values = Vec::new();
    for initiator in topology.initiators() {
        for target in topology.targets() {
            let about = format!("hmat-lb,initiator={initiator},target={target},hierarchy=memory");
            if let Some(ns) = topology.latency(initiator, target) {
                values.push(format!("{about},data-type=access-latency,latency={ns}"));
            }
            if let Some(mib) = topology.bandwidth(initiator, target) {
                values.push(format!("{about},data-type=access-bandwidth,bandwidth={mib}M"));
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use kduel_protocol::{Cache, Group, SharedCache};

    use super::*;

    fn shown(topology: &Topology) -> String {
        let options = options(topology).into_iter();
        let lines: Vec<String> = options.map(|(name, value)| format!("-{name} {value}")).collect();
        format!("-machine q35{}\n{}", machine(topology), lines.join("\n"))
    }

    #[test]
    fn everything_that_a_topology_can_say() {
        let node = |cpus: std::ops::Range<u32>, memory_mib| TopologyNode {
            cpus: cpus.collect(),
            memory_mib,
        };
        let topology = Topology {
            sockets: 2,
            dies: 2,
            threads: 2,
            present: Some(6),
            caches: vec![
                SharedCache { cache: Cache::L2, by: Group::Core },
                SharedCache { cache: Cache::L3, by: Group::Socket },
            ],
            memory_mib: 768,
            nodes: vec![node(0..4, 512), node(4..8, 0), node(0..0, 256)],
            distances: vec![vec![10, 21, 31], vec![21, 10, 41], vec![31, 41, 10]],
            latencies: vec![vec![100, 400], vec![250, 300]],
            bandwidths: vec![vec![20480, 5120], vec![10240, 6144]],
            ..Topology::default()
        };
        insta::assert_snapshot!(shown(&topology));
        assert_eq!(emulated_vendor(&topology, "max"), ",vendor=GenuineIntel");
        assert_eq!(emulated_vendor(&topology, "Westmere-v1"), "");
    }

    #[test]
    fn what_is_not_said_is_not_passed_on() {
        let topology = Topology::default();
        insta::assert_snapshot!(shown(&topology), @r"
        -machine q35
        -smp 1,sockets=1,cores=1,threads=1
        -m 512M
        ");
        assert_eq!(emulated_vendor(&topology, "max"), "");
    }
}
