//! What forbids to compare two runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};

use kduel_protocol::TrialSpec;

use super::select::{Asked, Match};
use crate::collect::{BootOutcome, BootRecord, StoredRun};
use crate::plan::PlannedExperiment;
use crate::run::exact::{different_inputs, is_machine};

/// What must be the same in runs that are compared. Kernel and knobs are what is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Obstacle {
    /// Instructions are no times.
    Measure,
    /// The machine that the guests ran on, and its kernel.
    Host,
    /// KVM or TCG.
    Accelerator,
    /// QEMU, its firmware, the counting plugin.
    Qemu,
    /// The processor that the guests saw.
    Cpu,
    /// The guests' processors, nodes and memory.
    Topology,
    /// Of workloads: parameters, command, files, iterations; what ran beside them; layout seeds.
    Parameters,
    /// kduel, and with it the agent and its workloads.
    Kduel,
}

impl Obstacle {
    /// Those that a user may ignore.
    pub const WAIVABLE: [Self; 7] = [
        Self::Host,
        Self::Accelerator,
        Self::Qemu,
        Self::Cpu,
        Self::Topology,
        Self::Parameters,
        Self::Kduel,
    ];

    /// The word for it in `--despite`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Measure => "measure",
            Self::Host => "host",
            Self::Accelerator => "accelerator",
            Self::Qemu => "qemu",
            Self::Cpu => "cpu",
            Self::Topology => "topology",
            Self::Parameters => "parameters",
            Self::Kduel => "kduel",
        }
    }
}

/// One thing that is not the same in two runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Of what kind.
    pub obstacle: Obstacle,
    /// What, in a few words.
    pub what: String,
    /// In the first run.
    pub wanted: String,
    /// In the other.
    pub found: String,
}

impl Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}, then {}", self.what, self.wanted, self.found)
    }
}

/// Every difference of the runs to the first, all at once; each is named once.
pub fn differences(asked: &[Asked], matches: &[Match]) -> Vec<Difference> {
    let mut found = Found(Vec::new());
    let Some((first, others)) = asked.split_first() else { return found.0 };
    for (index, other) in others.iter().enumerate() {
        found.of_runs(&first.run, &other.run);
        for each in matches {
            found.of_experiments(each, &first.run, &other.run, index + 1);
        }
    }
    let mut seen = Vec::new();
    found.0.retain(|one| !seen.contains(one) && (seen.push(one.clone()), true).1);
    found.0.sort_by_key(|difference| difference.obstacle);
    found.0
}

struct Found(Vec<Difference>);

impl Found {
    fn compare<T: PartialEq>(
        &mut self,
        obstacle: Obstacle,
        what: &str,
        (wanted, found): (&T, &T),
        show: impl Fn(&T) -> String,
    ) {
        if wanted != found {
            let (wanted, found) = (show(wanted), show(found));
            self.0.push(Difference { obstacle, what: what.to_owned(), wanted, found });
        }
    }

    fn of_runs(&mut self, first: &StoredRun, other: &StoredRun) {
        let (a, b) = (&first.info, &other.info);
        let measure = (&first.plan.measure, &other.plan.measure);
        self.compare(Obstacle::Measure, "measure", measure, |measure| {
            format!("{measure:?}").to_lowercase()
        });
        let host = Obstacle::Host;
        self.compare(host, "host CPU", (&a.host.cpu_model, &b.host.cpu_model), String::clone);
        self.compare(host, "host CPUs", (&a.host.cpus, &b.host.cpus), u32::to_string);
        self.compare(host, "host kernel", (&a.host.kernel, &b.host.kernel), String::clone);
        let accel = (&accelerator(first), &accelerator(other));
        self.compare(Obstacle::Accelerator, "accelerator", accel, |words| words.clone());
        let version = |run: &StoredRun| {
            run.info.qemu.as_ref().map_or_else(|| "none".to_owned(), |qemu| qemu.version.clone())
        };
        let versions = (&version(first), &version(other));
        self.compare(Obstacle::Qemu, "QEMU", versions, String::clone);
        self.compare(Obstacle::Kduel, "kduel", (&a.kduel, &b.kduel), String::clone);
    }

    fn of_experiments(&mut self, each: &Match, first: &StoredRun, other: &StoredRun, run: usize) {
        let of = |run: &StoredRun, place: (usize, usize)| {
            let experiment = run.plan.experiments[place.0].clone();
            let side = experiment.sides[place.1].name.clone();
            (experiment, side)
        };
        let ((a, a_side), (b, b_side)) = (of(first, each.places[0]), of(other, each.places[run]));
        let topology = |e: &PlannedExperiment| {
            let t = &e.topology;
            let shape = (t.sockets, t.cores, t.threads);
            let nodes =
                t.nodes.iter().map(|node| format!("{:?} {} MiB", node.cpus, node.memory_mib));
            let nodes: Vec<String> = nodes.collect();
            let distances =
                if nodes.is_empty() { String::new() } else { format!(", {:?}", t.distances) };
            let nodes = if nodes.is_empty() {
                String::new()
            } else {
                format!(", nodes {}", nodes.join(", "))
            };
            format!("{} {shape:?}, {} MiB{nodes}{distances}", e.topology_name, t.memory_mib)
        };
        if a.topology != b.topology {
            self.push(Obstacle::Topology, &a, "topology", [topology(&a), topology(&b)]);
        }
        self.of_trials(each, &a, &b, run);
        let beside = |e: &PlannedExperiment| format!("{:?}, settle {} s", e.monitors, e.settle_s);
        if beside(&a) != beside(&b) {
            let words = [beside(&a), beside(&b)];
            self.push(Obstacle::Parameters, &a, "monitors and rest before trials", words);
        }
        let files = |e: &PlannedExperiment| {
            let file = |f: &crate::plan::UserFile| {
                format!("{} {:.12}", f.guest, f.sha256.as_deref().unwrap_or("unknown"))
            };
            e.files.iter().map(file).collect::<Vec<_>>().join(", ")
        };
        if files(&a) != files(&b) {
            self.push(Obstacle::Parameters, &a, "files", [files(&a), files(&b)]);
        }
        let terms = |e: &PlannedExperiment| {
            e.exact.as_ref().map_or_else(String::new, |terms| {
                let layouts = if terms.sampled { "sampled" } else { "fixed" };
                format!("2^{} ns an instruction, layout {layouts}", terms.shift)
            })
        };
        if terms(&a) != terms(&b) {
            self.push(Obstacle::Parameters, &a, "exact terms", [terms(&a), terms(&b)]);
        }
        if a.exact.is_some() && super::boots::common(&a, &b).is_empty() {
            let seeds = |e: &PlannedExperiment| {
                let seeds: BTreeSet<u64> = e.blocks.iter().map(|block| block.layout_seed).collect();
                format!("{seeds:?}")
            };
            self.push(Obstacle::Parameters, &a, "layout seeds", [seeds(&a), seeds(&b)]);
        }
        let boots = |run: &StoredRun, e: &PlannedExperiment, side: &str| Guest::of(run, e, side);
        self.of_guests(&a, &boots(first, &a, &a_side), &boots(other, &b, &b_side));
    }

    fn of_trials(
        &mut self,
        each: &Match,
        a: &PlannedExperiment,
        b: &PlannedExperiment,
        run: usize,
    ) {
        for row in &each.trials {
            let (one, other) = (&a.trials[row[0]], &b.trials[row[run]]);
            let (parts, others) = (trial(one), trial(other));
            for name in different_inputs(&parts, &others) {
                let part = |of: &BTreeMap<String, String>| {
                    of.get(name).cloned().unwrap_or_else(|| "none".to_owned())
                };
                let what = format!("{}, {name}", one.workload);
                self.push(Obstacle::Parameters, a, &what, [part(&parts), part(&others)]);
            }
        }
    }

    fn of_guests(&mut self, e: &PlannedExperiment, a: &Guest, b: &Guest) {
        if !(a.cpus.is_empty() || b.cpus.is_empty() || a.cpus == b.cpus) {
            let words = |guest: &Guest| Vec::from_iter(guest.cpus.clone()).join(", ");
            self.push(Obstacle::Cpu, e, "CPU model", [words(a), words(b)]);
        }
        let machine = |guest: &Guest| guest.inputs.clone();
        if let (Some(one), Some(other)) = (machine(a), machine(b)) {
            for name in different_inputs(&one, &other).into_iter().filter(|name| is_machine(name)) {
                let digest = |inputs: &BTreeMap<String, String>| {
                    inputs.get(name).map_or_else(|| "none".to_owned(), |sum| format!("{sum:.12}"))
                };
                let words = [digest(&one), digest(&other)];
                self.push(Obstacle::Qemu, e, &format!("file {name}"), words);
            }
        }
    }

    fn push(&mut self, obstacle: Obstacle, e: &PlannedExperiment, what: &str, words: [String; 2]) {
        let [wanted, found] = words;
        let what = format!("{what} ({})", e.name);
        self.0.push(Difference { obstacle, what, wanted, found });
    }
}

/// What executed the boots, by the run and by their own records.
fn accelerator(run: &StoredRun) -> String {
    let names = run.records.iter().map(|record| record.accel.name());
    let names: BTreeSet<&str> = names.chain([run.info.accelerator.name()]).collect();
    Vec::from_iter(names).join(" and ")
}

/// Everything of a trial that its numbers depend on, by name.
fn trial(spec: &TrialSpec) -> BTreeMap<String, String> {
    let params = spec.params.iter().map(|(name, value)| (name.clone(), value.to_string()));
    let mut parts: BTreeMap<String, String> = params.collect();
    if let Some(command) = &spec.command {
        parts.insert("command".to_owned(), format!("{command:?}"));
    }
    for (name, number) in [
        ("warm-up iterations", u64::from(spec.warmup)),
        ("kept iterations", u64::from(spec.iterations)),
        ("least time, ns", spec.min_interval_ns),
    ] {
        parts.insert(name.to_owned(), number.to_string());
    }
    parts
}

/// What the boots of one side saw or were made of.
struct Guest {
    cpus: BTreeSet<String>,
    inputs: Option<BTreeMap<String, String>>,
}

impl Guest {
    fn of(run: &StoredRun, experiment: &PlannedExperiment, side: &str) -> Self {
        let own = |record: &&BootRecord| {
            record.experiment == experiment.name && record.side == side && !record.is_again()
        };
        let own: Vec<&BootRecord> = run.records.iter().filter(own).collect();
        let model = |record: &&BootRecord| match (&record.exact, &record.outcome) {
            (Some(exact), _) => Some(exact.cpu.clone()),
            (None, BootOutcome::Completed(result)) => Some(result.facts.cpu_model.clone()),
            (None, BootOutcome::Failed(_)) => None,
        };
        let cpus = own.iter().filter_map(model).collect();
        let inputs = own.iter().find_map(|record| Some(record.exact.as_ref()?.inputs.clone()));
        Self { cpus, inputs }
    }
}
