//! What the host does to a guest while it measures, seen from the host alone. Every source that a host
//! lacks is absent, never zero.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::clock;

/// A thread of QEMU that executes the guest, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadReading {
    /// Its id.
    pub tid: u64,
    /// Time on a CPU, in nanoseconds.
    pub on_cpu_ns: u64,
    /// Time it wanted one and had none, in nanoseconds.
    pub delay_ns: u64,
    /// Times it was made to give one up.
    pub involuntary: Option<u64>,
    /// Times it was moved to another.
    pub migrations: Option<u64>,
}

/// One look at a guest's host; counters, of which only differences mean something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostReading {
    /// Monotonic time, in nanoseconds.
    pub at_ns: u64,
    /// How long the host has been suspended, in nanoseconds.
    pub suspended_ns: u64,
    /// The guest's vCPUs.
    pub threads: Vec<ThreadReading>,
    /// Time that the host's own hypervisor gave to others, and all time, in ticks over all CPUs.
    pub steal_ticks: Option<(u64, u64)>,
    /// Time in which some task waited for a CPU, in microseconds.
    pub pressure_us: Option<u64>,
    /// Times that CPUs were throttled for heat.
    pub throttled: Option<u64>,
    /// Mean frequency of the CPUs, in kHz.
    pub frequency_khz: Option<u64>,
    /// Whether the host runs on battery.
    pub on_battery: Option<bool>,
}

/// What the host did between two looks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct HostNoise {
    /// Between the looks, in milliseconds.
    pub elapsed_ms: u64,
    /// The part of the time a vCPU wanted to run in which it could not, of the one that fared worst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal: Option<f64>,
    /// Times that vCPUs were made to give up a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary: Option<u64>,
    /// Times that vCPUs were moved to another CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
    /// The part of the host's own time that its hypervisor gave to others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_steal: Option<f64>,
    /// The part of the time in which some task of the host waited for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<f64>,
    /// Times that CPUs were throttled for heat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<u64>,
    /// Mean frequency of the CPUs at the end, in MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_mhz: Option<u64>,
    /// The host was suspended for so long, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub suspended_ms: u64,
    /// Whether the host ran on battery at either look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_battery: Option<bool>,
}

impl HostNoise {
    /// What the host did not tell, in words.
    pub fn untold(&self) -> Vec<&'static str> {
        let told = self.steal.is_some() || self.involuntary.is_some();
        [
            (told, "how long vCPUs waited for a CPU"),
            (!told || self.migrations.is_some(), "how often they moved"),
            (self.host_steal.is_some(), "steal"),
            (self.cpu_pressure.is_some(), "pressure"),
            (self.frequency_mhz.is_some(), "the CPUs' frequency"),
            (self.throttled.is_some(), "throttling"),
            (self.on_battery.is_some(), "its source of power"),
        ]
        .into_iter()
        .filter_map(|(told, what)| (!told).then_some(what))
        .collect()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde hands over")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A vCPU that wanted to run for a smaller part of the time says nothing by how often it could.
const WANTED: f64 = 0.05;

/// Looks at one guest's host.
#[derive(Debug, Clone)]
pub struct NoiseProbe {
    root: PathBuf,
    pid: u32,
    tids: Vec<u64>,
}

impl NoiseProbe {
    /// Of the guest in QEMU's process `pid`, whose vCPUs are the threads `tids`; the host's files are
    /// below `root`, which is `/` outside of tests.
    pub fn new(root: &Path, pid: u32, tids: &[u64]) -> Self {
        let mut tids = tids.to_vec();
        // With a single-threaded TCG all vCPUs are one thread.
        tids.sort_unstable();
        tids.dedup();
        Self { root: root.to_owned(), pid, tids }
    }

    /// One look.
    pub fn read(&self) -> HostReading {
        HostReading {
            at_ns: u64::try_from(clock::monotonic().as_nanos()).unwrap_or(u64::MAX),
            suspended_ns: u64::try_from(clock::suspended().as_nanos()).unwrap_or(u64::MAX),
            threads: self.tids.iter().filter_map(|tid| self.thread(*tid)).collect(),
            steal_ticks: self.text("proc/stat").as_deref().and_then(steal_ticks),
            pressure_us: self.text("proc/pressure/cpu").as_deref().and_then(pressure),
            throttled: self
                .of_cpus("thermal_throttle/core_throttle_count")
                .map(|all| all.iter().sum()),
            frequency_khz: self
                .of_cpus("cpufreq/scaling_cur_freq")
                .map(|all| all.iter().sum::<u64>() / all.len() as u64),
            on_battery: self.on_battery(),
        }
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn thread(&self, tid: u64) -> Option<ThreadReading> {
        let folder = format!("proc/{}/task/{tid}", self.pid);
        let text = self.text(&format!("{folder}/schedstat"))?;
        let mut fields = text.split_whitespace().map(str::parse::<u64>);
        let (on_cpu_ns, delay_ns) = (fields.next()?.ok()?, fields.next()?.ok()?);
        let line = |file: &str, name: &str| -> Option<u64> {
            let text = self.text(&format!("{folder}/{file}"))?;
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.rsplit([':', ' ', '\t']).next()?.parse().ok()
        };
        Some(ThreadReading {
            tid,
            on_cpu_ns,
            delay_ns,
            involuntary: line("status", "nonvoluntary_ctxt_switches"),
            migrations: line("sched", "se.nr_migrations"),
        })
    }

    /// A number of every CPU that has it.
    fn of_cpus(&self, file: &str) -> Option<Vec<u64>> {
        let entries = fs::read_dir(self.root.join("sys/devices/system/cpu")).ok()?;
        let values: Vec<u64> = entries
            .flatten()
            .filter_map(|entry| {
                fs::read_to_string(entry.path().join(file)).ok()?.trim().parse().ok()
            })
            .collect();
        (!values.is_empty()).then_some(values)
    }

    fn on_battery(&self) -> Option<bool> {
        let entries = fs::read_dir(self.root.join("sys/class/power_supply")).ok()?;
        let online: Vec<String> = entries
            .flatten()
            .filter_map(|entry| fs::read_to_string(entry.path().join("online")).ok())
            .collect();
        (!online.is_empty()).then(|| online.iter().all(|text| text.trim() == "0"))
    }
}

/// Steal and all time of the line of all CPUs; guest time is part of user time already.
fn steal_ticks(stat: &str) -> Option<(u64, u64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.take(8).filter_map(|field| field.parse().ok()).collect();
    Some((*ticks.get(7)?, ticks.iter().sum()))
}

fn pressure(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split_whitespace().find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

impl HostReading {
    /// What the host did from this look to `later`.
    pub fn until(&self, later: &Self) -> HostNoise {
        let elapsed_ns = later.at_ns.saturating_sub(self.at_ns);
        let between = |of: fn(&Self) -> Option<u64>| Some(of(later)?.saturating_sub(of(self)?));
        let threads = || {
            let before = |tid| self.threads.iter().find(move |thread| thread.tid == tid);
            later.threads.iter().filter_map(move |now| Some((before(now.tid)?, now)))
        };
        let sum = |of: fn(&ThreadReading) -> Option<u64>| -> Option<u64> {
            let each = threads().map(|(then, now)| Some(of(now)?.saturating_sub(of(then)?)));
            each.collect::<Option<Vec<u64>>>()
                .filter(|all| !all.is_empty())
                .map(|all| all.iter().sum())
        };
        let steal = threads().filter_map(|(then, now)| {
            let on_cpu = now.on_cpu_ns.saturating_sub(then.on_cpu_ns);
            let delay = now.delay_ns.saturating_sub(then.delay_ns);
            let wanted = on_cpu.saturating_add(delay) as f64 >= WANTED * elapsed_ns as f64;
            kduel_stats::steal_ratio(on_cpu, delay).filter(|_| wanted)
        });
        let host_steal = self.steal_ticks.zip(later.steal_ticks).and_then(|(then, now)| {
            let all = now.1.saturating_sub(then.1);
            (all > 0).then(|| now.0.saturating_sub(then.0) as f64 / all as f64)
        });
        HostNoise {
            elapsed_ms: elapsed_ns / 1_000_000,
            steal: steal.max_by(f64::total_cmp),
            involuntary: sum(|thread| thread.involuntary),
            migrations: sum(|thread| thread.migrations),
            host_steal,
            cpu_pressure: between(|reading| reading.pressure_us)
                .filter(|_| elapsed_ns > 0)
                .map(|us| (us as f64 * 1e3 / elapsed_ns as f64).min(1.0)),
            throttled: between(|reading| reading.throttled),
            frequency_mhz: later.frequency_khz.map(|khz| khz / 1000),
            suspended_ms: later.suspended_ns.saturating_sub(self.suspended_ns) / 1_000_000,
            on_battery: match (self.on_battery, later.on_battery) {
                (None, None) => None,
                (then, now) => Some(then == Some(true) || now == Some(true)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn probe(root: &Path) -> NoiseProbe {
        NoiseProbe::new(root, 7, &[9, 8, 9])
    }

    #[test]
    fn a_host_with_everything_is_read_in_full() {
        let host = tempfile::tempdir().unwrap();
        let root = host.path();
        for (tid, schedstat) in [(8, "1000 50 3\n"), (9, "4000 500 9\n")] {
            let folder = format!("proc/7/task/{tid}");
            write(root, &format!("{folder}/schedstat"), schedstat);
            let status = "voluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
            write(root, &format!("{folder}/status"), status);
            write(root, &format!("{folder}/sched"), "se.nr_migrations         :        2\n");
        }
        write(root, "proc/stat", "cpu  10 1 5 80 2 1 1 7 3 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
        write(root, "proc/pressure/cpu", "some avg10=1.00 avg60=0.1 avg300=0.0 total=4321\n");
        for cpu in 0..2 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}");
            write(root, &format!("{folder}/thermal_throttle/core_throttle_count"), "2\n");
            write(root, &format!("{folder}/cpufreq/scaling_cur_freq"), "3000000\n");
        }
        write(root, "sys/class/power_supply/AC/online", "1\n");
        let found = probe(root).read();
        let thread = |tid, on_cpu_ns, delay_ns| ThreadReading {
            tid,
            on_cpu_ns,
            delay_ns,
            involuntary: Some(3),
            migrations: Some(2),
        };
        assert_eq!(found.threads, [thread(8, 1000, 50), thread(9, 4000, 500)]);
        assert_eq!(found.steal_ticks, Some((7, 107)));
        assert_eq!((found.pressure_us, found.throttled), (Some(4321), Some(4)));
        assert_eq!((found.frequency_khz, found.on_battery), (Some(3_000_000), Some(false)));
    }

    #[test]
    fn what_a_host_lacks_is_absent() {
        let host = tempfile::tempdir().unwrap();
        let found = probe(host.path()).read();
        let nothing = HostReading {
            at_ns: found.at_ns,
            suspended_ns: found.suspended_ns,
            ..HostReading::default()
        };
        assert_eq!(found, nothing);
        let noise = nothing.until(&found);
        assert_eq!(noise, HostNoise::default());
        assert_eq!(serde_json::to_string(&noise).unwrap(), r#"{"elapsed-ms":0}"#);
    }

    #[test]
    fn what_a_host_does_not_tell_is_named() {
        let some = HostNoise {
            involuntary: Some(0),
            host_steal: Some(0.0),
            cpu_pressure: Some(0.0),
            ..HostNoise::default()
        };
        let lacks = ["how often they moved", "the CPUs' frequency", "throttling"];
        assert_eq!(some.untold(), [&lacks[..], &["its source of power"]].concat());
        let nothing = HostNoise::default().untold();
        assert_eq!((nothing.len(), nothing[0]), (6, "how long vCPUs waited for a CPU"));
        let all = HostNoise {
            steal: Some(0.0),
            migrations: Some(0),
            frequency_mhz: Some(1),
            throttled: Some(0),
            on_battery: Some(false),
            ..some
        };
        assert_eq!(all.untold(), [""; 0]);
    }

    #[test]
    fn the_vcpu_that_fares_worst_counts_if_it_wanted_to_run() {
        let thread = |tid, on_cpu_ms: u64, delay_ms: u64| ThreadReading {
            tid,
            on_cpu_ns: on_cpu_ms * 1_000_000,
            delay_ns: delay_ms * 1_000_000,
            involuntary: Some(on_cpu_ms),
            migrations: None,
        };
        let reading = |at_ms: u64, threads: &[ThreadReading]| HostReading {
            at_ns: at_ms * 1_000_000,
            threads: threads.to_vec(),
            steal_ticks: Some((at_ms / 100, at_ms)),
            pressure_us: Some(at_ms * 250),
            ..HostReading::default()
        };
        let idle = [thread(1, 10, 0), thread(2, 10, 0)];
        let later = [thread(1, 910, 100), thread(2, 12, 8)];
        let noise = reading(1000, &idle).until(&reading(2000, &later));
        assert_eq!(noise.elapsed_ms, 1000);
        assert_eq!(noise.steal, Some(0.1));
        assert_eq!((noise.involuntary, noise.migrations), (Some(902), None));
        assert_eq!((noise.host_steal, noise.cpu_pressure), (Some(0.01), Some(0.25)));
        let nothing = reading(0, &idle).until(&reading(1000, &idle));
        assert_eq!(nothing.steal, None);
    }
}
