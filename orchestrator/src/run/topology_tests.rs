use kduel_protocol::{AccessFacts, Cache, CacheFacts, CpuFacts, TopologyNode};

use super::*;

/// Two sockets of two dies of one core of two threads, one CPU missing; the second node has no memory,
/// the third no CPUs.
fn wanted() -> Topology {
    let node =
        |cpus: std::ops::Range<u32>, memory_mib| TopologyNode { cpus: cpus.collect(), memory_mib };
    Topology {
        sockets: 2,
        dies: 2,
        threads: 2,
        present: Some(7),
        caches: vec![SharedCache { cache: Cache::L3, by: Group::Die }],
        memory_mib: 768,
        nodes: vec![node(0..4, 512), node(4..8, 0), node(0..0, 256)],
        distances: vec![vec![10, 21, 31], vec![21, 10, 41], vec![31, 41, 10]],
        latencies: vec![vec![100, 400], vec![250, 300]],
        bandwidths: vec![vec![20480, 5120], vec![10240, 6144]],
        ..Topology::default()
    }
}

fn found() -> Facts {
    let cpu = |cpu: u32| CpuFacts {
        cpu,
        socket: Some(cpu / 4),
        die: Some(cpu / 2),
        core: Some(cpu / 2 % 2),
        siblings: if cpu < 6 { vec![cpu & !1, cpu | 1] } else { vec![6] },
    };
    let node = |node: usize, cpus: &[u32], kib, access| NodeFacts {
        node: u32::try_from(node).unwrap(),
        cpus: cpus.to_vec(),
        memory_kib: Some(kib),
        distances: wanted().distances[node].clone(),
        access,
    };
    let access = |initiator, latency, bandwidth| {
        Some(AccessFacts {
            initiators: vec![initiator],
            read_latency: Some(latency),
            write_latency: Some(latency),
            read_bandwidth: Some(bandwidth),
            write_bandwidth: Some(bandwidth),
        })
    };
    Facts {
        cpus: (0..7).map(cpu).collect(),
        present_cpus: Some("0-6".into()),
        possible_cpus: Some("0-7".into()),
        caches: vec![CacheFacts {
            level: 3,
            kind: "Unified".into(),
            size_kib: Some(16384),
            shared: ["0-1", "2-3", "4-5", "6"].map(str::to_owned).to_vec(),
        }],
        nodes: vec![
            node(0, &[0, 1, 2, 3], 480 << 10, access(0, 100, 20480)),
            node(1, &[4, 5, 6], 0, None),
            node(2, &[], 250 << 10, access(1, 300, 6144)),
        ],
        memory_kib: 730 << 10,
        ..Facts::default()
    }
}

#[test]
fn the_same_topology_passes() {
    assert_eq!(check(&wanted(), &found()), Ok(()));
    assert_eq!(untold(&wanted(), &found()), Vec::<String>::new());
}

#[test]
fn every_difference_is_named() {
    let mut facts = found();
    facts.nodes[1].distances = vec![20, 10, 41];
    facts.nodes[1].memory_kib = Some(1);
    facts.nodes[0].cpus = vec![0, 1];
    facts.nodes[2].access.as_mut().unwrap().read_latency = None;
    facts.nodes[2].access.as_mut().unwrap().initiators = vec![0, 1];
    facts.cpus.pop();
    facts.cpus[0].siblings = vec![0];
    facts.possible_cpus = Some("0-63".into());
    facts.caches[0].shared = vec!["0-6".into()];
    facts.memory_kib = 100 * 1024;
    let failure = check(&wanted(), &facts).unwrap_err();
    assert_eq!(failure.class, FailureClass::TopologyMismatch);
    insta::assert_snapshot!(failure.details.join("\n"));
}

#[test]
fn what_the_kernel_does_not_tell_is_said_and_not_compared() {
    let mut facts = found();
    facts.present_cpus = None;
    facts.possible_cpus = Some("0-6".into());
    facts.caches.clear();
    for cpu in &mut facts.cpus {
        (cpu.socket, cpu.die, cpu.core) = (None, None, None);
        cpu.siblings.clear();
    }
    for node in &mut facts.nodes {
        (node.access, node.memory_kib) = (None, None);
    }
    assert_eq!(check(&wanted(), &facts), Ok(()));
    assert_eq!(
        untold(&wanted(), &facts),
        [
            "sockets",
            "dies",
            "threads of a core",
            "caches",
            "latencies and bandwidths",
            "room for further CPUs (it keeps room for 7, not 8)",
        ]
    );
    assert_eq!(untold(&Topology::default(), &facts), Vec::<String>::new());
}

#[test]
fn a_guest_without_nodes_has_one_or_none() {
    let mut facts = Facts { cpus: vec![CpuFacts::default()], ..Facts::default() };
    facts.memory_kib = 480 << 10;
    assert_eq!(check(&Topology::default(), &facts), Ok(()));
    facts.nodes = vec![NodeFacts::default(), NodeFacts { node: 1, ..NodeFacts::default() }];
    let failure = check(&Topology::default(), &facts).unwrap_err();
    assert_eq!(failure.details.len(), 2, "{failure}");
}
