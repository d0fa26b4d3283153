use std::collections::BTreeMap;

use crate::host::topology::HostTopology;

/// A core of the host, with what may be used of it.
#[derive(Debug, Clone)]
pub(super) struct Core {
    /// Its siblings that may be used, at least one.
    pub cpus: Vec<u32>,
    pub node: Option<u32>,
    pub cache: Option<u32>,
    pub class: u32,
    pub isolated: bool,
    /// CPU 0 is of it.
    pub first: bool,
}

/// The usable cores: those kept free of other tasks first, then by number.
pub(super) fn of(host: &HostTopology) -> Vec<Core> {
    let mut cores: BTreeMap<u32, Core> = BTreeMap::new();
    for cpu in host.cpus.iter().filter(|cpu| cpu.usable) {
        let core = cores.entry(cpu.core).or_insert_with(|| Core {
            cpus: Vec::new(),
            node: cpu.node,
            cache: cpu.cache,
            class: cpu.class,
            isolated: true,
            first: cpu.core == 0,
        });
        core.cpus.push(cpu.id);
        core.isolated &= cpu.isolated;
    }
    let mut cores: Vec<Core> = cores.into_values().collect();
    cores.sort_by_key(|core| !core.isolated);
    cores
}

/// The nodes that cores are in, in the order of their numbers.
pub(super) fn nodes(cores: &[Core]) -> Vec<Option<u32>> {
    let mut nodes: Vec<Option<u32>> = cores.iter().map(|core| core.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
