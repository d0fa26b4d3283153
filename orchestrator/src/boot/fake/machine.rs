use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use kduel_protocol::{Event, GuestPlan};

use super::script::{BootScript, Script};
use super::transcript::Writer;
use crate::boot::lines::OutputLines;
use crate::boot::{Dialogue, ExecEnd, GuestSpec, HostProbe, Machine, Watch};
use crate::clock::Deadline;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass};
use crate::host::noise::{HostReading, ThreadReading};

const PAUSE: Duration = Duration::from_millis(5);

/// Plays a [`Script`]. Every command is taken for the agent's run of the plan.
pub struct FakeMachine {
    spec: GuestSpec,
    plan: GuestPlan,
    script: Arc<Script>,
    watch: Watch,
    boot: BootScript,
    booted: bool,
    console: String,
}

impl FakeMachine {
    /// A guest of `spec` that was given `plan` to carry out.
    pub fn new(spec: GuestSpec, plan: GuestPlan, script: Arc<Script>, watch: Watch) -> Self {
        let boot = script.boot(&spec.boot, &spec.side);
        Self { spec, plan, script, watch, boot, booted: false, console: String::new() }
    }

    /// Waits, and says if somebody wants to stop.
    fn pause(&self, milliseconds: u64) -> Result<(), Failure> {
        let deadline = Deadline::after(Duration::from_millis(milliseconds));
        loop {
            if self.watch.stopped() && !self.boot.deaf {
                return Err(Failure::new(FailureClass::Interrupted, "stopped before it was done"));
            }
            if deadline.passed() {
                return Ok(());
            }
            std::thread::sleep(PAUSE.min(deadline.left()));
        }
    }

    /// A script knows no windows: being told is all there is to it.
    fn wait_for_go(&self, dialogue: &mut dyn Dialogue) -> Result<(), Failure> {
        while dialogue.say().is_none() {
            self.pause(1)?;
        }
        Ok(())
    }

    fn print(&mut self, lines: &[String]) {
        for line in lines {
            self.console.push_str(line);
            self.console.push('\n');
            let event = RunEvent::Console { side: self.spec.side.clone(), line: line.clone() };
            self.watch.tell(event);
        }
    }

    fn failed(&self, failure: &Failure) -> Failure {
        let mut failure = failure.clone();
        if failure.console_tail.is_empty() {
            failure.console_tail = self.console.lines().map(str::to_owned).collect();
        }
        failure
    }

    fn ready(&self) -> Result<(), Failure> {
        match self.booted {
            true => Ok(()),
            false => Err(Failure::new(FailureClass::Internal, "the guest is not connected")),
        }
    }
}

/// Whether an agent that said this waits to be told when to go on.
fn is_waiting(line: &[u8]) -> bool {
    matches!(serde_json::from_slice(line), Ok(Event::Waiting { .. }))
}

impl Machine for FakeMachine {
    fn boot(&mut self) -> Result<(), Failure> {
        let BootScript { console, ready_after_ms, boot_failure, .. } = self.boot.clone();
        self.print(&console);
        self.pause(ready_after_ms)?;
        if let Some(failure) = boot_failure {
            return Err(self.failed(&failure));
        }
        self.booted = true;
        Ok(())
    }

    fn push(&mut self, _path: &str, _content: &[u8]) -> Result<(), Failure> {
        self.ready()
    }

    fn exec(&mut self, _command: &str, dialogue: &mut dyn Dialogue) -> Result<ExecEnd, Failure> {
        self.ready()?;
        let boot = self.boot.clone();
        self.print(&boot.console_running);
        let (spec, plan, script) = (&self.spec, &self.plan, &*self.script);
        let mut output = Writer { spec, plan, script, boot: &boot }.lines();
        for tamper in &boot.tamper {
            tamper.apply(&mut output);
        }
        let cut_off = |given: usize| match &boot.cut_off {
            Some(cut) if cut.after_lines <= given => Err(self.failed(&cut.failure)),
            _ => Ok(()),
        };
        let mut lines = OutputLines::default();
        for (given, line) in output.iter().enumerate() {
            cut_off(given)?;
            self.pause(boot.line_after_ms)?;
            lines.feed(line, &mut |line| dialogue.line(line))?;
            if is_waiting(line) {
                self.wait_for_go(dialogue)?;
            }
        }
        cut_off(usize::MAX)?;
        lines.end(&mut |line| dialogue.line(line))?;
        if boot.hang {
            self.pause(u64::MAX)?;
        }
        Ok(boot.signal.map_or(ExecEnd::Status(boot.status), ExecEnd::Signal))
    }

    fn diagnose(&mut self) -> Vec<String> {
        vec!["run state: played from a script".to_owned()]
    }

    fn stop(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.booted) {
            return Ok(());
        }
        self.boot.stop_failure.as_ref().map_or(Ok(()), |failure| Err(self.failed(failure)))
    }

    /// Each look is a second after the one before.
    fn probe(&self) -> HostProbe {
        let (looks, steal) = (Cell::new(0), self.boot.steal);
        Box::new(move || {
            let seconds = looks.replace(looks.get() + 1);
            let thread = ThreadReading {
                tid: 1,
                on_cpu_ns: seconds * (100 - steal) * 10_000_000,
                delay_ns: seconds * steal * 10_000_000,
                ..ThreadReading::default()
            };
            HostReading {
                at_ns: seconds * 1_000_000_000,
                threads: vec![thread],
                ..HostReading::default()
            }
        })
    }

    fn console(&self) -> String {
        self.console.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use kduel_protocol::{
        CommandSpec, Knobs, Monitor, PROTOCOL, Settle, Topology, Transcript, Transport, TrialSpec,
    };

    use super::*;
    use crate::boot::{Accel, Deadlines, Grants, SshIdentity};
    use crate::id::BootId;

    fn trial(id: u32, workload: &str, command: Option<CommandSpec>) -> TrialSpec {
        TrialSpec {
            id,
            workload: workload.into(),
            params: Default::default(),
            command,
            warmup: 1,
            iterations: 3,
            min_interval_ns: 0,
            deadline_s: 10,
        }
    }

    fn plan() -> GuestPlan {
        let command: CommandSpec = serde_json::from_str(r#"{"argv": ["true"]}"#).unwrap();
        GuestPlan {
            protocol: PROTOCOL,
            nonce: "abc".into(),
            knobs: Knobs { sysctl: [("a.b".into(), "1".into())].into(), ..Knobs::default() },
            together: false,
            transport: Transport::Ssh,
            settle: Settle::first_quiet_second(1),
            deadline_s: None,
            image: None,
            trials: vec![
                trial(0, "fork-exit", None),
                trial(1, "hackbench", None),
                trial(2, "command", Some(command)),
            ],
            monitors: vec![Monitor::Vmstat],
            monitor_terms: Default::default(),
        }
    }

    fn spec(side: &str, block: usize) -> GuestSpec {
        GuestSpec {
            boot: BootId::new("adhoc", block, side, 0),
            side: side.into(),
            image: "x".into(),
            initramfs: "x".into(),
            overlay: Vec::new(),
            disk: None,
            cmdline: "console=ttyS0".into(),
            topology: Topology { cores: 2, threads: 2, ..Topology::default() },
            cpu_flags: Vec::new(),
            accel: Accel::Tcg,
            grants: Grants::default(),
            nonce: "abc".into(),
            ssh: SshIdentity {
                host_key_blob: Vec::new(),
                client_private_pem: String::new(),
                client_public_line: String::new(),
            },
            deadlines: Deadlines::of(Accel::Tcg),
            placement: None,
        }
    }

    fn machine(side: &str, block: usize, script: &str) -> FakeMachine {
        let script = Arc::new(serde_yaml::from_str(script).unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        FakeMachine::new(
            spec(side, block),
            plan(),
            script,
            Watch { listener: Arc::new(|_| {}), stop },
        )
    }

    /// All lines of the agent's run, and how it ended.
    fn run(machine: &mut FakeMachine) -> (Vec<String>, Result<ExecEnd, Failure>) {
        let lines = Mutex::new(Vec::new());
        let end = machine.exec("agent", &mut |line: &str| {
            lines.lock().unwrap().push(line.to_owned());
            Ok(())
        });
        (lines.into_inner().unwrap(), end)
    }

    fn values(side: &str, block: usize, script: &str) -> Vec<f64> {
        let mut machine = machine(side, block, script);
        machine.boot().unwrap();
        let events =
            run(&mut machine).0.into_iter().map(|line| serde_json::from_str(&line).unwrap());
        let samples = events.filter_map(|event| match event {
            Event::Sample(sample) if sample.trial == 0 => Some(sample.value),
            _ => None,
        });
        samples.collect()
    }

    #[test]
    fn an_unscripted_boot_gives_a_transcript_that_proves_itself() {
        let mut machine = machine("base", 0, "{}");
        machine.boot().unwrap();
        let (lines, end) = run(&mut machine);
        assert_eq!(end, Ok(ExecEnd::Status(0)));
        let mut transcript = Transcript::default();
        let mut samples = 0;
        for line in &lines {
            match serde_json::from_str(line).unwrap() {
                Event::End(end) => assert_eq!(transcript.check(&end, "abc"), Ok(())),
                Event::Sample(_) => {
                    samples += 1;
                    transcript.add(line, true);
                }
                _ => transcript.add(line, false),
            }
        }
        assert!(lines.last().unwrap().contains("\"end\""));
        assert_eq!(samples, 3 + 2 * 3 + 4 * 3);
        assert_eq!(machine.stop(), Ok(()));
    }

    #[test]
    fn values_follow_factor_and_noise_and_never_change() {
        let script =
            "{noise: 0.01, values: {fork-exit: 2000}, sides: {patched: {factor: {all: 1.5}}}}";
        let (base, patched) = (values("base", 1, script), values("patched", 1, script));
        assert!(base.iter().all(|value| (1960.0..=2040.0).contains(value)), "{base:?}");
        assert!(patched.iter().all(|value| (2940.0..=3060.0).contains(value)), "{patched:?}");
        assert_eq!(base, values("base", 1, script));
        assert_ne!(base, values("base", 2, script));
        let given = "{sides: {base: {samples: {fork-exit: {time: [1, 2]}}}}}";
        assert_eq!(values("base", 0, given), [1.0, 2.0, 1.0]);
    }

    #[test]
    fn every_class_of_failure_can_end_boot_command_and_stop() {
        for class in ["panic", "chatty-hang", "qemu-killed", "wrong-host-key", "ssh-cut", "host-io"]
        {
            let failure = format!("{{class: {class}, title: t}}");
            let mut boot =
                machine("b", 0, &format!("boots: [{{console: [x], boot-failure: {failure}}}]"));
            let seen = boot.boot().unwrap_err();
            assert_eq!((seen.title.as_str(), seen.console_tail), ("t", vec!["x".to_owned()]));

            let cut = format!("boots: [{{cut-off: {{after-lines: 2, failure: {failure}}}}}]");
            let mut exec = machine("b", 0, &cut);
            exec.boot().unwrap();
            let (lines, end) = run(&mut exec);
            assert_eq!((lines.len(), end.unwrap_err().title.as_str()), (2, "t"));

            let mut stop = machine("b", 0, &format!("boots: [{{stop-failure: {failure}}}]"));
            stop.boot().unwrap();
            assert_eq!(stop.stop().unwrap_err().title, "t");
            assert_eq!(stop.stop(), Ok(()));
        }
    }

    #[test]
    fn output_beyond_its_bounds_and_no_text_is_refused() {
        for (tamper, class) in [
            ("oversize", FailureClass::OutputOversized),
            ("flood", FailureClass::OutputOversized),
            ("garble", FailureClass::OutputMalformed),
        ] {
            let script = format!("boots: [{{tamper: [{{do: {tamper}, line: 4}}]}}]");
            let mut machine = machine("b", 0, &script);
            machine.boot().unwrap();
            assert_eq!(run(&mut machine).1.unwrap_err().class, class);
        }
    }

    #[test]
    fn knobs_trials_and_the_agent_itself_can_fail() {
        let script = "boots: [{knobs-not-taken: [a.b], problems: [{workload: hackbench, \
                      problem: {kind: timed-out, after-s: 5}}], status: 3}]";
        let mut one = machine("b", 0, script);
        one.boot().unwrap();
        let (lines, end) = run(&mut one);
        assert_eq!(end, Ok(ExecEnd::Status(3)));
        let text = lines.join("\n");
        assert!(text.contains("\"took\":false") && text.contains("timed-out"));
        let mut other = machine("b", 0, "boots: [{agent-failed: no plan, signal: KILL}]");
        other.boot().unwrap();
        let (lines, end) = run(&mut other);
        assert_eq!((lines.len(), end), (3, Ok(ExecEnd::Signal("KILL".into()))));
    }

    #[test]
    fn a_hang_ends_when_somebody_wants_to_stop() {
        let mut machine = machine("b", 0, "boots: [{hang: true}]");
        machine.boot().unwrap();
        let stop = Arc::clone(&machine.watch.stop);
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(run(&mut machine).1.unwrap_err().class, FailureClass::Interrupted);
    }
}
