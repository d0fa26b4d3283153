use kduel_protocol::Topology;

use super::cores::{self, Core};
use crate::host::topology::{CpuList, HostTopology};

/// One way to place guests; the better ones are tried first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// Threads of a guest core are siblings on the host.
    pub siblings: bool,
    /// A guest's node is within one of the host's.
    pub by_node: bool,
    /// QEMU's other threads have a core that no vCPU is on.
    pub own_core: bool,
    /// The kind of cores.
    pub class: u32,
    /// No vCPU is on the core of CPU 0, which the host's own work prefers.
    pub spare_first: bool,
}

impl Attempt {
    pub fn all(cores: &[Core], topology: &Topology) -> Vec<Self> {
        let mut classes: Vec<u32> = cores.iter().map(|core| core.class).collect();
        classes.sort_unstable();
        classes.dedup();
        let both = [true, false];
        let siblings: &[bool] = if topology.threads > 1 { &both } else { &[true] };
        let mut all = Vec::new();
        for &siblings in siblings {
            for (by_node, own_core) in [(true, true), (true, false), (false, true), (false, false)]
            {
                for &class in &classes {
                    all.extend(both.map(|spare_first| Self {
                        siblings,
                        by_node,
                        own_core,
                        class,
                        spare_first,
                    }));
                }
            }
        }
        all
    }
}

/// Where the guests' vCPUs are.
#[derive(Debug)]
pub(super) struct Seats {
    /// A host CPU by guest and vCPU.
    pub vcpus: Vec<Vec<u32>>,
    pub emulator: CpuList,
    /// As in [`super::Placement`].
    pub memory: Vec<Option<u32>>,
}

/// vCPUs that belong together, of all guests, and their memory.
struct Group {
    /// Guest, and vCPUs that are on one core.
    units: Vec<(usize, Vec<u32>)>,
    memory_mib: u64,
}

/// A node's share in the search.
struct Room<'a> {
    node: Option<u32>,
    free: Vec<&'a Core>,
    /// Absent if the host does not tell.
    memory_mib: Option<u64>,
    groups: usize,
}

impl Seats {
    pub fn find(
        host: &HostTopology,
        cores: &[Core],
        topology: &Topology,
        guests: usize,
        attempt: Attempt,
    ) -> Option<Self> {
        let candidates = cores
            .iter()
            .filter(|core| core.class == attempt.class && !(attempt.spare_first && core.first));
        let candidates: Vec<&Core> = candidates.collect();
        let groups = groups(topology, guests, attempt.siblings);
        let mut seats = Self {
            vcpus: vec![vec![u32::MAX; topology.cpus() as usize]; guests],
            emulator: CpuList::default(),
            memory: Vec::new(),
        };
        let rooms = rooms(host, cores, candidates, attempt.by_node);
        let even = groups.len().div_ceil(rooms.len().max(1));
        let placed = [even, groups.len()].into_iter().find_map(|most| {
            let mut rooms = rooms.iter().map(Room::again).collect::<Vec<_>>();
            assign(&groups, &mut rooms, most)
        })?;
        for (group, (_, seated)) in groups.iter().zip(&placed) {
            for ((guest, unit), core) in group.units.iter().zip(seated) {
                for (vcpu, cpu) in unit.iter().zip(&core.cpus) {
                    *seats.vcpus.get_mut(*guest)?.get_mut(*vcpu as usize)? = *cpu;
                }
            }
        }
        let taken: Vec<&Core> = placed.iter().flat_map(|(_, seated)| seated.clone()).collect();
        seats.emulator = emulator(cores, &taken, &seats.vcpus, attempt.own_core)?;
        let several = host.nodes.iter().filter(|node| node.memory_mib != Some(0)).count() > 1;
        if attempt.by_node && several {
            let bound = |(group, (node, _)): (&Group, &(Option<u32>, _))| {
                node.filter(|_| group.memory_mib > 0)
            };
            let nodes = topology.nodes.len().max(1);
            seats.memory = groups.iter().zip(&placed).map(bound).take(nodes).collect();
        }
        Some(seats)
    }
}

/// One per node of the guest and one for vCPUs of none; one for all of a guest without nodes.
fn groups(topology: &Topology, guests: usize, siblings: bool) -> Vec<Group> {
    let group = |cpus: &[u32], memory_mib: u64| {
        let together = |a: &u32, b: &u32| siblings && a / topology.threads == b / topology.threads;
        let units: Vec<Vec<u32>> = cpus.chunk_by(together).map(<[u32]>::to_vec).collect();
        Group {
            units: (0..guests)
                .flat_map(|guest| units.iter().map(move |unit| (guest, unit.clone())))
                .collect(),
            memory_mib: memory_mib * guests as u64,
        }
    };
    let all: Vec<u32> = (0..topology.cpus()).collect();
    if topology.nodes.is_empty() {
        return vec![group(&all, topology.memory_mib)];
    }
    let mut groups: Vec<Group> = topology
        .nodes
        .iter()
        .map(|node| {
            let mut cpus = node.cpus.clone();
            cpus.sort_unstable();
            group(&cpus, node.memory_mib)
        })
        .collect();
    let of_none = |cpu: &u32| !topology.nodes.iter().any(|node| node.cpus.contains(cpu));
    let homeless: Vec<u32> = all.into_iter().filter(of_none).collect();
    if !homeless.is_empty() {
        groups.push(group(&homeless, 0));
    }
    groups
}

fn rooms<'a>(
    host: &HostTopology,
    cores: &[Core],
    candidates: Vec<&'a Core>,
    by_node: bool,
) -> Vec<Room<'a>> {
    if !by_node {
        return vec![Room { node: None, free: candidates, memory_mib: None, groups: 0 }];
    }
    let room = |id: Option<u32>| {
        let node = host.nodes.iter().find(|node| Some(node.id) == id);
        let memory_mib = node.and_then(|node| if node.usable { node.memory_mib } else { Some(0) });
        let free = candidates.iter().copied().filter(|core| core.node == id).collect();
        Room { node: id, free, memory_mib, groups: 0 }
    };
    cores::nodes(cores).into_iter().map(room).collect()
}

impl<'a> Room<'a> {
    fn again(&self) -> Self {
        Self { free: self.free.clone(), ..*self }
    }

    /// Cores for a group, near to one another if there are such.
    fn take(&mut self, group: &Group, most: usize) -> Option<Vec<&'a Core>> {
        let threads = group.units.iter().map(|(_, unit)| unit.len()).max().unwrap_or(0);
        let wide: Vec<&Core> =
            self.free.iter().copied().filter(|core| core.cpus.len() >= threads).collect();
        let needed = group.units.len();
        let memory = self.memory_mib.is_none_or(|left| left >= group.memory_mib);
        if self.groups >= most || !memory || wide.len() < needed {
            return None;
        }
        let near = wide.iter().find_map(|first| {
            let near = wide.iter().copied().filter(|core| core.cache == first.cache);
            let near: Vec<&Core> = near.take(needed).collect();
            (near.len() == needed).then_some(near)
        });
        let taken = near.unwrap_or_else(|| wide.into_iter().take(needed).collect());
        self.free.retain(|core| !taken.iter().any(|taken| taken.cpus == core.cpus));
        self.memory_mib = self.memory_mib.map(|left| left - group.memory_mib);
        self.groups += 1;
        Some(taken)
    }
}

/// A node and cores for each group, at most so many groups to a node.
fn assign<'a>(
    groups: &[Group],
    rooms: &mut [Room<'a>],
    most: usize,
) -> Option<Vec<(Option<u32>, Vec<&'a Core>)>> {
    let place = |group: &Group| {
        rooms.iter_mut().find_map(|room| Some((room.node, room.take(group, most)?)))
    };
    groups.iter().map(place).collect()
}

/// CPUs for QEMU's other threads: a core near the vCPUs, or the siblings that they leave idle.
fn emulator(
    cores: &[Core],
    taken: &[&Core],
    vcpus: &[Vec<u32>],
    own_core: bool,
) -> Option<CpuList> {
    if !own_core {
        let used = |cpu: &u32| vcpus.iter().flatten().any(|used| used == cpu);
        let idle = taken.iter().flat_map(|core| &core.cpus).filter(|cpu| !used(cpu)).copied();
        return Some(idle.collect::<CpuList>()).filter(|idle| !idle.is_empty());
    }
    let is_taken = |core: &&Core| taken.iter().any(|taken| taken.cpus == core.cpus);
    let home = taken.first().and_then(|core| core.node);
    let free = cores.iter().filter(|core| !is_taken(core));
    let best = free.min_by_key(|core| (core.node != home, core.isolated, core.cpus.first()))?;
    Some(best.cpus.iter().copied().collect())
}
