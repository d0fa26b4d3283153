//! What is read before and after the kept iterations of a trial.

mod vmstat;

pub use vmstat::steal_ms;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use kduel_protocol::{Event, Monitor};

use crate::clock;

/// Counters by name, as read at one moment.
type Counters = BTreeMap<String, f64>;

/// Monitors between begin and end.
#[derive(Debug)]
pub struct Watch {
    begun: Vec<(Monitor, Counters)>,
    begin_ns: u64,
}

impl Watch {
    /// Reads all monitors for the first time.
    pub fn begin(monitors: &[Monitor]) -> io::Result<Self> {
        let read_one = |monitor: &Monitor| Ok((*monitor, read(*monitor)?));
        let begun = monitors.iter().map(read_one).collect::<io::Result<_>>()?;
        Ok(Self { begun, begin_ns: clock::now_ns() })
    }

    /// Reads them again and gives what has changed, one event per monitor.
    pub fn end(self, trial: u32) -> io::Result<Vec<Event>> {
        let elapsed_ns = clock::now_ns() - self.begin_ns;
        let event = |(monitor, before): (Monitor, Counters)| {
            let deltas = deltas(&before, &read(monitor)?);
            Ok(Event::Monitored { trial, deltas, elapsed_ns })
        };
        self.begun.into_iter().map(event).collect()
    }
}

fn read(monitor: Monitor) -> io::Result<Counters> {
    match monitor {
        Monitor::Vmstat => vmstat::read(Path::new("/")),
    }
}

/// What grew by how much; a counter that is missing on either side is left out.
fn deltas(before: &Counters, after: &Counters) -> Counters {
    let delta = |(name, value): (&String, &f64)| {
        let earlier = before.get(name)?;
        Some((name.clone(), value - earlier))
    };
    after.iter().filter_map(delta).collect()
}
