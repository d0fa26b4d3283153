//! What the parent of the workload's process watches while that runs.

use std::collections::BTreeMap;
use std::path::Path;

use kduel_protocol::{Event, Monitor, MonitorTerms};

use super::dmesg::KernelLog;
use super::profile::Profile;
use super::vmstat_rows::VmstatRows;
use crate::clock;

/// How often samples are fetched.
const FETCH_NS: u64 = clock::SECOND_NS / 2;

const ROOT: &str = "/";

/// Monitors of one trial. Those that this kernel lacks are told as absent at the end.
#[derive(Debug)]
pub struct Beside {
    trial: u32,
    rows_ns: Option<u64>,
    rows: Option<VmstatRows>,
    profile: Option<Result<Profile, String>>,
    log: Option<Result<KernelLog, String>>,
    /// Since when the kept iterations run, and until when they did.
    begin_ns: Option<u64>,
    end_ns: Option<u64>,
    fetched_ns: u64,
}

impl Beside {
    /// Before the workload's process is started.
    pub fn new(monitors: &[Monitor], terms: MonitorTerms, trial: u32) -> Self {
        let has = |monitor| monitors.contains(&monitor);
        let period_ns = u64::from(terms.profile_us.max(10)) * 1000;
        Self {
            trial,
            rows_ns: has(Monitor::Vmstat).then(|| u64::from(terms.vmstat_ms.max(1)) * 1_000_000),
            rows: None,
            profile: has(Monitor::Profile).then(|| Profile::open(Path::new(ROOT), period_ns)),
            log: has(Monitor::Dmesg).then(KernelLog::open),
            begin_ns: None,
            end_ns: None,
            fetched_ns: 0,
        }
    }

    /// The kept iterations begin, or have ended.
    pub fn kept(&mut self, begin: bool) {
        let now = clock::now_ns();
        if begin {
            (self.begin_ns, self.fetched_ns) = (Some(now), now);
            // A file that cannot be read now is told by who reads its counters.
            let rows = self.rows_ns.map(|ns| VmstatRows::begin(Path::new(ROOT), ns, now));
            self.rows = rows.and_then(Result::ok);
        } else {
            self.end_ns = Some(now);
            if let Some(rows) = &mut self.rows {
                rows.end(Path::new(ROOT), now);
            }
        }
        if let Some(Ok(profile)) = &mut self.profile {
            profile.switch(begin);
            profile.fetch();
        }
    }

    /// When to look next, if ever.
    pub fn due_ns(&self) -> Option<u64> {
        if self.begin_ns.is_none() || self.end_ns.is_some() {
            return None;
        }
        let fetch = matches!(self.profile, Some(Ok(_))).then_some(self.fetched_ns + FETCH_NS);
        self.rows.as_ref().map(VmstatRows::due_ns).into_iter().chain(fetch).min()
    }

    /// Looks at what is due.
    pub fn look(&mut self, now: u64) {
        if self.due_ns().is_none_or(|due| due > now) {
            return;
        }
        if let Some(rows) = self.rows.as_mut().filter(|rows| rows.due_ns() <= now) {
            rows.take(Path::new(ROOT), now);
        }
        if let Some(Ok(profile)) = &mut self.profile
            && self.fetched_ns + FETCH_NS <= now
        {
            profile.fetch();
            self.fetched_ns = now;
        }
    }

    /// What was seen.
    pub fn finish(self) -> Vec<Event> {
        let trial = self.trial;
        let mut events: Vec<Event> =
            self.rows.as_ref().map(|rows| rows.events(trial)).unwrap_or_default();
        let elapsed_ns = self.begin_ns.zip(self.end_ns).map_or(0, |(begin, end)| end - begin);
        let absent = |monitor: Monitor, why: &str| Event::Monitored {
            trial,
            deltas: BTreeMap::new(),
            elapsed_ns,
            monitor: Some(monitor),
            ops: 0,
            absent: BTreeMap::from([(monitor.name().to_owned(), why.to_owned())]),
        };
        if let Some(profile) = &self.profile {
            let seen = profile.as_ref().map_err(Clone::clone);
            match seen.and_then(|profile| profile.events(Path::new(ROOT), trial)) {
                Ok(seen) => events.extend(seen),
                Err(why) => events.push(absent(Monitor::Profile, &why)),
            }
        }
        match &self.log {
            Some(Ok(log)) => events.extend(log.events(trial)),
            Some(Err(why)) => events.push(absent(Monitor::Dmesg, why)),
            None => {}
        }
        events
    }
}
