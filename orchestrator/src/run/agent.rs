//! Reads what the agent says, and believes it only as far as the end marker proves.

use std::collections::BTreeSet;

use kduel_protocol::{
    Event, GuestPlan, KnobReading, MAX_LINE_BYTES, PROTOCOL, Sample, Transcript, TranscriptError,
    TrialProblem,
};

use crate::collect::{
    BootResult, Distribution, KernelLog, MonitorRows, Monitored, Stacks, TrialFailure,
};
use crate::fault::{Failure, FailureClass};

/// More samples and distribution values than this from one boot are refused: memory is bounded.
const MAX_VALUES: usize = 2_000_000;

/// Collects the events of one boot.
#[derive(Debug)]
pub struct AgentStream {
    nonce: String,
    trials: BTreeSet<u32>,
    transcript: Transcript,
    result: BootResult,
    values: usize,
    greeted: bool,
    ended: bool,
}

impl AgentStream {
    /// For the boot that carries `plan`.
    pub fn new(plan: &GuestPlan) -> Self {
        Self {
            nonce: plan.nonce.clone(),
            trials: plan.trials.iter().map(|trial| trial.id).collect(),
            transcript: Transcript::default(),
            result: BootResult::default(),
            values: 0,
            greeted: false,
            ended: false,
        }
    }

    /// Takes one line, without its newline, and gives the event in it.
    ///
    /// # Errors
    ///
    /// `OutputOversized` or `OutputMalformed`; `WorkloadFailed` if the agent gave up;
    /// `KnobNotTaken` from the end marker on if a knob reads back differently.
    pub fn line(&mut self, line: &str) -> Result<Event, Failure> {
        if line.len() >= MAX_LINE_BYTES {
            let title = format!("a line of {} bytes, at most {MAX_LINE_BYTES} allowed", line.len());
            return Err(Failure::new(FailureClass::OutputOversized, title));
        }
        if self.ended {
            return Err(malformed("a line after the end marker", line));
        }
        let event: Event =
            serde_json::from_str(line).map_err(|error| malformed(&error.to_string(), line))?;
        if let Event::End(end) = &event {
            self.transcript.check(end, &self.nonce).map_err(|error| unproven(&error))?;
            self.ended = true;
            return Ok(event);
        }
        self.transcript.add(line, matches!(event, Event::Sample(_)));
        if !self.greeted && !matches!(event, Event::Hello { .. }) {
            return Err(malformed("the first line is no greeting", line));
        }
        self.take(&event, line)?;
        Ok(event)
    }

    fn take(&mut self, event: &Event, line: &str) -> Result<(), Failure> {
        match event {
            Event::Hello { protocol, agent } => self.greet(*protocol, agent)?,
            Event::Facts(facts) => self.result.facts = (**facts).clone(),
            Event::Knob(reading) => self.result.knobs.push(reading.clone()),
            Event::Settled { waited_ms, idle, busy } => {
                self.result.settled_ms = *waited_ms;
                self.result.idle = *idle;
                self.result.busy.clone_from(busy);
            }
            Event::Sample(sample) => self.sample(sample, line)?,
            Event::Distribution { trial, iteration, metric, unit, values } => {
                self.known(*trial, line)?;
                self.count(values.len())?;
                if values.iter().any(|value| !value.is_finite()) {
                    return Err(malformed("a value that is not finite", line));
                }
                self.result.distributions.push(Distribution {
                    trial: *trial,
                    iteration: *iteration,
                    metric: metric.clone(),
                    unit: unit.clone(),
                    values: values.clone(),
                });
            }
            Event::Monitored { .. }
            | Event::Rows { .. }
            | Event::Stacks { .. }
            | Event::KernelLog { .. } => self.watched(event, line)?,
            Event::TrialEnd { trial, problem } => {
                self.known(*trial, line)?;
                if let Some(problem) = problem {
                    self.failed_trial(*trial, problem);
                }
            }
            Event::TrialBegin { trial }
            | Event::Waiting { trial, .. }
            | Event::Progress { trial, .. } => {
                self.known(*trial, line)?;
            }
            Event::After(after) => self.result.after = Some(after.clone()),
            Event::Failed { message } => {
                return Err(Failure::new(FailureClass::WorkloadFailed, message.clone()));
            }
            Event::Phase { .. } | Event::Kept { .. } | Event::End(_) => {}
        }
        Ok(())
    }

    /// What monitors say.
    fn watched(&mut self, event: &Event, line: &str) -> Result<(), Failure> {
        match event.clone() {
            Event::Monitored { trial, deltas, elapsed_ns, monitor, ops, absent } => {
                self.known(trial, line)?;
                self.count(deltas.len())?;
                let seen = Monitored { trial, deltas, elapsed_ns, monitor, ops, absent };
                self.result.monitored.push(seen);
            }
            Event::Rows { trial, monitor, columns, rows } => {
                self.known(trial, line)?;
                self.count(rows.iter().map(Vec::len).sum())?;
                if rows.iter().any(|row| row.len() != columns.len() + 1) {
                    return Err(malformed("a row with more or fewer values than columns", line));
                }
                self.result.rows.push(MonitorRows { trial, monitor, columns, rows });
            }
            Event::Stacks { trial, period_ns, clock, stacks, lost } => {
                self.known(trial, line)?;
                self.count(stacks.len())?;
                self.result.stacks.push(Stacks { trial, period_ns, clock, stacks, lost });
            }
            Event::KernelLog { trial, kind, title, lines } => {
                self.known(trial, line)?;
                self.count(lines.len())?;
                self.result.kernel_log.push(KernelLog { trial, kind, title, lines });
            }
            _ => {}
        }
        Ok(())
    }

    fn greet(&mut self, protocol: u32, agent: &str) -> Result<(), Failure> {
        if protocol != PROTOCOL {
            let title =
                format!("agent {agent} speaks protocol {protocol}, this kduel speaks {PROTOCOL}");
            return Err(Failure::new(FailureClass::OutputMalformed, title)
                .hint("build both from one source: cargo xtask build"));
        }
        self.greeted = true;
        Ok(())
    }

    fn sample(&mut self, sample: &Sample, line: &str) -> Result<(), Failure> {
        self.known(sample.trial, line)?;
        self.count(1)?;
        if !sample.value.is_finite() {
            return Err(malformed("a sample that is not finite", line));
        }
        self.result.samples.push(sample.clone());
        Ok(())
    }

    fn failed_trial(&mut self, trial: u32, problem: &TrialProblem) {
        self.result.samples.retain(|sample| sample.trial != trial);
        self.result.distributions.retain(|distribution| distribution.trial != trial);
        let failure = match problem {
            TrialProblem::Failed { message } => {
                Failure::new(FailureClass::WorkloadFailed, message.clone())
            }
            TrialProblem::Unsupported { message } => {
                Failure::new(FailureClass::Unsupported, message.clone())
            }
            TrialProblem::TimedOut { after_s } => Failure::new(
                FailureClass::WorkloadFailed,
                format!("not finished after {after_s} s"),
            ),
        };
        self.result.failed_trials.push(TrialFailure { trial, failure });
    }

    fn known(&self, trial: u32, line: &str) -> Result<(), Failure> {
        if self.trials.contains(&trial) {
            return Ok(());
        }
        Err(malformed("a trial that is not in the plan", line))
    }

    fn count(&mut self, values: usize) -> Result<(), Failure> {
        self.values += values;
        if self.values > MAX_VALUES {
            let title = format!("more than {MAX_VALUES} values from one boot");
            return Err(Failure::new(FailureClass::OutputOversized, title));
        }
        Ok(())
    }

    /// What came so far, proven by nothing: for a guest that was ended on purpose.
    pub fn so_far(self) -> BootResult {
        self.result
    }

    /// The result, if the end marker proved it whole.
    ///
    /// # Errors
    ///
    /// `OutputTruncated` without an end marker; `KnobNotTaken` if a knob reads back differently.
    pub fn finish(self) -> Result<BootResult, Failure> {
        if !self.ended {
            let title = "the output ends before the end marker";
            return Err(Failure::new(FailureClass::OutputTruncated, title));
        }
        let missed: Vec<&KnobReading> =
            self.result.knobs.iter().filter(|knob| !knob.took).collect();
        let Some(first) = missed.first() else {
            return Ok(self.result);
        };
        let title = format!("{} {}", first.kind.key(), first.name);
        let failure =
            missed.iter().fold(Failure::new(FailureClass::KnobNotTaken, title), |failure, knob| {
                failure.detail(format!(
                    "{} {}: wanted {}, found {}",
                    knob.kind.key(),
                    knob.name,
                    quoted(&knob.wanted),
                    quoted(&knob.found),
                ))
            });
        Err(failure.hint("`kduel shell SIDE` boots this side to look around"))
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { "nothing".to_owned() } else { format!("`{text}`") }
}

fn malformed(why: &str, line: &str) -> Failure {
    let start: String = line.chars().take(120).collect();
    Failure::new(FailureClass::OutputMalformed, why.to_owned()).detail(format!("in: {start}"))
}

fn unproven(error: &TranscriptError) -> Failure {
    let title = match error {
        TranscriptError::Nonce => "the end marker is not of this boot".to_owned(),
        TranscriptError::Count { said, seen } => format!(
            "{} lines with {} samples were sent, {} with {} arrived",
            said.0, said.1, seen.0, seen.1
        ),
        TranscriptError::Checksum => "the checksum does not fit".to_owned(),
    };
    Failure::new(FailureClass::OutputMalformed, title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kduel_protocol::{Better, KnobKind, Knobs, Settle, Transport, TrialSpec};

    fn plan() -> GuestPlan {
        GuestPlan {
            protocol: PROTOCOL,
            nonce: "n0".into(),
            knobs: Knobs::default(),
            together: false,
            transport: Transport::Ssh,
            settle: Settle::first_quiet_second(0),
            deadline_s: None,
            image: None,
            trials: vec![TrialSpec {
                id: 7,
                workload: "fork-exit".into(),
                params: Default::default(),
                command: None,
                warmup: 0,
                iterations: 1,
                min_interval_ns: 1,
                deadline_s: 1,
            }],
            monitors: Vec::new(),
            monitor_terms: Default::default(),
        }
    }

    fn lines(events: &[Event], nonce: &str) -> Vec<String> {
        let mut transcript = Transcript::default();
        let mut lines: Vec<String> = events
            .iter()
            .map(|event| {
                let line = serde_json::to_string(event).unwrap();
                transcript.add(&line, matches!(event, Event::Sample(_)));
                line
            })
            .collect();
        lines.push(serde_json::to_string(&Event::End(transcript.end(nonce))).unwrap());
        lines
    }

    fn hello() -> Event {
        Event::Hello { protocol: PROTOCOL, agent: "0".into() }
    }

    fn sample(value: f64) -> Event {
        Event::Sample(Sample {
            trial: 7,
            iteration: 0,
            metric: "time".into(),
            unit: "ns".into(),
            better: Better::Lower,
            value,
            ops: 1,
        })
    }

    fn read(lines: &[String]) -> Result<BootResult, Failure> {
        let mut stream = AgentStream::new(&plan());
        for line in lines {
            stream.line(line)?;
        }
        stream.finish()
    }

    #[test]
    fn a_whole_transcript_gives_its_samples() {
        let result = read(&lines(&[hello(), sample(1.5), sample(2.5)], "n0")).unwrap();
        assert_eq!(result.samples.iter().map(|s| s.value).collect::<Vec<_>>(), [1.5, 2.5]);
    }

    #[test]
    fn what_is_lost_doubled_swapped_or_changed_is_seen() {
        let whole = lines(&[hello(), sample(1.5), sample(2.5)], "n0");
        let class = |lines: &[String]| read(lines).unwrap_err().class;
        assert_eq!(class(&whole[..3]), FailureClass::OutputTruncated);
        let lost = [whole[0].clone(), whole[2].clone(), whole[3].clone()];
        assert_eq!(class(&lost), FailureClass::OutputMalformed);
        let mut doubled = whole.clone();
        doubled.insert(1, whole[1].clone());
        assert_eq!(class(&doubled), FailureClass::OutputMalformed);
        let mut swapped = whole.clone();
        swapped.swap(1, 2);
        assert_eq!(class(&swapped), FailureClass::OutputMalformed);
        let mut changed = whole.clone();
        changed[1] = changed[1].replace("1.5", "1.6");
        assert_eq!(class(&changed), FailureClass::OutputMalformed);
        let mut after = whole;
        after.push(after[1].clone());
        assert_eq!(class(&after), FailureClass::OutputMalformed);
    }

    #[test]
    fn an_end_marker_of_another_boot_proves_nothing() {
        let failure = read(&lines(&[hello(), sample(1.0)], "other")).unwrap_err();
        assert_eq!(failure.class, FailureClass::OutputMalformed);
        assert!(failure.title.contains("not of this boot"));
    }

    #[test]
    fn strangers_and_giants_are_refused() {
        let mut stream = AgentStream::new(&plan());
        let long = "x".repeat(MAX_LINE_BYTES);
        assert_eq!(stream.line(&long).unwrap_err().class, FailureClass::OutputOversized);
        assert_eq!(stream.line("nonsense").unwrap_err().class, FailureClass::OutputMalformed);
        let unknown = Event::TrialBegin { trial: 99 };
        assert_eq!(
            read(&lines(&[hello(), unknown], "n0")).unwrap_err().class,
            FailureClass::OutputMalformed
        );
        let old = Event::Hello { protocol: PROTOCOL + 1, agent: "9".into() };
        assert!(read(&lines(&[old], "n0")).unwrap_err().title.contains("protocol"));
        assert!(read(&lines(&[sample(1.0)], "n0")).unwrap_err().title.contains("greeting"));
    }

    #[test]
    fn knobs_that_did_not_take_are_all_named() {
        let knob = |name: &str, took| {
            Event::Knob(KnobReading {
                kind: KnobKind::Sysctl,
                name: name.into(),
                wanted: "1".into(),
                found: if took { "1".into() } else { "0".into() },
                took,
            })
        };
        let events =
            [hello(), knob("kernel.a", false), knob("kernel.b", true), knob("vm.c", false)];
        let failure = read(&lines(&events, "n0")).unwrap_err();
        assert_eq!(failure.class, FailureClass::KnobNotTaken);
        assert_eq!(
            failure.details,
            ["sysctl kernel.a: wanted `1`, found `0`", "sysctl vm.c: wanted `1`, found `0`"]
        );
    }

    #[test]
    fn samples_of_a_failed_trial_do_not_count() {
        let end = Event::TrialEnd {
            trial: 7,
            problem: Some(TrialProblem::Failed { message: "exit status 3".into() }),
        };
        let result = read(&lines(&[hello(), sample(1.0), end], "n0")).unwrap();
        assert!(result.samples.is_empty());
        assert_eq!(result.failed_trials[0].failure.class, FailureClass::WorkloadFailed);
    }
}
