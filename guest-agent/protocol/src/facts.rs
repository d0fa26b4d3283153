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
    /// CPUs that the kernel has room for, as it writes lists: `0-3,8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub possible_cpus: Option<String>,
    /// CPUs that are there, as a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub present_cpus: Option<String>,
    /// Caches of the online CPUs, by level and type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheFacts>,
    /// The scheduler's domains of the online CPUs, by level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<DomainFacts>,
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

/// One online CPU. What the kernel does not tell is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CpuFacts {
    /// The kernel's number.
    pub cpu: u32,
    /// `physical_package_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket: Option<u32>,
    /// `die_id`; of one socket or of all, which kernels differ in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub die: Option<u32>,
    /// `core_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core: Option<u32>,
    /// `thread_siblings_list`, expanded.
    pub siblings: Vec<u32>,
}

/// All caches of one level and type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CacheFacts {
    /// 1 is nearest to the CPU.
    pub level: u32,
    /// `Data`, `Instruction` or `Unified`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Of each, in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_kib: Option<u64>,
    /// The CPUs of each, as lists.
    pub shared: Vec<String>,
}

/// All scheduler domains of one level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct DomainFacts {
    /// 0 is the smallest.
    pub level: u32,
    /// `SMT`, `MC`, `NUMA`, where the kernel tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The CPUs of each, as lists.
    pub spans: Vec<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_kib: Option<u64>,
    /// Distances to node 0, 1, ….
    pub distances: Vec<u32>,
    /// How its memory is reached from the nearest CPUs, where the firmware told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<AccessFacts>,
}

/// What the kernel took from the firmware's table of memory attributes (HMAT) for one node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct AccessFacts {
    /// Nodes whose CPUs these figures are for.
    pub initiators: Vec<u32>,
    /// In ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_latency: Option<u32>,
    /// In ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_latency: Option<u32>,
    /// In MiB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_bandwidth: Option<u32>,
    /// In MiB/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_bandwidth: Option<u32>,
}
