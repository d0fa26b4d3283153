use std::collections::BTreeMap;

use super::check::Check;
use super::diagnostic::Spot;
use super::experiment::{self, Definitions, Experiment, Named, Overrides};
use super::node::{Content, Entry, Node};
use super::{KernelSpec, kernels, matrix, sides, topologies};

const KEYS: &[&str] = &["version", "kernels", "topologies", "experiments", "matrix"];

/// What a document comes to.
#[derive(Debug, Default)]
pub struct Resolved {
    /// The selected experiments, in the order of the document.
    pub experiments: Vec<Experiment>,
    /// Every kernel that it names.
    pub kernels: BTreeMap<String, KernelSpec>,
}

/// Reads a whole document and selects experiments by name; none named selects all. Complaints of
/// what is not selected count too, except those that matter only to who uses it.
pub fn resolve(
    check: &mut Check<'_>,
    root: &Node,
    selected: &[(String, Spot)],
    flags: &Overrides,
) -> Resolved {
    if check.map(root, "the document", KEYS).is_none() {
        return Resolved::default();
    }
    version(check, root);
    let defined = Definitions {
        kernels: root.get("kernels").map(|node| kernels::read(check, node)).unwrap_or_default(),
        topologies: root
            .get("topologies")
            .map(|node| topologies::read(check, node))
            .unwrap_or_default(),
    };
    let named = all(check, root, &defined, flags);
    let chosen = select(check, named, selected);
    let mut experiments = Vec::new();
    for named in chosen {
        check.found.extend(named.deferred);
        experiments.extend(named.experiment);
    }
    let kernels = defined.kernels.into_iter();
    let kernels = kernels.filter_map(|named| Some((named.name, named.kernel?))).collect();
    Resolved { experiments, kernels }
}

fn version(check: &mut Check<'_>, root: &Node) {
    match root.get("version") {
        None => {
            check.advise(root.spot, "the document has no `version`", "begin it with `version: 1`")
        }
        Some(node) if node.text() == Some("1") => {}
        Some(node) => {
            let found = node.text().unwrap_or_else(|| node.kind()).to_owned();
            let hint = "this version of kduel reads `version: 1`";
            check.advise(node.spot, format!("document version `{found}` is not known"), hint);
        }
    }
}

fn all(check: &mut Check<'_>, root: &Node, defined: &Definitions, flags: &Overrides) -> Vec<Named> {
    let mut named: Vec<Named> = Vec::new();
    if let Some(node) = root.get("experiments")
        && let Some(entries) = check.section(node, "`experiments`")
    {
        named.extend(entries.iter().map(|entry| experiment::read(check, entry, defined, flags)));
    }
    let matrix_entry = match &root.content {
        Content::Map(entries) => entries.iter().find(|entry| entry.key == "matrix"),
        _ => None,
    };
    if let Some(entry) = matrix_entry {
        for made in matrix::read(check, entry, defined, flags) {
            if named.iter().any(|other| other.name == made.name) {
                let message = format!(
                    "`matrix` makes an experiment `{}`, and there is one already",
                    made.name
                );
                check.complain(entry.spot, message);
            }
            named.push(made);
        }
    }
    for experiment in named.iter_mut().filter_map(|named| named.experiment.as_mut()) {
        sides::build_over_base(&mut experiment.sides);
    }
    named
}

fn select(check: &mut Check<'_>, named: Vec<Named>, selected: &[(String, Spot)]) -> Vec<Named> {
    if selected.is_empty() {
        return named;
    }
    let fits = |named: &Named, word: &str| named.name == word || (named.matrix && word == "matrix");
    for (word, spot) in selected {
        if !named.iter().any(|named| fits(named, word)) {
            let names: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
            check.unknown(*spot, "experiment", word, &names);
        }
    }
    named.into_iter().filter(|named| selected.iter().any(|(word, _)| fits(named, word))).collect()
}

/// Complains of experiments that no one run can have: it has one measure, and one way to look at its
/// data.
pub fn together(check: &mut Check<'_>, root: &Node, experiments: &[Experiment]) {
    let Some(first) = experiments.first() else { return };
    let measure = |other: &&Experiment| other.terms.measure != first.terms.measure;
    let quick = |other: &&Experiment| other.terms.quick != first.terms.quick;
    let stat = |other: &&Experiment| other.terms.statistic != first.terms.statistic;
    let (other, what, hint) = if let Some(other) = experiments.iter().find(measure) {
        (other, "measure", "select experiments of one measure, or give --measure time")
    } else if let Some(other) = experiments.iter().find(quick) {
        (other, "`quick`", "select them one by one, or give --quick")
    } else if let Some(other) = experiments.iter().find(stat) {
        (other, "`stat`", "select them one by one, or give --stat")
    } else {
        return;
    };
    let message = format!(
        "experiments `{}` and `{}` differ in {what}, and one run has one",
        first.name, other.name
    );
    let spot = place(root, &other.name).unwrap_or(root.spot);
    check.advise(spot, message, hint);
}

fn place(root: &Node, experiment: &str) -> Option<Spot> {
    let Content::Map(entries) = &root.get("experiments")?.content else { return None };
    entries.iter().find(|entry: &&Entry| entry.key == experiment).map(|entry| entry.spot)
}
