//! Counters, read by the workload's process around its kept iterations.

use std::collections::BTreeMap;
use std::path::Path;

use kduel_protocol::{Event, Monitor};

use super::perf_stat::{PerIteration, PerfStat};
use super::{Counters, deltas, interrupts, psi, rusage, schedstat, vmstat};
use crate::clock;

/// Counters that are open before the workload is set up, so that what it starts is counted.
#[derive(Debug)]
pub struct Inside {
    monitors: Vec<Monitor>,
    perf: Option<PerfStat>,
    sampled: bool,
}

impl Inside {
    /// Opens what needs to be opened.
    pub fn open(monitors: &[Monitor]) -> Self {
        let perf = monitors.contains(&Monitor::PerfStat).then(PerfStat::open);
        let sampled =
            monitors.iter().any(|monitor| matches!(monitor, Monitor::Vmstat | Monitor::Profile));
        let read_here = |monitor: &&Monitor| !matches!(monitor, Monitor::Profile | Monitor::Dmesg);
        Self { monitors: monitors.iter().filter(read_here).copied().collect(), perf, sampled }
    }

    /// Whether somebody beside us wants to know when the kept iterations begin and end.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// Reads all for the first time.
    pub fn begin(&self) -> Watch<'_> {
        let read_one = |monitor: &Monitor| (*monitor, self.read(*monitor));
        let begun = self.monitors.iter().map(read_one).collect();
        Watch { inside: self, begun, begin_ns: clock::now_ns() }
    }

    /// Counters of the hardware that are metrics, too.
    pub fn per_iteration(&self) -> PerIteration<'_> {
        PerIteration::of(self.perf.as_ref())
    }

    /// Or why it is not there.
    fn read(&self, monitor: Monitor) -> Result<Counters, String> {
        let root = Path::new("/");
        match monitor {
            Monitor::Vmstat => vmstat::read(root).map_err(|error| format!("/proc/stat: {error}")),
            Monitor::Interrupts => interrupts::read(root),
            Monitor::Schedstat => schedstat::read(root),
            Monitor::Psi => psi::read(root),
            Monitor::Rusage => rusage::read(),
            Monitor::PerfStat => self.perf.as_ref().map_or(Ok(Counters::new()), PerfStat::read),
            Monitor::Profile | Monitor::Dmesg => Ok(Counters::new()),
        }
    }
}

/// Monitors between begin and end.
#[derive(Debug)]
pub struct Watch<'a> {
    inside: &'a Inside,
    begun: Vec<(Monitor, Result<Counters, String>)>,
    begin_ns: u64,
}

impl Watch<'_> {
    /// Reads them again and gives what has changed over `ops` operations, one event per monitor.
    pub fn end(self, trial: u32, ops: u64) -> Vec<Event> {
        let elapsed_ns = clock::now_ns() - self.begin_ns;
        let event = |(monitor, before): (Monitor, Result<Counters, String>)| {
            let mut absent = BTreeMap::new();
            let seen = before.and_then(|before| Ok(deltas(&before, &self.inside.read(monitor)?)));
            let deltas = seen.unwrap_or_else(|why| {
                absent.insert(monitor.name().to_owned(), why);
                Counters::new()
            });
            if let (Monitor::PerfStat, Some(perf)) = (monitor, &self.inside.perf) {
                absent.extend(perf.absent());
            }
            Event::Monitored { trial, deltas, elapsed_ns, monitor: Some(monitor), ops, absent }
        };
        self.begun.into_iter().map(event).collect()
    }
}
