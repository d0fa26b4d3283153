use serde::{Deserialize, Serialize};

/// A guest's processors and memory: what is asked for, in the document's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Topology {
    /// Packages.
    pub sockets: u32,
    /// Dies per socket.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub dies: u32,
    /// Cores per die.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
    /// CPUs that are there, the first ones; absent: all there is room for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub present: Option<u32>,
    /// Caches whose sharing is asked for, in the order of [`Cache`]; the others are as QEMU makes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<SharedCache>,
    /// All memory, in MiB.
    pub memory_mib: u64,
    /// Per node: its CPUs and its memory; empty: one node, not described to the guest.
    pub nodes: Vec<TopologyNode>,
    /// Row i, column j: distance from node i to node j. Empty without nodes.
    pub distances: Vec<Vec<u32>>,
    /// A row for each node with CPUs, a column for each with memory: ns of an access. May be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<Vec<u32>>,
    /// In the same way: MiB/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bandwidths: Vec<Vec<u32>>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_one(n: &u32) -> bool {
    *n == 1
}

/// One NUMA node that is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TopologyNode {
    /// CPU numbers, also of those that are not present; may be empty.
    pub cpus: Vec<u32>,
    /// In MiB; may be 0.
    pub memory_mib: u64,
}

/// A cache of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// First level, data.
    L1d,
    /// First level, instructions.
    L1i,
    /// Second level.
    L2,
    /// Third level.
    L3,
}

/// CPUs that belong together, from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Threads of one core.
    Core,
    /// Those of one die.
    Die,
    /// Those of one socket.
    Socket,
}

/// Which CPUs share a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SharedCache {
    /// The cache.
    pub cache: Cache,
    /// By whom each is shared.
    pub by: Group,
}

impl Cache {
    /// All, the nearest to the CPU first.
    pub const ALL: [Self; 4] = [Self::L1d, Self::L1i, Self::L2, Self::L3];

    /// As documents, and QEMU, name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::L1d => "l1d",
            Self::L1i => "l1i",
            Self::L2 => "l2",
            Self::L3 => "l3",
        }
    }

    /// The kernel's level and type of it.
    pub fn kernel_name(self) -> (u32, &'static str) {
        match self {
            Self::L1d => (1, "Data"),
            Self::L1i => (1, "Instruction"),
            Self::L2 => (2, "Unified"),
            Self::L3 => (3, "Unified"),
        }
    }
}

impl Group {
    /// All, the smallest first.
    pub const ALL: [Self; 3] = [Self::Core, Self::Die, Self::Socket];

    /// As documents, and QEMU, name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Die => "die",
            Self::Socket => "socket",
        }
    }
}

/// One CPU, no node.
impl Default for Topology {
    fn default() -> Self {
        Self {
            sockets: 1,
            dies: 1,
            cores: 1,
            threads: 1,
            present: None,
            caches: Vec::new(),
            memory_mib: 512,
            nodes: Vec::new(),
            distances: Vec::new(),
            latencies: Vec::new(),
            bandwidths: Vec::new(),
        }
    }
}

impl Topology {
    /// vCPUs that are there.
    pub fn cpus(&self) -> u32 {
        self.present.unwrap_or_else(|| self.possible_cpus())
    }

    /// vCPUs that there is room for.
    pub fn possible_cpus(&self) -> u32 {
        self.sockets * self.group_size(Group::Socket)
    }

    /// vCPUs of a full group.
    pub fn group_size(&self, group: Group) -> u32 {
        match group {
            Group::Core => self.threads,
            Group::Die => self.threads * self.cores,
            Group::Socket => self.threads * self.cores * self.dies,
        }
    }

    /// The vCPUs that are there, by group. CPUs are numbered through cores, dies and sockets.
    pub fn groups(&self, group: Group) -> Vec<Vec<u32>> {
        let all: Vec<u32> = (0..self.cpus()).collect();
        all.chunks(self.group_size(group).max(1) as usize).map(<[u32]>::to_vec).collect()
    }

    /// Of a node's CPUs those that are there.
    pub fn present_in(&self, node: &TopologyNode) -> Vec<u32> {
        node.cpus.iter().copied().filter(|cpu| *cpu < self.cpus()).collect()
    }

    /// Whether memory attributes (HMAT) are described to the guest.
    pub fn has_attributes(&self) -> bool {
        !self.latencies.is_empty() || !self.bandwidths.is_empty()
    }

    /// Nodes with CPUs: the rows of latencies and bandwidths.
    pub fn initiators(&self) -> Vec<usize> {
        self.numbers_of(|node| !node.cpus.is_empty())
    }

    /// Nodes with memory: the columns of latencies and bandwidths.
    pub fn targets(&self) -> Vec<usize> {
        self.numbers_of(|node| node.memory_mib > 0)
    }

    fn numbers_of(&self, is: impl Fn(&TopologyNode) -> bool) -> Vec<usize> {
        self.nodes.iter().enumerate().filter(|(_, node)| is(node)).map(|(id, _)| id).collect()
    }

    /// The node from which the memory of `target` is reached best: itself if it has CPUs, else the one
    /// of least latency, then of most bandwidth, then the nearest, then the first.
    pub fn best_initiator(&self, target: usize) -> Option<usize> {
        let from = |id: usize| {
            let far = self.distances.get(id).and_then(|row| row.get(target)).copied();
            let latency = self.latency(id, target).unwrap_or(u32::MAX);
            let bandwidth = u32::MAX - self.bandwidth(id, target).unwrap_or(0);
            (id != target, latency, bandwidth, far, id)
        };
        self.initiators().into_iter().min_by_key(|id| from(*id))
    }

    /// ns from the CPUs of one node to the memory of another, if given.
    pub fn latency(&self, initiator: usize, target: usize) -> Option<u32> {
        self.attribute(&self.latencies, initiator, target)
    }

    /// MiB/s from the CPUs of one node to the memory of another, if given.
    pub fn bandwidth(&self, initiator: usize, target: usize) -> Option<u32> {
        self.attribute(&self.bandwidths, initiator, target)
    }

    fn attribute(&self, of: &[Vec<u32>], initiator: usize, target: usize) -> Option<u32> {
        let row = self.initiators().iter().position(|id| *id == initiator)?;
        let column = self.targets().iter().position(|id| *id == target)?;
        of.get(row)?.get(column).copied()
    }
}

/// Ascending numbers as the kernel writes them: `0-3,8`.
pub fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let shown: Vec<String> = runs
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            run => run.iter().map(u32::to_string).collect(),
        })
        .collect();
    shown.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_before_dies_are_read_and_written_as_they_were() {
        let stored = r#"{"sockets":2,"cores":1,"threads":1,"memory-mib":1024,"nodes":[{"cpus":[0],"memory-mib":512},{"cpus":[1],"memory-mib":512}],"distances":[[10,20],[20,10]]}"#;
        let topology: Topology = serde_json::from_str(stored).unwrap();
        assert_eq!((topology.dies, topology.cpus(), topology.present), (1, 2, None));
        assert_eq!(serde_json::to_string(&topology).unwrap(), stored);
    }

    #[test]
    fn cpus_are_numbered_through_cores_dies_and_sockets() {
        let topology =
            Topology { sockets: 2, dies: 2, threads: 2, present: Some(7), ..Topology::default() };
        assert_eq!((topology.possible_cpus(), topology.cpus()), (8, 7));
        assert_eq!(topology.groups(Group::Core), [vec![0, 1], vec![2, 3], vec![4, 5], vec![6]]);
        assert_eq!(topology.groups(Group::Die), topology.groups(Group::Core));
        assert_eq!(topology.groups(Group::Socket), [vec![0, 1, 2, 3], vec![4, 5, 6]]);
    }

    #[test]
    fn memory_without_cpus_is_reached_from_where_it_is_fastest() {
        let node = |cpus: &[u32], memory_mib| TopologyNode { cpus: cpus.to_vec(), memory_mib };
        let mut topology = Topology {
            sockets: 2,
            nodes: vec![node(&[0], 256), node(&[1], 0), node(&[], 256)],
            distances: vec![vec![10, 20, 20], vec![20, 10, 20], vec![20, 20, 10]],
            latencies: vec![vec![100, 400], vec![250, 300]],
            ..Topology::default()
        };
        assert_eq!((topology.initiators(), topology.targets()), (vec![0, 1], vec![0, 2]));
        assert_eq!((topology.latency(1, 2), topology.latency(1, 1)), (Some(300), None));
        assert_eq!((topology.best_initiator(0), topology.best_initiator(2)), (Some(0), Some(1)));
        topology.latencies.clear();
        assert_eq!(topology.best_initiator(2), Some(0));
    }

    #[test]
    fn numbers_are_written_as_the_kernel_does() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8, 10, 11]), "0-3,8,10-11");
        assert_eq!(ranges(&[]), "");
    }
}
