//! What else runs on the host's CPUs.

use std::collections::BTreeSet;

use super::finding::{Seen, State};
use super::{Check, check};
use crate::host::files::{CPUS, HostFiles};
use crate::host::topology::CpuList;
use crate::text;

pub(super) const CHECKS: &[Check] = &[
    check("load", load, "guests wait for CPUs; trials in which they wait too long are dropped"),
    check("pressure", pressure, "tasks wait for CPUs; guests will, too"),
    check("isolation", isolation, "other tasks and the kernel's own work run on guests' CPUs"),
    check("interrupts", interrupts, "devices interrupt the CPUs that guests run on"),
    check("irqbalance", irqbalance, "interrupts move between CPUs while a run goes on"),
];

fn load(files: &HostFiles) -> Option<Seen> {
    let text = files.text("proc/loadavg")?;
    let load: f64 = text.split_whitespace().next()?.parse().ok()?;
    let cpus = files.online().map_or(1, |cpus| cpus.len().max(1));
    let each = load / cpus as f64;
    let state = if each > 1.0 { State::Bad } else { State::Worse };
    let found = format!("{load:.2} over one minute, on {}", text::count(cpus, "CPU"));
    Some(Seen::either(each <= 0.5, state, found, "end what else runs here before a timed run"))
}

/// Of the last minute, in percent, beyond which others are in the way.
const PRESSING: f64 = 10.0;

fn pressure(files: &HostFiles) -> Option<Seen> {
    let text = files.text("proc/pressure/cpu")?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let avg60 = some.split_whitespace().find_map(|word| word.strip_prefix("avg60="))?;
    let avg60: f64 = avg60.parse().ok()?;
    let found = format!("some task waited for a CPU in {avg60:.1} % of the last minute");
    let fix = "end what else runs here before a timed run";
    Some(Seen::either(avg60 <= PRESSING, State::Worse, found, fix))
}

/// Only fair without it, as pins and drawn orders do without.
fn isolation(files: &HostFiles) -> Option<Seen> {
    let cmdline = files.text("proc/cmdline")?;
    let of_cpu = |file: &str| {
        let cpus = files.text(&format!("{CPUS}/{file}"))?;
        CpuList::parse(&cpus).is_some_and(|cpus| !cpus.is_empty()).then_some(cpus)
    };
    let word = |name: &str| {
        cmdline.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let nohz_full = of_cpu("nohz_full").or_else(|| word("nohz_full").map(str::to_owned));
    let found: Vec<String> = [
        ("isolcpus", of_cpu("isolated").or_else(|| word("isolcpus").map(str::to_owned))),
        ("nohz_full", nohz_full.clone()),
        ("rcu_nocbs", word("rcu_nocbs").map(str::to_owned)),
    ]
    .into_iter()
    .filter_map(|(name, cpus)| Some(format!("{name}={}", text::escape(&cpus?))))
    .collect();
    if files.online().is_some_and(|cpus| cpus.len() < 2) {
        return Some(Seen::good("one CPU: none can be set apart"));
    }
    if nohz_full.is_some() && files.exists(&format!("{CPUS}/intel_pstate")) {
        let fix = "leave out nohz_full: without ticks intel_pstate does not see the load";
        return Some(Seen::new(State::Worse, found.join(" "), fix));
    }
    let fix = "boot the host with isolcpus=CPUS rcu_nocbs=CPUS; runs do without";
    let none = found.is_empty();
    let found = if none { "no CPU is set apart".to_owned() } else { found.join(" ") };
    Some(Seen::either(!none, State::Fair, found, fix))
}

/// Only fair if they go everywhere: guests are put elsewhere than CPU 0 where there is a choice.
fn interrupts(files: &HostFiles) -> Option<Seen> {
    let online = files.online()?;
    let mut taken = BTreeSet::new();
    let mut told = false;
    for irq in files.numbered("proc/irq", "")? {
        let list = |file: &str| files.text(&format!("proc/irq/{irq}/{file}"));
        let cpus = list("effective_affinity_list")
            .filter(|list| !list.is_empty())
            .or_else(|| list("smp_affinity_list"));
        if let Some(cpus) = cpus.as_deref().and_then(CpuList::parse) {
            told = true;
            taken.extend(cpus.iter().filter(|cpu| online.contains(*cpu)));
        }
    }
    if !told {
        return None;
    }
    let taken: CpuList = taken.into_iter().collect();
    let found = match taken.is_empty() {
        true => "they go to no CPU".to_owned(),
        false => format!("they go to CPU {taken} of {online}"),
    };
    let fix = "echo 0 | sudo tee /proc/irq/*/smp_affinity_list   leaves the others alone";
    let fine = online.len() < 2 || taken.len() < online.len();
    Some(Seen::either(fine, State::Fair, found, fix))
}

fn irqbalance(files: &HostFiles) -> Option<Seen> {
    let processes = files.numbered("proc", "")?;
    if processes.is_empty() {
        return None;
    }
    let is = |pid: u32| files.text(&format!("proc/{pid}/comm")).as_deref() == Some("irqbalance");
    let runs = processes.into_iter().any(is);
    let found = if runs { "runs" } else { "does not run" };
    Some(Seen::either(!runs, State::Worse, found, "sudo systemctl stop irqbalance"))
}
