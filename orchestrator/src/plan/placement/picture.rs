use super::Placement;
use crate::host::topology::{CpuList, HostCpu, HostTopology};
use crate::text::count;

/// Cores in one line.
const CORES_A_LINE: usize = 12;

/// The host's nodes and cores with what runs where, in lines for a terminal. Several guests are there
/// at once; the vCPUs of the first are `a0`, `a1`, …, those of the second `b0`, ….
pub fn picture(host: &HostTopology, guests: &[Placement]) -> Vec<String> {
    let mut lines: Vec<String> = match guests {
        [one] => vec![headline(one)],
        several => several
            .iter()
            .zip('a'..)
            .map(|(one, name)| format!("{name}: {}", headline(one)))
            .collect(),
    };
    let place = |cpu: &HostCpu| (cpu.node, cpu.package, cpu.class);
    let mut places: Vec<_> = host.cpus.iter().map(place).collect();
    places.sort_unstable();
    places.dedup();
    for there in places {
        let cpus: Vec<&HostCpu> = host.cpus.iter().filter(|cpu| place(cpu) == there).collect();
        lines.push(title(host, guests, there));
        lines.extend(rows(&cpus, guests));
    }
    lines.push(legend(guests).to_owned());
    let notes = guests.first().map(|first| &first.notes).into_iter().flatten();
    lines.extend(notes.chain(&host.limits).cloned());
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
    guests: &[Placement],
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
    // Guests that are there at once have their memory on the same nodes.
    let memory = guests.first().map_or(&[][..], |first| &first.memory);
    let whose = if guests.len() > 1 { "the guests'" } else { "the guest's" };
    let bound: Vec<String> = memory
        .iter()
        .enumerate()
        .filter(|(_, bound)| bound.is_some() && **bound == node)
        .map(|(guest, _)| guest.to_string())
        .collect();
    match (bound.as_slice(), memory.len()) {
        ([], _) => title,
        (_, 1) => title + &format!(": {whose} memory"),
        ([one], _) => title + &format!(": memory of guest node {one}"),
        (several, _) => title + &format!(": memory of guest nodes {}", several.join(", ")),
    }
}

/// Numbers of cores, and below each what is on its CPUs.
fn rows(cpus: &[&HostCpu], guests: &[Placement]) -> Vec<String> {
    let mut cores: Vec<u32> = cpus.iter().map(|cpu| cpu.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let cells: Vec<(String, String)> = cores
        .into_iter()
        .map(|core| {
            let siblings = cpus.iter().filter(|cpu| cpu.core == core);
            let on: Vec<String> = siblings.map(|cpu| occupant(cpu, guests)).collect();
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

fn occupant(cpu: &HostCpu, guests: &[Placement]) -> String {
    let vcpu = |guest: &Placement| {
        let mut vcpus = guest.vcpus.iter().enumerate();
        let (vcpu, on) = vcpus.find(|(_, on)| on.contains(cpu.id))?;
        Some(if on.len() > 1 { "*".to_owned() } else { vcpu.to_string() })
    };
    let named = |(guest, name): (&Placement, char)| {
        let vcpu = vcpu(guest)?;
        Some(if guests.len() > 1 { format!("{name}{vcpu}") } else { vcpu })
    };
    let mut on: Vec<String> = guests.iter().zip('a'..).filter_map(named).collect();
    if guests.iter().any(|guest| guest.emulator.contains(cpu.id)) {
        on.push("q".to_owned());
    }
    if !on.is_empty() {
        return on.join("+");
    }
    let held = guests.iter().any(|guest| guest.held.contains(cpu.id));
    if !cpu.usable {
        "x"
    } else if held {
        "-"
    } else {
        "."
    }
    .to_owned()
}

fn legend(guests: &[Placement]) -> &'static str {
    match guests {
        [_] => {
            "0, 1: a vCPU  *: any vCPU  q: rest of QEMU  -: kept idle  .: free  x: not to be used"
        }
        _ => "a0: vCPU 0 of guest a  q: rest of QEMU  -: kept idle  .: free  x: not to be used",
    }
}
