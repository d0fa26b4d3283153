//! One sealed boot, from start to what it gave.

use std::time::Duration;

use kduel_counts::Symbols;
use kduel_protocol::{Event, GuestPlan};

use super::windows;
use crate::boot::{PluginFiles, SealedEnd, SealedSpec, Step, Watch, run_sealed};
use crate::clock::Stopwatch;
use crate::collect::BootResult;
use crate::event::{BootPhase, RunEvent};
use crate::fault::{Failure, FailureClass, Fault};
use crate::host::Qemu;
use crate::run::trial::phase_of;
use crate::run::{AgentStream, topology};

/// How often a boot is done again that an accident spoiled.
const RETRIES: usize = 2;

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
        let mut hung = false;
        for _ in 0..RETRIES {
            let Err(failure) = end.result.as_ref() else { break };
            let hangs = failure.class == FailureClass::SilentHang;
            // A kernel that hangs does so again: its boots are the same to the bit.
            if !(is_accident(failure) || hangs && !hung) || watch.stopped() {
                break;
            }
            hung |= hangs;
            watch.tell(RunEvent::BootFailed {
                boot: self.spec.boot.clone(),
                side: self.spec.side.clone(),
                failure: Box::new(failure.clone()),
                retried: true,
            });
            end = self.once(self.spec, watch);
        }
        if let (Err(failure), Some(_)) = (&end.result, &self.spec.plugin)
            && matches!(failure.class, FailureClass::Panic | FailureClass::Reboot)
            && !watch.stopped()
        {
            let note = "booting it once more without the plugin, to see whether that is to blame";
            watch.tell(RunEvent::Note(format!(
                "{}: {}; {note}",
                self.spec.boot,
                failure.class.words()
            )));
            let plain = SealedSpec { plugin: None, ..self.spec.clone() };
            match self.once(&plain, watch).result {
                Ok(_) => end.result = Err(only_with_plugin(failure)),
                Err(other) if other.fault() == Fault::Rig => end.result = Err(other),
                Err(_) => {}
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
                Event::Facts(facts) => topology::check(&spec.described(), facts)?,
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

/// What somebody did to QEMU, which another boot need not meet.
fn is_accident(failure: &Failure) -> bool {
    matches!(failure.class, FailureClass::QemuKilled | FailureClass::QemuStopped)
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kduel_protocol::{Better, Knobs, PROTOCOL, Sample, Settle, Transcript, Transport};

    use super::*;
    use crate::boot::sealed::testing::{BANNER, player, spec};

    const PANIC: &str = "echo 'Kernel panic - not syncing: x' >> $console; exec sleep 60";

    fn plan() -> GuestPlan {
        GuestPlan {
            protocol: PROTOCOL,
            nonce: "n0".into(),
            knobs: Knobs::default(),
            transport: Transport::Sealed,
            settle: Settle::SEALED,
            deadline_s: None,
            together: false,
            image: None,
            trials: vec![crate::collect::testing::trial(0, "fork-exit")],
            monitors: Vec::new(),
            monitor_terms: Default::default(),
        }
    }

    /// A command that tells a whole transcript with one sample.
    fn transcript() -> String {
        let events = [
            Event::Hello { protocol: PROTOCOL, agent: "0".into() },
            Event::Sample(Sample {
                trial: 0,
                iteration: 0,
                metric: "time".into(),
                unit: "ns".into(),
                better: Better::Lower,
                value: 1.5,
                ops: 1,
            }),
        ];
        let mut transcript = Transcript::default();
        let mut text = String::new();
        for event in &events {
            let line = serde_json::to_string(event).unwrap();
            transcript.add(&line, matches!(event, Event::Sample(_)));
            text.push_str(&format!("{line}\n"));
        }
        let end = serde_json::to_string(&Event::End(transcript.end("n0"))).unwrap();
        format!("cat >> $results <<'END'\n{text}{end}\nEND\n")
    }

    fn counted() -> String {
        let empty = kduel_counts::write(&kduel_counts::Counts::default());
        let octal: String = empty.iter().map(|byte| format!("\\{byte:03o}")).collect();
        format!("printf '{octal}' >> $counts")
    }

    fn played(script: &str) -> (Result<BootResult, Failure>, Vec<FailureClass>) {
        played_within(None, script)
    }

    fn played_within(
        patience: Option<Duration>,
        script: &str,
    ) -> (Result<BootResult, Failure>, Vec<FailureClass>) {
        let (_folder, qemu) = player(script);
        let mut spec = spec();
        spec.topology.cores = 2;
        spec.plugin =
            Some(PluginFiles { library: "/dev/null".into(), symbols: None, chains: false });
        spec.deadlines.shutdown = Duration::from_millis(300);
        if let Some(patience) = patience {
            (spec.deadlines.boot, spec.deadlines.progress) = (patience, patience);
        }
        let (plan, workloads) = (plan(), ["fork-exit".to_owned()]);
        let (retried, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::default());
        let seen = Arc::clone(&retried);
        let listener = Arc::new(move |event| {
            if let RunEvent::BootFailed { failure, retried: true, .. } = event {
                seen.lock().unwrap().push(failure.class);
            }
        });
        let job = ExactBootJob {
            spec: &spec,
            plan: &plan,
            block: 0,
            workloads: &workloads,
            extent: Extent::Whole,
            qemu: &qemu,
        };
        let result = job.run(&Watch { listener, stop }).result;
        let retried = retried.lock().unwrap().clone();
        (result, retried)
    }

    #[test]
    fn a_panic_is_the_kernels_only_if_it_panics_without_the_plugin_too() {
        let always = format!("{BANNER}; {PANIC}");
        assert_eq!(played(&always).0.unwrap_err().class, FailureClass::Panic);
        let told = transcript();
        let failure = played(&format!("{BANNER}; test -z \"$counts\" || {{ {PANIC}; }}\n{told}"))
            .0
            .unwrap_err();
        assert_eq!((failure.class, failure.fault()), (FailureClass::QemuFailed, Fault::Rig));
        assert!(failure.title.contains("only with the counting plugin"), "{failure}");
        assert!(failure.console_tail.iter().any(|line| line.contains("not syncing: x")));
        // Who dies in another way proves nothing about the kernel.
        let killed = format!("{BANNER}; test -n \"$counts\" || kill -KILL $$; {PANIC}");
        assert_eq!(played(&killed).0.unwrap_err().class, FailureClass::QemuKilled);
    }

    #[test]
    fn what_was_stopped_or_killed_is_booted_again() {
        let (told, counted) = (transcript(), counted());
        let once = |how: &str| {
            format!(
                "once=${{0%/*}}/once; {BANNER}; if [ ! -e $once ]; then : > $once; \
                 {{ sleep 0.3; kill -CONT $$; }} & kill -{how} $$; wait; fi\n{told}{counted}"
            )
        };
        for (how, class) in
            [("STOP", FailureClass::QemuStopped), ("KILL", FailureClass::QemuKilled)]
        {
            let (result, retried) = played(&once(how));
            assert_eq!(retried, [class]);
            result.unwrap();
        }
        let (result, retried) = played(&format!("{BANNER}; kill -KILL $$"));
        assert_eq!(result.unwrap_err().class, FailureClass::QemuKilled);
        assert_eq!(retried.len(), RETRIES);
    }

    /// QEMU was seen to stand still once in some hundred boots of four vCPUs on a loaded host.
    #[test]
    fn a_hang_is_the_kernels_only_if_it_hangs_again() {
        let (told, counted) = (transcript(), counted());
        let hangs = "sleep 60";
        let once = format!(
            "once=${{0%/*}}/once; {BANNER}; if [ ! -e $once ]; then : > $once; {hangs}; fi\n\
             {told}{counted}"
        );
        let patience = Some(Duration::from_secs(3));
        let (result, retried) = played_within(patience, &once);
        assert_eq!(retried, [FailureClass::SilentHang]);
        result.unwrap();
        let (result, retried) = played_within(patience, &format!("{BANNER}; {hangs}"));
        assert_eq!(result.unwrap_err().class, FailureClass::SilentHang);
        assert_eq!(retried, [FailureClass::SilentHang]);
    }

    #[test]
    fn counts_that_are_damaged_make_no_result() {
        let script = format!("{BANNER}; {}{}; echo x >> $counts", transcript(), counted());
        assert_eq!(played(&script).0.unwrap_err().class, FailureClass::OutputMalformed);
        let none = format!("{BANNER}; {}", transcript());
        assert_eq!(played(&none).0.unwrap_err().class, FailureClass::OutputMalformed);
    }
}
