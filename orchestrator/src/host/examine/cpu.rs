//! How fast the host's CPUs run, and whether that stays so.

use std::collections::BTreeSet;

use super::finding::{Seen, State};
use super::{Check, check, with_kvm};
use crate::host::files::{CPUS, HostFiles, tally};
use crate::text;

pub(super) const CHECKS: &[Check] = &[
    check("processors", processors, "sides of a pair compete for CPUs"),
    check(
        "governor",
        governor,
        "the frequency follows the load: what waits or has just begun runs slower than the rest",
    ),
    check(
        "boost",
        boost,
        "the frequency depends on how many CPUs are busy and on how warm they are",
    ),
    check("smt", smt, "two threads share a core: what runs on one slows the other"),
    with_kvm(
        "c-states",
        c_states,
        "a CPU that has been idle takes that long to wake up, so what waits varies",
    ),
    check(
        "throttling",
        throttling,
        "a CPU that is too warm is slowed; trials in which it happens are dropped",
    ),
    check(
        "power",
        power,
        "firmware and kernel save power at the cost of speed, and change their minds",
    ),
    check(
        "clocksource",
        clocksource,
        "reading the time takes longer and varies, for guests too if they use the host's",
    ),
    check("microcode", microcode, "CPUs of one host differ in what they cost"),
    with_kvm("mitigations", mitigations, ""),
];

fn processors(files: &HostFiles) -> Option<Seen> {
    let models = files.cpuinfo("model name")?;
    let found = format!("{} x {}", models.len(), text::escape(models.first()?));
    let fix = "guests of several CPUs take turns here: compare them in exact runs";
    Some(Seen::either(models.len() > 1, State::Fair, found, fix))
}

fn governor(files: &HostFiles) -> Option<Seen> {
    let governors = files.of_cpus("cpufreq/scaling_governor")?;
    let fine = governors.values().all(|governor| governor == "performance");
    let fix = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor";
    Some(Seen::either(fine, State::Worse, tally(governors.values().map(String::as_str)), fix))
}

fn boost(files: &HostFiles) -> Option<Seen> {
    if let Some(off) = files.number(&format!("{CPUS}/intel_pstate/no_turbo")) {
        let fix = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo";
        return Some(Seen::either(off == 1, State::Worse, on_off(off == 0), fix));
    }
    let on = files.number(&format!("{CPUS}/cpufreq/boost"))?;
    let fix = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost";
    Some(Seen::either(on == 0, State::Worse, on_off(on != 0), fix))
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// Only fair, as no two sides are ever put onto one core.
fn smt(files: &HostFiles) -> Option<Seen> {
    let control = files.text(&format!("{CPUS}/smt/control"))?;
    let active = files.number(&format!("{CPUS}/smt/active")) != Some(0);
    let fix = "echo off | sudo tee /sys/devices/system/cpu/smt/control";
    Some(match control.as_str() {
        "on" if active => Seen::new(State::Fair, "on", fix),
        "on" => Seen::good("on, but no core has two threads"),
        "notsupported" | "notimplemented" => Seen::good("the CPUs have one thread each"),
        other => Seen::good(text::escape(other)),
    })
}

/// Longer than it takes to wake a guest, in microseconds.
const SLOW_WAKE_US: u64 = 50;

fn c_states(files: &HostFiles) -> Option<Seen> {
    let cpus = files.numbered(CPUS, "cpu")?;
    let mut told = false;
    let mut deepest: Option<(u64, String)> = None;
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/cpuidle");
        for state in files.numbered(&folder, "state").unwrap_or_default() {
            let state = format!("{folder}/state{state}");
            let Some(latency) = files.number(&format!("{state}/latency")) else { continue };
            told = true;
            let enabled = files.number(&format!("{state}/disable")) == Some(0);
            if enabled && deepest.as_ref().is_none_or(|(most, _)| latency > *most) {
                let name = files.text(&format!("{state}/name")).unwrap_or_default();
                deepest = Some((latency, text::escape(&name)));
            }
        }
    }
    let fix = format!("sudo cpupower idle-set --disable-by-latency {SLOW_WAKE_US}");
    match deepest {
        Some((us, name)) => Some(Seen::either(
            us < SLOW_WAKE_US,
            State::Worse,
            format!("down to {name}, {us} µs to wake up"),
            &fix,
        )),
        None => told.then(|| Seen::good("all of them are disabled")),
    }
}

fn throttling(files: &HostFiles) -> Option<Seen> {
    let counts = files.of_cpus("thermal_throttle/core_throttle_count")?;
    let counts: Vec<u64> = counts.values().filter_map(|count| count.parse().ok()).collect();
    let most = *counts.iter().max()?;
    let found = match most {
        0 => "never since the host booted".to_owned(),
        _ => format!("a core was slowed {most} times since the host booted"),
    };
    let fix = "cool it better, or switch boost off: sudo kduel tune apply boost";
    Some(Seen::either(most == 0, State::Fair, found, fix))
}

fn power(files: &HostFiles) -> Option<Seen> {
    let supplies = files.names("sys/class/power_supply")?;
    let of = |file: &str| -> Vec<String> {
        let path = |supply| format!("sys/class/power_supply/{supply}/{file}");
        supplies.iter().filter_map(|supply| files.text(&path(supply))).collect()
    };
    let (online, status) = (of("online"), of("status"));
    let battery = match (online.is_empty(), status.is_empty()) {
        (false, _) => online.iter().all(|value| value == "0"),
        (true, false) => status.iter().any(|value| value == "Discharging"),
        (true, true) => return None,
    };
    let found = if battery { "the battery" } else { "mains" };
    Some(Seen::either(!battery, State::Bad, found, "plug in the charger"))
}

fn clocksource(files: &HostFiles) -> Option<Seen> {
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let current = files.text(&format!("{FOLDER}/current_clocksource"))?;
    let others = files.text(&format!("{FOLDER}/available_clocksource")).unwrap_or_default();
    let fix = match others.split_whitespace().any(|name| name == "tsc") {
        true => {
            "echo tsc | sudo tee \
             /sys/devices/system/clocksource/clocksource0/current_clocksource"
        }
        false => "sudo dmesg | grep -i -e clocksource -e tsc   says why the kernel avoids the TSC",
    };
    Some(match current.as_str() {
        "tsc" => Seen::good("tsc"),
        "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" => Seen::new(State::Bad, current, fix),
        other => Seen::new(State::Fair, text::escape(other), fix),
    })
}

fn microcode(files: &HostFiles) -> Option<Seen> {
    let all = files.cpuinfo("microcode")?;
    let different: BTreeSet<&String> = all.iter().collect();
    let fix = "let the firmware or the package for this CPU load one revision, and reboot";
    let found = match different.len() {
        1 => text::escape(all.first()?),
        _ => tally(all.iter().map(String::as_str)),
    };
    Some(Seen::either(different.len() == 1, State::Worse, found, fix))
}

/// Neither good nor bad, but worth knowing: each way out of a guest pays for them.
fn mitigations(files: &HostFiles) -> Option<Seen> {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let names = files.names(FOLDER)?;
    let texts: Vec<String> =
        names.iter().filter_map(|name| files.text(&format!("{FOLDER}/{name}"))).collect();
    let how_many = |word: &str| texts.iter().filter(|text| text.starts_with(word)).count();
    let (not_affected, mitigated) = (how_many("Not affected"), how_many("Mitigation"));
    let open = texts.len() - not_affected - mitigated;
    let said = files.text("proc/cmdline").and_then(|cmdline| {
        let mut words = cmdline.split_whitespace();
        let word = words.find(|word| word.starts_with("mitigations="))?;
        Some(format!("; {}", text::escape(word)))
    });
    Some(Seen::good(format!(
        "{} vulnerabilities: {not_affected} of no effect, {mitigated} mitigated, {open} open{}",
        texts.len(),
        said.unwrap_or_default()
    )))
}
