//! On which of the host's CPUs and memory a guest runs.

mod cores;
mod picture;
mod seats;
#[cfg(test)]
mod tests;

pub use picture::picture;

use std::fmt;

use kduel_protocol::Topology;
use serde::{Deserialize, Serialize};

use crate::host::topology::{CpuList, HostTopology};
use crate::text::count;
use cores::Core;
use seats::{Attempt, Seats};

/// Where the threads and the memory of one guest are bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Placement {
    /// For each vCPU the host CPUs that its thread may run on: one, unless they are overcommitted.
    pub vcpus: Vec<CpuList>,
    /// For all other threads of QEMU.
    pub emulator: CpuList,
    /// For each of the guest's nodes the host node that its memory is bound to; one for all memory of
    /// a guest without nodes. Empty on hosts without several nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Option<u32>>,
    /// Threads share CPUs, for which every number is marked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overcommitted: bool,
    /// The CPUs that no other measuring run may use meanwhile: whole cores.
    pub held: CpuList,
    /// Where the guest's shape is not the host's, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The host has too few CPUs for guests of this shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRoom {
    cores: usize,
    usable: CpuList,
    usable_cores: usize,
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = count(self.cores, "core");
        let found = count(self.usable_cores, "core");
        write!(
            f,
            "{wanted} for vCPUs and one for the rest of QEMU are needed, but the CPUs that may \
                   be used ({}) are {found}",
            self.usable
        )
    }
}

impl std::error::Error for NoRoom {}

/// Places so many guests of one shape that run at the same time: no two of them share a core. Each
/// vCPU gets a core of its own, threads of one guest core the siblings of one host core, all cores are
/// of one kind, the core of CPU 0 is spared where it can be. With `overcommit`, threads share CPUs
/// where there are too few.
///
/// # Errors
///
/// There are too few, and `overcommit` is not allowed.
pub fn place(
    host: &HostTopology,
    topology: &Topology,
    guests: usize,
    overcommit: bool,
) -> Result<Vec<Placement>, NoRoom> {
    let cores = cores::of(host);
    for attempt in Attempt::all(&cores, topology) {
        if let Some(seats) = Seats::find(host, &cores, topology, guests, attempt) {
            return Ok(placements(host, &cores, topology, &seats, attempt));
        }
    }
    let usable = host.usable();
    if overcommit && !usable.is_empty() {
        return Ok(shared(host, &cores, topology, guests));
    }
    let wanted = (topology.cpus() / topology.threads.max(1)) as usize * guests;
    Err(NoRoom { cores: wanted, usable, usable_cores: cores.len() })
}

fn placements(
    host: &HostTopology,
    cores: &[Core],
    topology: &Topology,
    seats: &Seats,
    attempt: Attempt,
) -> Vec<Placement> {
    let notes = notes(host, cores, topology, attempt);
    let one = |vcpus: &Vec<u32>| {
        let vcpus: Vec<CpuList> = vcpus.iter().map(|cpu| [*cpu].into_iter().collect()).collect();
        let used = vcpus.iter().chain([&seats.emulator]).flat_map(CpuList::iter).collect();
        Placement {
            vcpus,
            emulator: seats.emulator.clone(),
            memory: seats.memory.clone(),
            overcommitted: false,
            held: host.whole_cores(&used),
            notes: notes.clone(),
        }
    };
    seats.vcpus.iter().map(one).collect()
}

/// What of the guest's shape is not the host's.
fn notes(
    host: &HostTopology,
    cores: &[Core],
    topology: &Topology,
    attempt: Attempt,
) -> Vec<String> {
    let mut notes = Vec::new();
    if topology.threads > 1 && !attempt.siblings {
        notes.push("threads of one guest core are on cores of their own".to_owned());
    }
    if !attempt.by_node && cores::nodes(cores).len() > 1 {
        notes.push("the guest's nodes do not fit the host's: no memory is bound".to_owned());
    }
    if !attempt.own_core {
        notes.push("QEMU's other threads run on idle siblings of the vCPUs' cores".to_owned());
    }
    if host.is_hybrid() && attempt.class > 0 {
        notes.push("vCPUs run on the slower kind of cores".to_owned());
    }
    notes
}

/// Threads share CPUs: vCPUs have one each if there are as many, else all share all.
fn shared(
    host: &HostTopology,
    cores: &[Core],
    topology: &Topology,
    guests: usize,
) -> Vec<Placement> {
    // Of one kind here, too.
    let class = cores.iter().map(|core| core.class).min().unwrap_or(0);
    let cores: Vec<&Core> = cores.iter().filter(|core| core.class == class).collect();
    let usable: CpuList = cores.iter().flat_map(|core| core.cpus.iter().copied()).collect();
    let most = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(0);
    // First siblings first, CPU 0's core last.
    let order: Vec<u32> = (0..most)
        .flat_map(|nth| cores.iter().rev().filter_map(move |core| core.cpus.get(nth).copied()))
        .collect();
    let each = topology.cpus() as usize;
    let enough = each * guests <= order.len();
    let what =
        if enough { "vCPUs and QEMU's other threads share CPUs" } else { "vCPUs share CPUs" };
    let one = |guest: usize| {
        let mut own: Vec<u32> = order.iter().copied().skip(guest * each).take(each).collect();
        own.sort_unstable();
        Placement {
            vcpus: match enough {
                true => own.into_iter().map(|cpu| [cpu].into_iter().collect()).collect(),
                false => vec![usable.clone(); each],
            },
            emulator: usable.clone(),
            memory: Vec::new(),
            overcommitted: true,
            held: host.whole_cores(&usable),
            notes: vec![what.to_owned()],
        }
    };
    (0..guests).map(one).collect()
}
