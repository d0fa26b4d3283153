//! Presets and inline shapes of guests.

use kduel_protocol::{Topology, TopologyNode};

/// The topology if none is named.
pub const DEFAULT_TOPOLOGY: &str = "1s1c";

/// Topologies with a name of their own, and what they are.
pub const PRESETS: &[(&str, &str)] = &[
    ("1s1c", "1 CPU, 512 MiB"),
    ("2s4c", "2 sockets x 4 cores, 2 nodes x 1 GiB, distance 21"),
    ("1s4c2t", "4 cores x 2 threads, 1 GiB"),
    ("8n", "8 sockets x 1 core, 8 nodes x 256 MiB, distances 16 and 22"),
    ("numa-q-16", "4 sockets x 4 cores, 4 nodes x 512 MiB, distance 20"),
];

/// The most vCPUs of a guest.
pub const MAX_CPUS: u32 = 255;

/// The distance of a node to itself.
pub const LOCAL_DISTANCE: u32 = 10;

/// The distance between nodes if none is written.
pub const REMOTE_DISTANCE: u32 = 20;

/// The topology that a name means: a preset, or an inline one such as `2s2c` or `1s4c2t`. Inline ones
/// have a node per socket if there are several, 512 MiB for each, 1 GiB for a socket of four and more CPUs.
pub fn named(name: &str) -> Option<Topology> {
    match name {
        "1s1c" => Some(uniform(1, 1, 1, 512, &|_, _| REMOTE_DISTANCE)),
        "2s4c" => Some(uniform(2, 4, 1, 1024, &|_, _| 21)),
        "1s4c2t" => Some(uniform(1, 4, 2, 1024, &|_, _| REMOTE_DISTANCE)),
        "8n" => Some(uniform(8, 1, 1, 256, &|i, j| if i / 4 == j / 4 { 16 } else { 22 })),
        "numa-q-16" => Some(uniform(4, 4, 1, 512, &|_, _| 20)),
        _ => {
            let (sockets, cores, threads) = inline(name)?;
            let memory = if cores * threads >= 4 { 1024 } else { 512 };
            Some(uniform(sockets, cores, threads, memory, &|_, _| REMOTE_DISTANCE))
        }
    }
}

/// `2s4c`, `1s4c2t`: sockets, cores per socket, threads per core.
fn inline(name: &str) -> Option<(u32, u32, u32)> {
    let (sockets, rest) = name.split_once('s')?;
    let (cores, rest) = rest.split_once('c')?;
    let threads = if rest.is_empty() { "1" } else { rest.strip_suffix('t')? };
    let number = |digits: &str| digits.parse::<u32>().ok().filter(|n| (1..=MAX_CPUS).contains(n));
    let shape = (number(sockets)?, number(cores)?, number(threads)?);
    (shape.0.checked_mul(shape.1)?.checked_mul(shape.2)? <= MAX_CPUS).then_some(shape)
}

/// A guest with one node per socket, or none if there is one socket. `memory_mib` is per socket.
pub fn uniform(
    sockets: u32,
    cores: u32,
    threads: u32,
    memory_mib: u64,
    distance: &dyn Fn(u32, u32) -> u32,
) -> Topology {
    let per_socket = cores * threads;
    let node = |i: u32| TopologyNode {
        cpus: (i * per_socket..(i + 1) * per_socket).collect(),
        memory_mib,
    };
    let nodes: Vec<TopologyNode> =
        if sockets > 1 { (0..sockets).map(node).collect() } else { Vec::new() };
    let n = u32::try_from(nodes.len()).unwrap_or(0);
    Topology {
        sockets,
        cores,
        threads,
        memory_mib: memory_mib * u64::from(sockets),
        distances: distances(n, distance),
        nodes,
        ..Topology::default()
    }
}

/// Every pair of distances of `n` nodes, as QEMU wants them.
pub fn distances(n: u32, distance: &dyn Fn(u32, u32) -> u32) -> Vec<Vec<u32>> {
    let row = |i| (0..n).map(|j| if i == j { LOCAL_DISTANCE } else { distance(i, j) }).collect();
    (0..n).map(row).collect()
}

/// The distance between two of `n` nodes in a ring: ten more for every hop.
pub fn ring(n: u32, i: u32, j: u32) -> u32 {
    let apart = i.abs_diff(j);
    LOCAL_DISTANCE + 10 * apart.min(n - apart)
}

/// The same topology with other memory, shared evenly between the nodes that have any.
pub fn with_memory(mut topology: Topology, memory_mib: u64) -> Topology {
    topology.memory_mib = memory_mib;
    let holders = topology.nodes.iter().filter(|node| node.memory_mib > 0).count() as u64;
    if let Some(share) = memory_mib.checked_div(holders) {
        let mut left = memory_mib % holders;
        for node in topology.nodes.iter_mut().filter(|node| node.memory_mib > 0) {
            node.memory_mib = share + std::mem::take(&mut left);
        }
    }
    topology
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_what_they_say() {
        for (name, _) in PRESETS {
            let topology = named(name).unwrap();
            let cpus: Vec<u32> = topology.nodes.iter().flat_map(|node| node.cpus.clone()).collect();
            if !topology.nodes.is_empty() {
                assert_eq!(cpus, (0..topology.cpus()).collect::<Vec<_>>(), "{name}");
                let sum: u64 = topology.nodes.iter().map(|node| node.memory_mib).sum();
                assert_eq!(sum, topology.memory_mib, "{name}");
            }
        }
        let eight = named("8n").unwrap();
        assert_eq!(eight.distances[0], [10, 16, 16, 16, 22, 22, 22, 22]);
        assert_eq!(named("2s4c").unwrap().distances, [[10, 21], [21, 10]]);
    }

    #[test]
    fn reads_inline_shapes() {
        let wide = named("1s2c").unwrap();
        assert_eq!((wide.cpus(), wide.memory_mib, wide.nodes.len()), (2, 512, 0));
        assert_eq!(named("2s2c2t").unwrap().cpus(), 8);
        for bad in ["", "0s1c", "1c", "1s", "1s1c1", "s1c", "300s1c", "16s16c", "1s1ct", "-1s1c"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_ring_closes() {
        assert_eq!(distances(4, &|i, j| ring(4, i, j))[0], [10, 20, 30, 20]);
    }

    #[test]
    fn memory_is_shared_to_the_last_mebibyte() {
        let topology = with_memory(named("8n").unwrap(), 1001);
        assert_eq!(topology.nodes.iter().map(|node| node.memory_mib).sum::<u64>(), 1001);
    }
}
