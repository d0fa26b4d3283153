//! One sealed boot, from start to what it gave.

use std::time::Duration;

use kduel_counts::Symbols;
use kduel_protocol::{Event, GuestPlan};

use super::windows;
use crate::boot::{PluginFiles, SealedEnd, SealedSpec, Step, Watch, run_sealed};
use crate::clock::Stopwatch;
use crate::collect::BootResult;
use crate::event::{BootPhase, RunEvent};
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::run::trial::phase_of;
use crate::run::{AgentStream, topology};

/// How much of its plan a guest carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// Up to the end of the first trial; then it is ended from outside, which no digit before knows.
    FirstTrial,
}

/// What a sealed boot came to.
#[derive(Debug)]
pub struct ExactEnd {
    /// From start to the agent's first line.
    pub ready: Option<Duration>,
    /// From start to the first sample.
    pub first_sample: Option<Duration>,
    /// From start to proof of the end.
    pub took: Duration,
    /// What it gave.
    pub result: Result<BootResult, Failure>,
    /// Its console, raw.
    pub console: String,
    /// What the plugin wrote.
    pub counts: Vec<u8>,
    /// What could not be counted, in sentences.
    pub lost: Vec<String>,
    /// Features of the CPU model that QEMU's translator lacks.
    pub dropped: Vec<String>,
}

impl ExactEnd {
    /// Of a boot that was never started.
    pub fn failed(failure: Failure) -> Self {
        Self {
            ready: None,
            first_sample: None,
            took: Duration::ZERO,
            result: Err(failure),
            console: String::new(),
            counts: Vec::new(),
            lost: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

/// One boot to do.
#[derive(Debug)]
pub struct ExactBootJob<'a> {
    /// The guest.
    pub spec: &'a SealedSpec,
    /// What it carries.
    pub plan: &'a GuestPlan,
    /// The block, for those who watch.
    pub block: usize,
    /// Labels of the plan's trials.
    pub workloads: &'a [String],
    /// How far it goes.
    pub extent: Extent,
    /// What boots it.
    pub qemu: &'a Qemu,
}

impl ExactBootJob<'_> {
    /// Boots, and joins counts to samples. Blocks; the guest is gone afterwards whatever happened.
    pub fn run(&self, watch: &Watch) -> ExactEnd {
        let mut end = self.once(self.spec, watch);
        if let (Err(failure), Some(_)) = (&end.result, &self.spec.plugin)
            && matches!(failure.class, FailureClass::Panic | FailureClass::Reboot)
            && !watch.stopped()
        {
            let plain = SealedSpec { plugin: None, ..self.spec.clone() };
            if self.once(&plain, watch).result.is_ok() {
                end.result = Err(only_with_plugin(failure));
            }
        }
        end
    }

    fn once(&self, spec: &SealedSpec, watch: &Watch) -> ExactEnd {
        let stopwatch = Stopwatch::start();
        let tell = |phase: BootPhase| {
            watch.tell(RunEvent::Boot {
                boot: spec.boot.clone(),
                side: spec.side.clone(),
                block: self.block,
                phase,
            });
        };
        tell(BootPhase::Booting);
        let (mut ready, mut first_sample) = (None, None);
        let mut stream = AgentStream::new(self.plan);
        let end = run_sealed(spec, self.qemu, watch, &mut |line| {
            let event = stream.line(line)?;
            if ready.is_none() {
                ready = Some(stopwatch.elapsed());
                tell(BootPhase::Ready { after: stopwatch.elapsed() });
            }
            match &event {
                Event::Facts(facts) => topology::check(&spec.topology, facts)?,
                Event::Sample(_) => _ = first_sample.get_or_insert_with(|| stopwatch.elapsed()),
                _ => {}
            }
            if let Some(phase) = phase_of(&event, self.plan, self.workloads) {
                tell(phase);
            }
            let first_ended = matches!(event, Event::TrialEnd { .. });
            let enough = self.extent == Extent::FirstTrial && first_ended;
            Ok(if enough { Step::Enough } else { Step::On })
        });
        let took = stopwatch.elapsed();
        let (result, lost) = match self.outcome(stream, spec.plugin.as_ref(), &end) {
            Ok((result, lost)) => (Ok(result), lost),
            Err(failure) => (Err(failure), Vec::new()),
        };
        tell(BootPhase::Done { took, completed: result.is_ok() });
        let SealedEnd { console, counts, dropped, .. } = end;
        ExactEnd { ready, first_sample, took, result, console, counts, lost, dropped }
    }

    fn outcome(
        &self,
        stream: AgentStream,
        plugin: Option<&PluginFiles>,
        end: &SealedEnd,
    ) -> Result<(BootResult, Vec<String>), Failure> {
        end.outcome.clone()?;
        let mut result = match self.extent {
            Extent::Whole => stream.finish()?,
            Extent::FirstTrial => stream.so_far(),
        };
        let Some(plugin) = plugin else { return Ok((result, Vec::new())) };
        let counts = kduel_counts::read(&end.counts).map_err(|error| {
            Failure::new(FailureClass::OutputMalformed, format!("the plugin's counts: {error}"))
        })?;
        let symbols = symbols(plugin)?;
        let trials = match self.extent {
            Extent::Whole => &self.plan.trials[..],
            Extent::FirstTrial => &self.plan.trials[..self.plan.trials.len().min(1)],
        };
        windows::join(&mut result, &counts, &symbols, trials);
        let mut lost = windows::lost(&counts.shortfall);
        lost.extend(counts.chains.as_ref().and_then(windows::lost_chains));
        Ok((result, lost))
    }
}

fn symbols(plugin: &PluginFiles) -> Result<Symbols, Failure> {
    let Some(path) = &plugin.symbols else { return Ok(Symbols::default()) };
    let text = std::fs::read_to_string(path).map_err(|e| Failure::host_io("read", path, &e))?;
    Symbols::parse(&text).map_err(|error| {
        Failure::new(FailureClass::OutputMalformed, format!("{}: {error}", path.display()))
    })
}

/// A guest that lives without the plugin was not killed by its kernel.
fn only_with_plugin(failure: &Failure) -> Failure {
    let title = format!("the guest dies only with the counting plugin: {}", failure.title);
    let mut found = Failure::new(FailureClass::QemuFailed, title)
        .hint("this is a fault of QEMU or of the plugin, not of the kernel: please report it");
    found.details.clone_from(&failure.details);
    found.console_tail.clone_from(&failure.console_tail);
    found
}
