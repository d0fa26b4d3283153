//! One boot of one side, from start to proof of its end.

use std::time::Duration;

use kduel_protocol::{AGENT_PATH, Event, GuestPlan, PLAN_PATH, Phase, Topology};

use super::{AgentStream, Seat, topology};
use crate::boot::{Dialogue, ExecEnd, HostProbe, Machine, Watch};
use crate::clock::Stopwatch;
use crate::collect::{BootResult, TrialNoise};
use crate::event::{BootPhase, RunEvent};
use crate::fault::{Failure, FailureClass};
use crate::host::noise::HostReading;
use crate::id::BootId;

/// Which boot it is, for those who watch.
#[derive(Debug, Clone)]
pub struct BootLabel {
    /// The boot.
    pub boot: BootId,
    /// Its side.
    pub side: String,
    /// Its block, from 0.
    pub block: usize,
}

/// What a boot came to.
#[derive(Debug)]
pub struct BootEnd {
    /// From start to ready, if it ever was.
    pub ready: Option<Duration>,
    /// From start to the first sample, if there was one.
    pub first_sample: Option<Duration>,
    /// From start to proof of the end.
    pub took: Duration,
    /// What it gave.
    pub result: Result<BootResult, Failure>,
    /// Its console, raw.
    pub console: String,
}

/// Boots `machine`, carries out `plan` in it and switches it off. `seat`: its place among guests that
/// run together, left at the latest when the trials are over. Blocks; the guest is gone afterwards
/// whatever happened.
pub fn run_boot(
    machine: &mut dyn Machine,
    plan: &GuestPlan,
    wanted: &Topology,
    workloads: &[String],
    seat: Option<Seat>,
    label: &BootLabel,
    watch: &Watch,
) -> BootEnd {
    let stopwatch = Stopwatch::start();
    let tell = |phase: BootPhase| {
        watch.tell(RunEvent::Boot {
            boot: label.boot.clone(),
            side: label.side.clone(),
            block: label.block,
            phase,
        });
    };
    tell(BootPhase::Booting);
    let mut ready = None;
    let mut first_sample = None;
    let outcome = machine.boot().and_then(|()| {
        ready = Some(stopwatch.elapsed());
        tell(BootPhase::Ready { after: stopwatch.elapsed() });
        carry_out(machine, plan, wanted, seat, &mut |event| {
            if matches!(event, Event::Sample(_)) {
                first_sample.get_or_insert_with(|| stopwatch.elapsed());
            }
            if let Some(phase) = phase_of(event, plan, workloads) {
                tell(phase);
            }
        })
    });
    let diagnosis = diagnosis(machine, &outcome);
    tell(BootPhase::Stopping);
    let result = both(outcome, machine.stop());
    let took = stopwatch.elapsed();
    tell(BootPhase::Done { took, completed: result.is_ok() });
    let console = machine.console() + &diagnosis;
    BootEnd { ready, first_sample, took, result, console }
}

/// A crash after the end marker still spoils the boot. An earlier failure is the one to report, and
/// what the guest's end came to with it: something of it may be left.
fn both(
    outcome: Result<BootResult, Failure>,
    stopped: Result<(), Failure>,
) -> Result<BootResult, Failure> {
    match (outcome, stopped) {
        (outcome, Ok(())) => outcome,
        (Ok(_), Err(stopped)) => Err(stopped),
        (Err(first), Err(stopped)) => Err(first.detail(format!("then: {stopped}"))),
    }
}

fn carry_out(
    machine: &mut dyn Machine,
    plan: &GuestPlan,
    wanted: &Topology,
    seat: Option<Seat>,
    on_event: &mut dyn FnMut(&Event),
) -> Result<BootResult, Failure> {
    let stream = AgentStream::new(plan);
    let noise = TrialsNoise::new(machine.probe());
    let mut trials = Trials { stream, noise, plan, wanted, seat, waiting: None, on_event };
    let end = machine.exec(&format!("{AGENT_PATH} run {PLAN_PATH}"), &mut trials)?;
    let Trials { stream, noise, .. } = trials;
    let ended_badly = match end {
        ExecEnd::Status(0) => None,
        ExecEnd::Status(status) => Some(format!("the agent ended with exit status {status}")),
        ExecEnd::Signal(signal) => Some(format!("the agent was ended by signal {signal}")),
    };
    match (stream.finish(), ended_badly) {
        (Ok(result), None) => Ok(BootResult { noise: noise.found, ..result }),
        (Ok(_), Some(how)) => Err(Failure::new(FailureClass::WorkloadFailed, how)),
        (Err(failure), Some(how)) => Err(failure.detail(how)),
        (Err(failure), None) => Err(failure),
    }
}

/// Listens to the agent, and tells it to go on where guests run together.
struct Trials<'a> {
    stream: AgentStream,
    noise: TrialsNoise,
    plan: &'a GuestPlan,
    wanted: &'a Topology,
    seat: Option<Seat>,
    /// The trial whose kept iterations wait.
    waiting: Option<u32>,
    on_event: &'a mut dyn FnMut(&Event),
}

impl Trials<'_> {
    fn place(&self, id: u32) -> Option<usize> {
        self.plan.trials.iter().position(|trial| trial.id == id)
    }
}

impl Dialogue for Trials<'_> {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        let event = self.stream.line(line)?;
        match &event {
            Event::Facts(facts) => topology::check(self.wanted, facts)?,
            Event::Waiting { trial, window_ns } => {
                self.waiting = Some(*trial);
                if let (Some(seat), Some(place)) = (&self.seat, self.place(*trial)) {
                    seat.waits(place, *window_ns);
                }
            }
            Event::TrialEnd { trial, .. } => {
                if let (Some(seat), Some(place)) = (&self.seat, self.place(*trial)) {
                    seat.passed(place);
                }
            }
            _ => {}
        }
        self.noise.event(&event);
        (self.on_event)(&event);
        Ok(())
    }

    fn say(&mut self) -> Option<String> {
        let go = self.seat.as_ref()?.go(self.waiting?)?;
        self.waiting = None;
        self.noise.begin();
        serde_json::to_string(&go).ok().map(|line| line + "\n")
    }
}

/// What the host does during each trial.
struct TrialsNoise {
    probe: HostProbe,
    before: HostReading,
    found: Vec<TrialNoise>,
}

impl TrialsNoise {
    fn new(probe: HostProbe) -> Self {
        Self { probe, before: HostReading::default(), found: Vec::new() }
    }

    fn begin(&mut self) {
        self.before = (self.probe)();
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::TrialBegin { .. } => self.begin(),
            Event::TrialEnd { trial, .. } => {
                let host = self.before.until(&(self.probe)());
                self.found.push(TrialNoise { trial: *trial, host });
            }
            _ => {}
        }
    }
}

pub(super) fn phase_of(event: &Event, plan: &GuestPlan, workloads: &[String]) -> Option<BootPhase> {
    let trial = |id: u32, done: u32| {
        let index = plan.trials.iter().position(|trial| trial.id == id)?;
        let spec = plan.trials.get(index)?;
        let workload = workloads.get(index).unwrap_or(&spec.workload).clone();
        Some(BootPhase::Trial { workload, done, of: spec.warmup + spec.iterations })
    };
    match event {
        Event::Phase { phase: Phase::Knobs } => Some(BootPhase::Knobs),
        Event::Phase { phase: Phase::Settling } => Some(BootPhase::Settling),
        Event::TrialBegin { trial: id } => trial(*id, 0),
        Event::Progress { trial: id, done, .. } => trial(*id, *done),
        _ => None,
    }
}

/// A hang is looked at from outside before the guest is ended; what is seen goes behind its console.
fn diagnosis(machine: &mut dyn Machine, outcome: &Result<BootResult, Failure>) -> String {
    match outcome.as_ref().map_err(|failure| failure.class) {
        Err(FailureClass::SilentHang | FailureClass::ChattyHang) => {
            let lines = machine.diagnose().join("\n");
            format!("\n--- seen from outside before the guest was ended ---\n{lines}\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_reported_and_the_second_is_not_lost() {
        let failure = |class, title: &str| Failure::new(class, title);
        let left = || failure(FailureClass::QemuStuck, "survives SIGKILL");
        assert!(both(Ok(BootResult::default()), Ok(())).is_ok());
        let late = both(Ok(BootResult::default()), Err(left())).unwrap_err();
        assert_eq!(late, left());
        let panic = failure(FailureClass::Panic, "BUG: x");
        let reported = both(Err(panic), Err(left())).unwrap_err();
        assert_eq!(reported.class, FailureClass::Panic);
        assert_eq!(reported.details, ["then: QEMU does not answer: survives SIGKILL"]);
    }
}
