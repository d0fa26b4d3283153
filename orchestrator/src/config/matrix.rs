use kduel_protocol::{Knobs, Topology};

use super::check::Check;
use super::exact;
use super::experiment::{Definitions, Experiment, Named, Overrides, TERM_KEYS, Terms, fits, terms};
use super::monitors;
use super::node::{Entry, Node};
use super::sides;
use super::workloads::{self, WorkloadUse};
use super::{kernels, topologies};
use crate::plan::PlannedSide;

const OWN_KEYS: &[&str] = &["kernels", "topologies", "workloads", "exclude"];

/// Expands `matrix:`: one experiment per topology, its sides the kernels in their order, so that the
/// first is the base. Where `exclude` takes different kernels away from different workloads, the
/// workloads are split into experiments with the same kernels.
pub fn read(
    check: &mut Check<'_>,
    entry: &Entry,
    defined: &Definitions,
    flags: &Overrides,
) -> Vec<Named> {
    let node = &entry.value;
    let valid: Vec<&str> = OWN_KEYS.iter().chain(TERM_KEYS).copied().collect();
    if check.map(node, "`matrix`", &valid).is_none() {
        return Vec::new();
    }
    let complaints = check.found.len();
    let outer = std::mem::take(&mut check.deferred);
    let axes = Axes {
        sides: matrix_sides(check, entry, defined),
        topologies: matrix_topologies(check, entry, defined),
        workloads: required(check, entry, "workloads")
            .map(|node| workloads::read(check, node))
            .unwrap_or_default(),
    };
    let excluded = excluded(check, node, &axes);
    let terms = terms(check, node, flags);
    let (monitors, monitor_terms) = monitors::read(check, node, &flags.monitors);
    let deferred = std::mem::replace(&mut check.deferred, outer);
    let made = axes.experiments(&excluded, &terms);
    for experiment in &made {
        fits(check, &experiment.workloads, &experiment.topology);
        exact::can_say(check, &experiment.workloads, &experiment.terms);
    }
    if made.is_empty() && check.found.len() == complaints && deferred.is_empty() {
        check.complain(entry.spot, "`matrix` leaves nothing to compare");
    }
    let named = |experiment: Experiment| Named {
        name: experiment.name.clone(),
        matrix: true,
        experiment: Some(Experiment { monitors: monitors.clone(), monitor_terms, ..experiment }),
        deferred: deferred.clone(),
    };
    if made.is_empty() {
        let name = entry.key.clone();
        return vec![Named { name, matrix: true, experiment: None, deferred }];
    }
    made.into_iter().map(named).collect()
}

struct Axes {
    sides: Vec<PlannedSide>,
    topologies: Vec<(String, Topology)>,
    workloads: Vec<WorkloadUse>,
}

/// Cells that an entry of `exclude` takes away; absent: any.
struct Exclusion {
    kernel: Option<String>,
    topology: Option<String>,
    workload: Option<String>,
}

impl Exclusion {
    fn takes(&self, kernel: &str, topology: &str, workload: &str) -> bool {
        let any =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|w| w == found);
        any(&self.kernel, kernel) && any(&self.topology, topology) && any(&self.workload, workload)
    }
}

impl Axes {
    fn experiments(&self, excluded: &[Exclusion], terms: &Terms) -> Vec<Experiment> {
        let mut made = Vec::new();
        for (name, topology) in &self.topologies {
            let groups = self.groups(name, excluded);
            for (index, (sides, workloads)) in groups.into_iter().enumerate() {
                let suffix = if index == 0 { String::new() } else { format!("-{}", index + 1) };
                made.push(Experiment {
                    name: format!("matrix-{name}{suffix}"),
                    sides,
                    topology: topology.clone(),
                    topology_name: name.clone(),
                    workloads,
                    monitors: Vec::new(),
                    monitor_terms: Default::default(),
                    claims: Vec::new(),
                    terms: terms.clone(),
                });
            }
        }
        made
    }

    /// Workloads of one topology, together where the same kernels are left. A workload whose base is
    /// taken away, or which keeps the base only, has nothing to be compared with.
    fn groups(
        &self,
        topology: &str,
        excluded: &[Exclusion],
    ) -> Vec<(Vec<PlannedSide>, Vec<WorkloadUse>)> {
        let mut groups: Vec<(Vec<PlannedSide>, Vec<WorkloadUse>)> = Vec::new();
        for workload in &self.workloads {
            let stays = |side: &&PlannedSide| {
                !excluded.iter().any(|e| e.takes(&side.kernel_name, topology, workload.info.name))
            };
            let sides: Vec<PlannedSide> = self.sides.iter().filter(stays).cloned().collect();
            if sides.len() < 2 || sides.first() != self.sides.first() {
                continue;
            }
            match groups.iter_mut().find(|(group, _)| *group == sides) {
                Some((_, workloads)) => workloads.push(workload.clone()),
                None => groups.push((sides, vec![workload.clone()])),
            }
        }
        groups
    }
}

fn required<'n>(check: &mut Check<'_>, entry: &'n Entry, key: &str) -> Option<&'n Node> {
    let found = entry.value.get(key);
    if found.is_none() {
        check.complain(entry.spot, format!("`matrix` has no `{key}`"));
    }
    found
}

fn matrix_sides(check: &mut Check<'_>, entry: &Entry, defined: &Definitions) -> Vec<PlannedSide> {
    let Some(node) = required(check, entry, "kernels") else { return Vec::new() };
    let Some(items) = check.list(node, "`kernels`") else { return Vec::new() };
    if items.len() < 2 {
        let hint = "the first is the base, the others are compared against it";
        check.advise(node.spot, "`matrix` needs at least two kernels", hint);
    }
    let mut sides: Vec<PlannedSide> = Vec::new();
    for item in items {
        let Some(kernel) = kernels::resolve(check, item, &defined.kernels) else { continue };
        let kernel_name = item.text().unwrap_or_default().to_owned();
        if let Some(other) = sides.iter().find(|side| side.kernel == kernel) {
            let message = if other.kernel_name == kernel_name {
                format!("kernel `{kernel_name}` is listed twice")
            } else {
                format!("`{kernel_name}` is the same kernel as `{}`", other.kernel_name)
            };
            check.complain(item.spot, message);
            continue;
        }
        let name = sides::name_of(&kernel_name, &sides);
        sides.push(PlannedSide { name, kernel_name, kernel, knobs: Knobs::default() });
    }
    sides
}

fn matrix_topologies(
    check: &mut Check<'_>,
    entry: &Entry,
    defined: &Definitions,
) -> Vec<(String, Topology)> {
    let Some(node) = required(check, entry, "topologies") else { return Vec::new() };
    let Some(items) = check.one_or_more(node, "`topologies`") else { return Vec::new() };
    let mut found: Vec<(String, Topology)> = Vec::new();
    for item in items {
        let Some(topology) = topologies::resolve(check, item, &defined.topologies) else {
            continue;
        };
        let name = item.text().unwrap_or_default().to_owned();
        if found.iter().any(|(other, _)| *other == name) {
            check.complain(item.spot, format!("topology `{name}` is listed twice"));
            continue;
        }
        found.push((name, topology));
    }
    found
}

fn excluded(check: &mut Check<'_>, node: &Node, axes: &Axes) -> Vec<Exclusion> {
    let Some(node) = node.get("exclude") else { return Vec::new() };
    let Some(items) = check.list(node, "`exclude`") else { return Vec::new() };
    let kernels: Vec<&str> = axes.sides.iter().map(|side| side.kernel_name.as_str()).collect();
    let topologies: Vec<&str> = axes.topologies.iter().map(|(name, _)| name.as_str()).collect();
    let workloads: Vec<&str> = axes.workloads.iter().map(|workload| workload.info.name).collect();
    let mut found = Vec::new();
    for item in items {
        if check.map(item, "an exclusion", &["kernel", "topology", "workload"]).is_none() {
            continue;
        }
        let mut word = |key: &str, valid: &[&str]| {
            let node = item.get(key)?;
            let word = check.text(node, &format!("`{key}`"))?;
            if !valid.contains(&word.as_str()) {
                check.unknown(node.spot, &format!("{key} of this matrix"), &word, valid);
            }
            Some(word)
        };
        found.push(Exclusion {
            kernel: word("kernel", &kernels),
            topology: word("topology", &topologies),
            workload: word("workload", &workloads),
        });
    }
    found
}
