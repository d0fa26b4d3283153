//! Counters of perf_event_open(2) for the workload's process and all it forks.

use std::collections::BTreeMap;

use kduel_protocol::Better;

use super::Counters;
use crate::sys::{Counter, PerfEvent};

/// Names as perf has them. The first two are metrics of their own where the hardware counts them.
const EVENTS: [(&str, PerfEvent); 10] = [
    ("cycles", PerfEvent::Hardware(0)),
    ("instructions", PerfEvent::Hardware(1)),
    ("branches", PerfEvent::Hardware(4)),
    ("branch-misses", PerfEvent::Hardware(5)),
    ("cache-references", PerfEvent::Hardware(2)),
    ("cache-misses", PerfEvent::Hardware(3)),
    ("task-clock", PerfEvent::Software(1)),
    ("context-switches", PerfEvent::Software(3)),
    ("cpu-migrations", PerfEvent::Software(4)),
    ("page-faults", PerfEvent::Software(2)),
];

/// How many of [`EVENTS`] are metrics.
const METRICS: usize = 2;

/// Those that there are.
#[derive(Debug)]
pub struct PerfStat {
    counters: Vec<(&'static str, Counter)>,
    absent: BTreeMap<String, String>,
}

impl PerfStat {
    /// Opens all that this kernel and its CPUs have, running.
    pub fn open() -> Self {
        let (mut counters, mut absent) = (Vec::new(), BTreeMap::new());
        for (name, event) in EVENTS {
            match Counter::open(event) {
                Ok(counter) => counters.push((name, counter)),
                Err(error) => {
                    absent.insert(name.to_owned(), why(event, &error));
                }
            }
        }
        Self { counters, absent }
    }

    /// So far; a counter that shared its hardware with others is scaled up to the whole time. One
    /// that was never on a CPU is left out.
    pub fn read(&self) -> Result<Counters, String> {
        let mut counters = Counters::new();
        for (name, counter) in &self.counters {
            let reading = counter.read().map_err(|error| format!("{name}: {error}"))?;
            if reading.running_ns > 0 {
                let share = reading.enabled_ns as f64 / reading.running_ns as f64;
                counters.insert((*name).to_owned(), reading.value as f64 * share);
            }
        }
        Ok(counters)
    }

    /// What there is not, and why.
    pub fn absent(&self) -> BTreeMap<String, String> {
        self.absent.clone()
    }
}

fn why(event: PerfEvent, error: &std::io::Error) -> String {
    match (event, error.raw_os_error()) {
        (_, Some(libc::ENOSYS)) => "the kernel was built without CONFIG_PERF_EVENTS".to_owned(),
        (PerfEvent::Hardware(_), Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENXIO)) => {
            "the guest's CPU counts no such event".to_owned()
        }
        _ => format!("perf_event_open: {error}"),
    }
}

/// Cycles and instructions of single iterations.
#[derive(Debug)]
pub struct PerIteration<'a> {
    counters: Vec<(&'static str, &'a Counter)>,
    last: Vec<f64>,
}

impl<'a> PerIteration<'a> {
    /// Of what is open.
    pub(super) fn of(perf: Option<&'a PerfStat>) -> Self {
        let is_metric = |name: &str| EVENTS[..METRICS].iter().any(|(metric, _)| *metric == name);
        let open = perf.into_iter().flat_map(|perf| &perf.counters);
        let open = open.filter(|(name, _)| is_metric(name));
        Self { counters: open.map(|(name, counter)| (*name, counter)).collect(), last: Vec::new() }
    }

    fn values(&self) -> Vec<f64> {
        let value = |counter: &Counter| {
            let reading = counter.read().ok()?;
            let share = reading.enabled_ns as f64 / reading.running_ns as f64;
            Some(reading.value as f64 * share).filter(|value| value.is_finite())
        };
        self.counters.iter().map(|(_, counter)| value(counter).unwrap_or(f64::NAN)).collect()
    }

    /// An iteration begins.
    pub fn begin(&mut self) {
        self.last = self.values();
    }

    /// It has ended: name, what it counted, which direction is better.
    pub fn end(&self) -> Vec<(&'static str, f64, Better)> {
        let values = self.values();
        let names = self.counters.iter().map(|(name, _)| *name);
        let counted = names.zip(values.iter().zip(&self.last));
        counted
            .map(|(name, (after, before))| (name, after - before, Better::Lower))
            .filter(|(_, value, _)| value.is_finite())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_there_or_has_a_reason() {
        let perf = PerfStat::open();
        assert_eq!(perf.counters.len() + perf.absent.len(), EVENTS.len());
        let read = perf.read().unwrap();
        assert!(read.keys().all(|name| !perf.absent.contains_key(name)), "{read:?}");
        let mut each = PerIteration::of(Some(&perf));
        each.begin();
        assert!(each.end().iter().all(|(_, value, _)| *value >= 0.0));
    }
}
