//! What only exact runs have.

use kduel_protocol::Better;

use super::check::Check;
use super::diagnostic::Spot;
use super::experiment;
use super::node::Node;
use super::workloads::WorkloadUse;
use crate::plan::Measure;

/// Most seeds of an exact run.
pub const MAX_SEEDS: u32 = 64;

/// Largest shift: an instruction then takes about a microsecond of guest time.
pub const MAX_SHIFT: u32 = 10;

/// How exact runs are carried out; whatever is absent is decided by the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Terms {
    /// Memory layouts per side; more than one samples them.
    pub seeds: Option<u32>,
    /// QEMU's names of CPU models; each gives comparisons of its own.
    pub cpu: Vec<String>,
    /// An instruction takes 2^shift nanoseconds of guest time.
    pub shift: Option<u8>,
    /// Follow call chains, too.
    pub chains: bool,
}

impl Terms {
    /// What the command line says wins.
    pub fn overridden_by(&mut self, flags: &Self) {
        self.seeds = flags.seeds.or(self.seeds);
        self.shift = flags.shift.or(self.shift);
        self.chains |= flags.chains;
        if !flags.cpu.is_empty() {
            self.cpu.clone_from(&flags.cpu);
        }
    }
}

/// Reads one key of an experiment if it is one of exact runs.
pub fn term(check: &mut Check<'_>, key: &str, node: &Node, terms: &mut Terms) {
    match key {
        "seeds" => terms.seeds = check.small(node, "`seeds`", 1..=MAX_SEEDS),
        "shift" => {
            let shift = check.small(node, "`shift`", 0..=MAX_SHIFT);
            terms.shift = shift.and_then(|shift| u8::try_from(shift).ok());
        }
        "chains" => terms.chains = check.flag(node, "`chains`").unwrap_or_default(),
        "cpu" => {
            terms.cpu = check.texts(node, "`cpu`").unwrap_or_default();
            cpu_models(check, node.spot, &terms.cpu);
        }
        _ => {}
    }
}

/// Models differ, are words, and are none that follow the host.
fn cpu_models(check: &mut Check<'_>, spot: Spot, models: &[String]) {
    for (index, model) in models.iter().enumerate() {
        let word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if model.is_empty() || !model.chars().all(word) {
            check.complain(spot, format!("CPU model `{model}` is no word of QEMU's"));
        } else if ["host", "max", "base"].contains(&model.as_str()) {
            let message = format!("CPU model `{model}` is another one elsewhere");
            check.advise(spot, message, "name a versioned one, such as Opteron_G3-v1");
        } else if models[..index].contains(model) {
            check.complain(spot, format!("CPU model `{model}` is listed twice"));
        }
    }
}

/// Keys and flags of the other measure mean nothing.
pub fn fits_measure(check: &mut Check<'_>, node: &Node, terms: &experiment::Terms) {
    let spot = |key: &str| node.get(key).map_or(node.spot, |value| value.spot);
    let Terms { seeds, cpu, shift, chains } = &terms.exact;
    match terms.measure {
        Measure::Time => {
            let given = [
                ("seeds", seeds.is_some()),
                ("cpu", !cpu.is_empty()),
                ("shift", shift.is_some()),
                ("chains", *chains),
            ];
            for (key, _) in given.iter().filter(|(_, given)| *given) {
                let message = format!("`{key}` belongs to exact runs, and this is a timed one");
                check.defer(spot(key), message, "add `measure: instructions`, or leave it out");
            }
        }
        Measure::Instructions => {
            let timed = [
                ("pairs", terms.pairs.is_some()),
                ("quick", terms.quick),
                ("stat", terms.statistic.is_some()),
                ("pairing", terms.pairing.is_some()),
                ("cpu-pm", terms.grants.cpu_pm),
                ("huge-pages", terms.grants.huge_pages.is_some()),
            ];
            for (key, _) in timed.iter().filter(|key| key.1) {
                let message = format!("`{key}` belongs to timed runs, and this is an exact one");
                check.defer(
                    spot(key),
                    message,
                    "an exact run boots each side once per seed: `seeds: 8`",
                );
            }
        }
    }
}

/// Exact runs count work: they say nothing of what is only a speed.
pub fn can_say(check: &mut Check<'_>, workloads: &[WorkloadUse], terms: &experiment::Terms) {
    if terms.measure != Measure::Instructions {
        return;
    }
    for used in workloads {
        let own = used.command.iter().flat_map(|command| &command.metrics);
        let mut directions: Vec<Better> = own.map(|metric| metric.better).collect();
        if directions.is_empty() {
            directions = used.info.metrics.iter().map(|metric| metric.better).collect();
        }
        if directions.iter().all(|better| *better == Better::Higher) {
            let message = format!("`{}` gives only throughput", used.info.name);
            let hint = "exact runs count work, never speed: use a timed run (`measure: time`)";
            check.defer(used.spot, message, hint);
        }
    }
}
