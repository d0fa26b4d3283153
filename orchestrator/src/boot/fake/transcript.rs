//! What an agent that carries out a plan would say.

use std::collections::BTreeMap;

use kduel_protocol::{
    Better, CpuFacts, Event, Facts, Group, KnobKind, KnobReading, Knobs, NodeFacts, PROTOCOL,
    Phase, Sample, Topology, Transcript, TrialSpec, workload,
};
use sha2::{Digest, Sha256};

use super::script::{BootScript, Script, place};
use crate::boot::GuestSpec;

/// Writes the lines of one boot.
pub(super) struct Writer<'a> {
    pub spec: &'a GuestSpec,
    pub plan: &'a kduel_protocol::GuestPlan,
    pub script: &'a Script,
    pub boot: &'a BootScript,
}

impl Writer<'_> {
    /// All lines, each with its newline.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        let mut transcript = Transcript::default();
        let mut lines = Vec::new();
        let events = self.events();
        let gave_up = events.iter().any(|event| matches!(event, Event::Failed { .. }));
        for event in &events {
            let line = serde_json::to_string(event).unwrap_or_default();
            transcript.add(&line, matches!(event, Event::Sample(_)));
            lines.push(format!("{line}\n").into_bytes());
        }
        if !gave_up {
            let end = Event::End(transcript.end(&self.plan.nonce));
            lines.push(
                format!("{}\n", serde_json::to_string(&end).unwrap_or_default()).into_bytes(),
            );
        }
        lines
    }

    fn events(&self) -> Vec<Event> {
        let mut events = vec![
            Event::Hello { protocol: PROTOCOL, agent: "fake".to_owned() },
            Event::Facts(Box::new(self.facts())),
        ];
        if let Some(message) = &self.boot.agent_failed {
            events.push(Event::Failed { message: message.clone() });
            return events;
        }
        events.push(Event::Phase { phase: Phase::Knobs });
        events.extend(self.knobs().map(Event::Knob));
        events.push(Event::Phase { phase: Phase::Settling });
        events.push(Event::Settled { waited_ms: 10, idle: true, busy: Vec::new() });
        events.push(Event::Phase { phase: Phase::Trials });
        for trial in &self.plan.trials {
            self.trial(trial, &mut events);
        }
        events
    }

    fn facts(&self) -> Facts {
        let side = &self.spec.side;
        let known =
            self.script.sides.get(side).map(|side| &side.facts).cloned().unwrap_or_default();
        let mut cpus = cpus(&self.spec.topology);
        cpus.truncate(known.cpus.unwrap_or(cpus.len()));
        Facts {
            release: known.release.unwrap_or_else(|| format!("6.0.0-{side}")),
            version: "#1 SMP fake".to_owned(),
            cmdline: self.spec.cmdline.clone(),
            build_id: Some(
                known.build_id.unwrap_or_else(|| hex(&Sha256::digest(side))[..40].to_owned()),
            ),
            cpu_model: "Fake CPU".to_owned(),
            cpu_flags: vec!["fpu".to_owned(), "tsc".to_owned()],
            cpus,
            nodes: nodes(&self.spec.topology),
            memory_kib: self.spec.topology.memory_mib * 1000,
            clocksource: "tsc".to_owned(),
            ..Facts::default()
        }
    }

    fn knobs(&self) -> impl Iterator<Item = KnobReading> {
        wanted(&self.plan.knobs).into_iter().map(|(kind, name, value)| {
            let took = !self.boot.knobs_not_taken.contains(&name);
            let found = if took { value.clone() } else { "something else".to_owned() };
            KnobReading { kind, name, wanted: value, found, took }
        })
    }

    fn trial(&self, trial: &TrialSpec, events: &mut Vec<Event>) {
        let id = trial.id;
        let of = trial.warmup + trial.iterations;
        events.push(Event::TrialBegin { trial: id });
        let problem = self.boot.problems.iter().find(|problem| problem.workload == trial.workload);
        if problem.is_none() {
            if self.plan.together {
                let window_ns = trial.min_interval_ns;
                events.push(Event::Waiting { trial: id, window_ns });
            }
            for iteration in 0..trial.iterations {
                let done = trial.warmup + iteration + 1;
                events.push(Event::Progress { trial: id, done, of });
                let metrics = metrics(trial).into_iter().filter(|(name, ..)| !self.misses(name));
                for (metric, unit, better) in metrics {
                    let value = self.sample(trial, &metric, iteration);
                    events.extend(self.operations(trial, &metric, &unit, iteration));
                    events.push(Event::Sample(Sample {
                        trial: id,
                        iteration,
                        metric,
                        unit,
                        better,
                        value,
                        ops: 1000,
                    }));
                }
            }
            let value = self.script.value(&self.spec.side, &trial.workload);
            events.extend(super::monitors::events(self.plan, id, value));
        }
        let problem = problem.map(|problem| problem.problem.clone());
        events.push(Event::TrialEnd { trial: id, problem });
    }

    /// Of most the value is near the sample's, of one in fifty up to three times as large.
    fn operations(
        &self,
        trial: &TrialSpec,
        metric: &str,
        unit: &str,
        iteration: u32,
    ) -> Option<Event> {
        let typical = self.sample(trial, metric, iteration);
        let value = |operation: usize| {
            let spread =
                spread(&format!("{} {} {iteration} {operation}", self.spec.boot, trial.id));
            let tail = if operation % 50 == 49 { 2.0 + spread } else { 1.0 };
            typical * (1.0 + 0.2 * spread) * tail
        };
        (self.script.operations > 0).then(|| Event::Distribution {
            trial: trial.id,
            iteration,
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            values: (0..self.script.operations).map(value).collect(),
        })
    }

    fn misses(&self, metric: &str) -> bool {
        let side = self.script.sides.get(&self.spec.side);
        side.is_some_and(|side| side.missing.iter().any(|missing| missing == metric))
    }

    fn sample(&self, trial: &TrialSpec, metric: &str, iteration: u32) -> f64 {
        let side = &self.spec.side;
        let given = self.script.sides.get(side).and_then(|side| side.samples.get(&trial.workload));
        if let Some(values) =
            given.and_then(|by| by.get(metric)).filter(|values| !values.is_empty())
        {
            return values[iteration as usize % values.len()];
        }
        let (block, attempt) = place(&self.spec.boot, side).unwrap_or_default();
        let boot = format!("{side} {block} {attempt} {} {metric}", trial.id);
        let spread = spread(&boot) + spread(&format!("{boot} {iteration}"));
        self.script.value(side, &trial.workload) * (1.0 + self.script.noise * spread)
    }
}

/// Between -1 and 1, the same for the same `words`.
fn spread(words: &str) -> f64 {
    let digest = Sha256::digest(words);
    let number = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(number) / f64::from(u32::MAX) * 2.0 - 1.0
}

fn metrics(trial: &TrialSpec) -> Vec<(String, String, Better)> {
    if let Some(command) = &trial.command {
        if command.metrics.is_empty() {
            let of_system = [
                ("time", "ns"),
                ("user-time", "ns"),
                ("system-time", "ns"),
                ("context-switches", "count"),
            ];
            return of_system
                .map(|(name, unit)| (name.into(), unit.into(), Better::Lower))
                .to_vec();
        }
        let own = command.metrics.iter();
        return own
            .map(|metric| (metric.name.clone(), metric.unit.clone(), metric.better))
            .collect();
    }
    let known = workload(&trial.workload).map(|info| info.metrics).unwrap_or_default();
    known.iter().map(|metric| (metric.name.into(), metric.unit.into(), metric.better)).collect()
}

fn wanted(knobs: &Knobs) -> Vec<(KnobKind, String, String)> {
    let pairs = |kind, map: &BTreeMap<String, String>| {
        map.iter().map(|(name, value)| (kind, name.clone(), value.clone())).collect::<Vec<_>>()
    };
    let words = |kind, list: &[String]| {
        list.iter().map(|word| (kind, word.clone(), word.clone())).collect::<Vec<_>>()
    };
    [
        words(KnobKind::Cmdline, &knobs.cmdline),
        pairs(KnobKind::Sysctl, &knobs.sysctl),
        pairs(KnobKind::Write, &knobs.write),
        pairs(KnobKind::Mount, &knobs.mount),
        pairs(KnobKind::Modparam, &knobs.modparam),
        words(KnobKind::CpuFlags, &knobs.cpu_flags),
        words(KnobKind::Setup, &knobs.setup),
    ]
    .concat()
}

fn cpus(topology: &Topology) -> Vec<CpuFacts> {
    let Topology { dies, cores, threads, .. } = *topology;
    let siblings = topology.groups(Group::Core);
    (0..topology.cpus())
        .map(|cpu| CpuFacts {
            cpu,
            socket: Some(cpu / (dies * cores * threads)),
            die: Some(cpu / (cores * threads) % dies),
            core: Some(cpu / threads % cores),
            siblings: siblings.get((cpu / threads) as usize).cloned().unwrap_or_default(),
        })
        .collect()
}

fn nodes(topology: &Topology) -> Vec<NodeFacts> {
    if topology.nodes.is_empty() {
        let cpus = (0..topology.cpus()).collect();
        let memory_kib = Some(topology.memory_mib * 1000);
        return vec![NodeFacts { cpus, memory_kib, distances: vec![10], ..NodeFacts::default() }];
    }
    (0..)
        .zip(topology.nodes.iter().zip(&topology.distances))
        .map(|(node, (wanted, distances))| NodeFacts {
            node,
            cpus: topology.present_in(wanted),
            memory_kib: Some(wanted.memory_mib * 1000),
            distances: distances.clone(),
            access: None,
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
