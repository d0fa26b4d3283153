//! Compares the topology that was asked for with what the guest's kernel sees. Pure.

use kduel_protocol::{Facts, Topology};

use crate::fault::{Failure, FailureClass};

/// A guest's kernel keeps some memory for itself; with less than this share left, memory is missing.
const MEMORY_SHARE: f64 = 0.75;

/// Checks `facts` against `wanted`.
///
/// # Errors
///
/// `TopologyMismatch` with one line per difference: wanted, found.
pub fn check(wanted: &Topology, facts: &Facts) -> Result<(), Failure> {
    let mut differences = Vec::new();
    let mut compare = |what: &str, wanted: String, found: String| {
        if wanted != found {
            differences.push(format!("{what}: wanted {wanted}, found {found}"));
        }
    };
    compare("CPUs", wanted.cpus().to_string(), facts.cpus.len().to_string());
    let sockets = distinct(facts.cpus.iter().map(|cpu| cpu.socket));
    compare("sockets", wanted.sockets.to_string(), sockets.to_string());
    let cores = distinct(facts.cpus.iter().map(|cpu| (cpu.socket, cpu.core)));
    compare("cores", (wanted.sockets * wanted.cores).to_string(), cores.to_string());
    let threads = facts.cpus.iter().map(|cpu| cpu.siblings.len().max(1)).max().unwrap_or(1);
    compare("threads per core", wanted.threads.to_string(), threads.to_string());
    if !wanted.nodes.is_empty() {
        compare("nodes", wanted.nodes.len().to_string(), facts.nodes.len().to_string());
    }
    for (index, (want, found)) in wanted.nodes.iter().zip(&facts.nodes).enumerate() {
        compare(
            &format!("CPUs of node {index}"),
            format!("{:?}", want.cpus),
            format!("{:?}", found.cpus),
        );
        if let Some(row) = wanted.distances.get(index) {
            compare(
                &format!("distances of node {index}"),
                format!("{row:?}"),
                format!("{:?}", found.distances),
            );
        }
        if is_short(want.memory_mib, found.memory_kib) {
            compare(
                &format!("memory of node {index}"),
                format!("{} MiB", want.memory_mib),
                format!("{} MiB", found.memory_kib / 1024),
            );
        }
    }
    if is_short(wanted.memory_mib, facts.memory_kib) {
        compare(
            "memory",
            format!("{} MiB", wanted.memory_mib),
            format!("{} MiB", facts.memory_kib / 1024),
        );
    }
    if differences.is_empty() {
        return Ok(());
    }
    let title = "the guest's kernel does not see what was asked for";
    Err(differences.into_iter().fold(
        Failure::new(FailureClass::TopologyMismatch, title)
            .hint("a kernel built with a smaller NR_CPUS, or without NUMA or ACPI, sees less"),
        Failure::detail,
    ))
}

#[expect(clippy::cast_precision_loss, reason = "a share of memory needs no more than 52 bits")]
fn is_short(wanted_mib: u64, found_kib: u64) -> bool {
    (found_kib as f64) < wanted_mib as f64 * 1024.0 * MEMORY_SHARE - 64.0 * 1024.0
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> usize {
    items.collect::<std::collections::BTreeSet<T>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kduel_protocol::{CpuFacts, NodeFacts, TopologyNode};

    fn wanted() -> Topology {
        Topology {
            sockets: 2,
            cores: 1,
            threads: 1,
            memory_mib: 1024,
            nodes: vec![
                TopologyNode { cpus: vec![0], memory_mib: 512 },
                TopologyNode { cpus: vec![1], memory_mib: 512 },
            ],
            distances: vec![vec![10, 21], vec![21, 10]],
        }
    }

    fn found() -> Facts {
        let cpu = |cpu| CpuFacts { cpu, socket: cpu, core: 0, siblings: vec![cpu] };
        let node = |node: u32, distances: [u32; 2]| NodeFacts {
            node,
            cpus: vec![node],
            memory_kib: 480 * 1024,
            distances: distances.to_vec(),
        };
        Facts {
            cpus: vec![cpu(0), cpu(1)],
            nodes: vec![node(0, [10, 21]), node(1, [21, 10])],
            memory_kib: 970 * 1024,
            ..Facts::default()
        }
    }

    #[test]
    fn the_same_topology_passes() {
        assert_eq!(check(&wanted(), &found()), Ok(()));
    }

    #[test]
    fn every_difference_is_named() {
        let mut facts = found();
        facts.nodes[1].distances = vec![20, 10];
        facts.nodes[0].cpus = vec![0, 1];
        facts.cpus.pop();
        facts.memory_kib = 100 * 1024;
        let failure = check(&wanted(), &facts).unwrap_err();
        assert_eq!(failure.class, FailureClass::TopologyMismatch);
        assert_eq!(
            failure.details,
            [
                "CPUs: wanted 2, found 1",
                "sockets: wanted 2, found 1",
                "cores: wanted 2, found 1",
                "CPUs of node 0: wanted [0], found [0, 1]",
                "distances of node 1: wanted [21, 10], found [20, 10]",
                "memory: wanted 1024 MiB, found 100 MiB",
            ]
        );
    }
}
