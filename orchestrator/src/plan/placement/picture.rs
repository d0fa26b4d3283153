use super::Placement;
use crate::host::topology::{CpuList, HostCpu, HostTopology};
use crate::text::count;

/// Cores in one line.
const CORES_A_LINE: usize = 12;

/// The host's nodes and cores with what runs where, in lines for a terminal.
pub fn picture(host: &HostTopology, placement: &Placement) -> Vec<String> {
    let mut lines = vec![headline(placement)];
    let place = |cpu: &HostCpu| (cpu.node, cpu.package, cpu.class);
    let mut places: Vec<_> = host.cpus.iter().map(place).collect();
    places.sort_unstable();
    places.dedup();
    for there in places {
        let cpus: Vec<&HostCpu> = host.cpus.iter().filter(|cpu| place(cpu) == there).collect();
        lines.push(title(host, placement, there));
        lines.extend(rows(&cpus, placement));
    }
    lines.push(legend().to_owned());
    lines.extend(placement.notes.iter().chain(&host.limits).cloned());
    lines
}

fn headline(placement: &Placement) -> String {
    let vcpus = count(placement.vcpus.len(), "vCPU");
    let all: CpuList = placement.vcpus.iter().flat_map(CpuList::iter).collect();
    let how = if placement.overcommitted { ", overcommitted" } else { "" };
    let cpus = |list: &CpuList| format!("{} {list}", if list.len() == 1 { "CPU" } else { "CPUs" });
    format!("{vcpus} on {}, the rest of QEMU on {}{how}", cpus(&all), cpus(&placement.emulator))
}

fn title(
    host: &HostTopology,
    placement: &Placement,
    (node, package, class): (Option<u32>, u32, u32),
) -> String {
    let mut title = match node {
        Some(node) => format!("node {node}, package {package}"),
        None => format!("package {package}"),
    };
    if host.is_hybrid() {
        title += if class == 0 { ", fast cores" } else { ", slow cores" };
    }
    if let Some(memory) = host.nodes.iter().find(|each| Some(each.id) == node)
        && let Some(mib) = memory.memory_mib
    {
        title += &format!(", {mib} MiB");
    }
    let bound = placement.memory.iter().enumerate();
    let bound: Vec<String> = bound
        .filter(|(_, bound)| bound.is_some() && **bound == node)
        .map(|(guest, _)| guest.to_string())
        .collect();
    match (bound.as_slice(), placement.memory.len()) {
        ([], _) => title,
        (_, 1) => title + ": the guest's memory",
        ([one], _) => title + &format!(": memory of guest node {one}"),
        (several, _) => title + &format!(": memory of guest nodes {}", several.join(", ")),
    }
}

/// Numbers of cores, and below each what is on its CPUs.
fn rows(cpus: &[&HostCpu], placement: &Placement) -> Vec<String> {
    let mut cores: Vec<u32> = cpus.iter().map(|cpu| cpu.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let cells: Vec<(String, String)> = cores
        .into_iter()
        .map(|core| {
            let siblings = cpus.iter().filter(|cpu| cpu.core == core);
            let on: Vec<String> = siblings.map(|cpu| occupant(cpu, placement)).collect();
            (core.to_string(), on.join("/"))
        })
        .collect();
    let width = cells.iter().map(|(core, on)| core.len().max(on.len())).max().unwrap_or(1);
    let line = |title: &str, words: Vec<&String>| {
        let words: Vec<String> = words.iter().map(|word| format!("{word:<width$}")).collect();
        format!("  {title:<5} {}", words.join("  ")).trim_end().to_owned()
    };
    cells
        .chunks(CORES_A_LINE)
        .flat_map(|cells| {
            [
                line("core", cells.iter().map(|(core, _)| core).collect()),
                line("runs", cells.iter().map(|(_, on)| on).collect()),
            ]
        })
        .collect()
}

fn occupant(cpu: &HostCpu, placement: &Placement) -> String {
    let mut vcpus = placement.vcpus.iter().enumerate();
    let emulator = placement.emulator.contains(cpu.id);
    let vcpu = match vcpus.find(|(_, on)| on.contains(cpu.id)) {
        Some((_, on)) if on.len() > 1 => Some("*".to_owned()),
        Some((vcpu, _)) => Some(vcpu.to_string()),
        None => None,
    };
    match (vcpu, emulator) {
        (Some(vcpu), true) => format!("{vcpu}+q"),
        (Some(vcpu), false) => vcpu,
        (None, true) => "q".to_owned(),
        (None, false) if !cpu.usable => "x".to_owned(),
        (None, false) if placement.held.contains(cpu.id) => "-".to_owned(),
        (None, false) => ".".to_owned(),
    }
}

fn legend() -> &'static str {
    "0, 1: a vCPU  *: any vCPU  q: rest of QEMU  -: kept idle  .: free  x: not to be used"
}
