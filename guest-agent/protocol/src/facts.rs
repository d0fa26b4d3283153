use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the agent sees of the guest it runs in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Facts {
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `/proc/cmdline`.
    pub cmdline: String,
    /// GNU build id of the kernel from `/sys/kernel/notes`, lower-case hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// `model name` of the first CPU.
    pub cpu_model: String,
    /// `flags` of the first CPU, sorted.
    pub cpu_flags: Vec<String>,
    /// Online CPUs.
    pub cpus: Vec<CpuFacts>,
    /// NUMA nodes with their memory and distances.
    pub nodes: Vec<NodeFacts>,
    /// `MemTotal`, in KiB.
    pub memory_kib: u64,
    /// The clock source in use.
    pub clocksource: String,
    /// File name to content of `/sys/devices/system/cpu/vulnerabilities`.
    pub vulnerabilities: BTreeMap<String, String>,
    /// SHA-256 of the kernel's config where `/proc/config.gz` can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_sha256: Option<String>,
    /// Bytes of entropy-independent state that sides must share: transparent huge pages, preemption
    /// model, LRU generation, as `name: value`, absent where the kernel does not have it.
    pub settings: BTreeMap<String, String>,
}

/// One online CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuFacts {
    /// The kernel's number.
    pub cpu: u32,
    /// `physical_package_id`.
    pub socket: u32,
    /// `core_id`.
    pub core: u32,
    /// `thread_siblings_list`, expanded.
    pub siblings: Vec<u32>,
}

/// One NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct NodeFacts {
    /// The node's number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Vec<u32>,
    /// Its memory, in KiB.
    pub memory_kib: u64,
    /// Distances to node 0, 1, ….
    pub distances: Vec<u32>,
}

/// A guest's processors and memory: what is asked for, in the document's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Topology {
    /// Packages.
    pub sockets: u32,
    /// Cores per socket.
    pub cores: u32,
    /// Threads per core.
    pub threads: u32,
    /// All memory, in MiB.
    pub memory_mib: u64,
    /// Per node: its CPUs and its memory; empty: one node, not described to the guest.
    pub nodes: Vec<TopologyNode>,
    /// Row i, column j: distance from node i to node j. Empty without nodes.
    pub distances: Vec<Vec<u32>>,
}

/// One NUMA node that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TopologyNode {
    /// CPU numbers; may be empty.
    pub cpus: Vec<u32>,
    /// In MiB; may be 0.
    pub memory_mib: u64,
}

impl Topology {
    /// vCPUs in all.
    pub fn cpus(&self) -> u32 {
        self.sockets * self.cores * self.threads
    }
}
