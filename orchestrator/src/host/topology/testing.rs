//! Hosts for tests: folders with the files that a host of some shape has.

use std::fs;

use tempfile::TempDir;

use super::{CpuList, HostTopology};

/// A root folder that is filled step by step.
pub struct FakeHost(TempDir);

impl FakeHost {
    /// Without any file.
    pub fn bare() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With these CPUs online, all of which this process may use.
    pub fn online(cpus: &str) -> Self {
        Self::bare().file("sys/devices/system/cpu/online", cpus).allowed(cpus)
    }

    /// What this process's own mask leaves it.
    #[must_use]
    pub fn allowed(self, cpus: &str) -> Self {
        self.file("proc/self/status", &format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n"))
    }

    /// Writes a file.
    #[must_use]
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// A package of cores that share a cache. The siblings of a core are `cores` numbers apart in all
    /// of `of` CPUs, as on most servers: 0 and 16 of 32.
    #[must_use]
    pub fn package(mut self, id: u32, cores: std::ops::Range<u32>, threads: u32, of: u32) -> Self {
        let siblings =
            |core: u32| -> CpuList { (0..threads).map(|t| core + t * of / threads).collect() };
        let all: CpuList =
            cores.clone().flat_map(|core| siblings(core).iter().collect::<Vec<_>>()).collect();
        for core in cores {
            for cpu in siblings(core).iter() {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}");
                self = self
                    .file(&format!("{folder}/topology/physical_package_id"), &id.to_string())
                    .file(
                        &format!("{folder}/topology/thread_siblings_list"),
                        &siblings(core).to_string(),
                    )
                    .file(&format!("{folder}/cache/index2/level"), "2")
                    .file(
                        &format!("{folder}/cache/index2/shared_cpu_list"),
                        &siblings(core).to_string(),
                    )
                    .file(&format!("{folder}/cache/index3/level"), "3")
                    .file(&format!("{folder}/cache/index3/shared_cpu_list"), &all.to_string());
            }
        }
        self
    }

    /// A node.
    #[must_use]
    pub fn node(self, id: u32, cpus: &str, memory_mib: u64, distances: &str) -> Self {
        let folder = format!("sys/devices/system/node/node{id}");
        let total =
            format!("Node {id} MemTotal:       {} kB\nNode {id} MemFree: 1 kB", memory_mib * 1024);
        self.file(&format!("{folder}/cpulist"), cpus)
            .file(&format!("{folder}/meminfo"), &total)
            .file(&format!("{folder}/distance"), distances)
    }

    /// What kduel makes of it.
    pub fn read(&self) -> HostTopology {
        HostTopology::read(self.0.path(), None)
    }

    /// The same where a batch system says that so many CPUs are this process's.
    pub fn read_allotted(&self, cpus: u32) -> HostTopology {
        HostTopology::read(self.0.path(), Some(cpus))
    }
}

/// One node, one package, so many cores of two threads.
pub fn smt(cores: u32) -> FakeHost {
    let last = cores * 2 - 1;
    FakeHost::online(&format!("0-{last}")).package(0, 0..cores, 2, cores * 2).node(
        0,
        &format!("0-{last}"),
        32_768,
        "10",
    )
}

/// Two nodes, a package of twelve cores with two threads each: 48 CPUs.
pub fn two_nodes() -> FakeHost {
    FakeHost::online("0-47")
        .package(0, 0..12, 2, 48)
        .package(1, 12..24, 2, 48)
        .node(0, "0-11,24-35", 65_536, "10 21")
        .node(1, "12-23,36-47", 65_536, "21 10")
}

/// Eight nodes of four cores without siblings, two packages.
pub fn eight_nodes() -> FakeHost {
    let mut host = FakeHost::online("0-31");
    for id in 0..8 {
        let first = id * 4;
        let row: Vec<&str> = (0..8)
            .map(|to| {
                if to == id {
                    "10"
                } else if to / 4 == id / 4 {
                    "16"
                } else {
                    "32"
                }
            })
            .collect();
        host = host.package(id / 4, first..first + 4, 1, 32).node(
            id,
            &format!("{first}-{}", first + 3),
            16_384,
            &row.join(" "),
        );
    }
    host
}

/// A laptop: CPUs 0 to 7 are four fast cores with two threads each, 8 to 15 eight slow ones.
pub fn hybrid() -> FakeHost {
    let mut host = FakeHost::online("0-15").node(0, "0-15", 16_384, "10");
    for cpu in 0..16_u32 {
        let siblings = if cpu < 8 { format!("{}-{}", cpu & !1, cpu | 1) } else { cpu.to_string() };
        let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        host = host.file(&path, &siblings);
    }
    host.file("sys/devices/cpu_core/cpus", "0-7").file("sys/devices/cpu_atom/cpus", "8-15")
}

/// So many CPUs, and nothing said about them.
pub fn plain(cpus: u32) -> FakeHost {
    FakeHost::online(&format!("0-{}", cpus - 1).replace("0-0", "0"))
}
