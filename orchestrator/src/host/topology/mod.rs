//! The host's own processors and memory: what shares what, and what this process may use of it. What
//! the host does not tell is absent.

mod list;
mod read;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use list::CpuList;

/// The host's processors and memory, as far as it tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostTopology {
    /// Those that are online, in the order of their numbers.
    pub cpus: Vec<HostCpu>,
    /// Those that are switched off.
    pub offline: CpuList,
    /// Nodes with memory or CPUs; none if the host does not tell of any.
    pub nodes: Vec<HostNode>,
    /// Why it is not all of the host that may be used, in sentences.
    pub limits: Vec<String>,
}

/// A processor that the host's kernel runs tasks on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCpu {
    /// The kernel's number.
    pub id: u32,
    /// The socket it is in, 0 if the host does not tell.
    pub package: u32,
    /// The die within the package.
    pub die: u32,
    /// The lowest CPU of its core: those with the same are SMT siblings.
    pub core: u32,
    /// Of its node.
    pub node: Option<u32>,
    /// The lowest CPU of those that share its largest cache.
    pub cache: Option<u32>,
    /// The kind of core: 0 is the fastest; all are 0 but on hybrid hosts.
    pub class: u32,
    /// This process may run on it.
    pub usable: bool,
    /// Kept free of other tasks (`isolcpus`).
    pub isolated: bool,
    /// Without a tick while one task runs (`nohz_full`).
    pub tickless: bool,
}

/// A part of the host's memory and the CPUs nearest to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostNode {
    /// The kernel's number.
    pub id: u32,
    /// Its memory, in MiB.
    pub memory_mib: Option<u64>,
    /// To each node, in the order of their numbers.
    pub distances: Vec<u32>,
    /// This process may have memory of it.
    pub usable: bool,
}

impl HostTopology {
    /// Those that this process may run on.
    pub fn usable(&self) -> CpuList {
        self.cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id).collect()
    }

    /// All CPUs of the cores that `cpus` are of, siblings that may not be used included.
    pub fn whole_cores(&self, cpus: &CpuList) -> CpuList {
        let cores: Vec<u32> =
            self.cpus.iter().filter(|cpu| cpus.contains(cpu.id)).map(|cpu| cpu.core).collect();
        self.cpus.iter().filter(|cpu| cores.contains(&cpu.core)).map(|cpu| cpu.id).collect()
    }

    /// Whether its cores are of several kinds.
    pub fn is_hybrid(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.class > 0)
    }
}
