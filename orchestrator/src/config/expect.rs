use kduel_protocol::Monitor;

use super::check::Check;
use super::diagnostic::Spot;
use super::experiment::Experiment;
use super::node::Node;
use crate::plan::{Expectation, Expected, OUTCOMES, RANGE_HELP, Range, Subject, Wanted};

const KEYS: &[&str] = &["version", "exact", "time"];
const OWN_KEYS: &[&str] = &[
    "side", "order", "workload", "metric", "count", "function", "monitor", "verdict", "change",
    "calls",
];

/// What experiments an expectation may be about.
pub struct Known<'a> {
    /// Every name of the document; empty where it is not known.
    pub names: &'a [String],
    /// Those whose sides and workloads are known.
    pub experiments: &'a [Experiment],
}

/// Reads `expect.yaml`. What has something wrong is left out.
pub fn read(check: &mut Check<'_>, root: &Node, known: &Known<'_>) -> Expected {
    let mut expected = Expected::default();
    if check.map(root, "the expectations", KEYS).is_none() {
        return expected;
    }
    if let Some(node) = root.get("exact") {
        expected.exact = measure(check, node, known);
    }
    if let Some(node) = root.get("time") {
        expected.time = measure(check, node, known);
    }
    expected
}

/// The expectations of one measure, by experiment.
fn measure(check: &mut Check<'_>, node: &Node, known: &Known<'_>) -> Vec<Expectation> {
    let mut all = Vec::new();
    for entry in check.section(node, "expectations of a measure").unwrap_or_default() {
        is_experiment(check, entry.spot, &entry.key, known);
        let experiment = known.experiments.iter().find(|known| known.name == entry.key);
        let items = check.list(&entry.value, "expectations").unwrap_or_default();
        let read = |item| expectation(check, &entry.key, item, experiment);
        all.extend(items.iter().filter_map(read));
    }
    all
}

/// Complains unless the document has an experiment of this name.
pub fn is_experiment(check: &mut Check<'_>, spot: Spot, name: &str, known: &Known<'_>) {
    let names: Vec<&str> = known.names.iter().map(String::as_str).collect();
    if !names.is_empty() && !names.contains(&name) {
        check.unknown(spot, "experiment", name, &names);
    }
}

fn expectation(
    check: &mut Check<'_>,
    name: &str,
    node: &Node,
    experiment: Option<&Experiment>,
) -> Option<Expectation> {
    check.map(node, "an expectation", OWN_KEYS)?;
    let workload = workload(check, node, experiment);
    let subject = subject(check, node, experiment);
    let wanted = match (node.get("side"), node.get("order")) {
        (Some(at), None) => side(check, node, at, experiment, &subject),
        (None, Some(at)) => order(check, node, at, experiment),
        (Some(_), Some(at)) => {
            check.advise(at.spot, "`order` names sides already", "leave out `side`");
            None
        }
        (None, None) => {
            if check.lacks(node, "side") && check.lacks(node, "order") {
                let hint = "add `side: NAME`, or `order: [base, NAME]`";
                check.advise(node.spot, "an expectation has no `side`", hint);
            }
            None
        }
    };
    Some(Expectation {
        experiment: name.to_owned(),
        workload: workload?,
        subject: subject?,
        wanted: wanted?,
    })
}

fn workload(check: &mut Check<'_>, node: &Node, experiment: Option<&Experiment>) -> Option<String> {
    let Some(at) = node.get("workload") else {
        if check.lacks(node, "workload") {
            check.complain(node.spot, "an expectation has no `workload`");
        }
        return None;
    };
    let text = check.text(at, "`workload`")?;
    let used = experiment.map(|experiment| &experiment.workloads[..]).unwrap_or_default();
    let names: Vec<&str> = used.iter().map(|used| used.info.name).collect();
    let first = text.split(' ').next().unwrap_or_default();
    if !names.is_empty() && !names.contains(&first) {
        check.unknown(at.spot, "workload of an expectation", first, &names);
    }
    Some(text)
}

/// One of `metric`, `count`, `function` and `monitor`, or none of them.
fn subject(check: &mut Check<'_>, node: &Node, experiment: Option<&Experiment>) -> Option<Subject> {
    let keys = ["metric", "count", "function", "monitor"];
    let given: Vec<&str> = keys.into_iter().filter(|key| node.get(key).is_some()).collect();
    if let [first, second, ..] = given[..] {
        let spot = node.get(second).map_or(node.spot, |at| at.spot);
        check.advise(spot, format!("`{second}` beside `{first}`"), "make two expectations of it");
        return None;
    }
    let Some(key) = given.first() else { return Some(Subject::Metric(None)) };
    let text = node.get(key).and_then(|at| check.text(at, &format!("`{key}`")))?;
    Some(match *key {
        "metric" => Subject::Metric(Some(text)),
        "count" => Subject::Count(text),
        "monitor" => return column(check, node.get(key)?.spot, &text, experiment),
        _ => Subject::Function(text),
    })
}

/// `vmstat cs`.
fn column(
    check: &mut Check<'_>,
    spot: Spot,
    text: &str,
    experiment: Option<&Experiment>,
) -> Option<Subject> {
    let Some((name, column)) = text.split_once(' ') else {
        let hint = "add the column, as in `monitor: vmstat cs`";
        check.advise(spot, format!("`{text}` is a monitor without a column"), hint);
        return None;
    };
    let Some(monitor) = Monitor::named(name) else {
        check.unknown(spot, "monitor", name, &Monitor::ALL.map(Monitor::name));
        return None;
    };
    if experiment.is_some_and(|experiment| !experiment.monitors.contains(&monitor)) {
        let message = format!("the experiment has no monitor `{name}`");
        check.advise(spot, message, format!("add `monitors: [{name}]` to it"));
    }
    Some(Subject::Column(monitor, column.trim().to_owned()))
}

fn side(
    check: &mut Check<'_>,
    node: &Node,
    at: &Node,
    experiment: Option<&Experiment>,
    subject: &Option<Subject>,
) -> Option<Wanted> {
    let side = check.text(at, "`side`")?;
    let candidates = experiment.map(|experiment| experiment.sides.iter().skip(1));
    let candidates: Vec<&str> =
        candidates.into_iter().flatten().map(|side| side.name.as_str()).collect();
    if !candidates.is_empty() && !candidates.contains(&side.as_str()) {
        check.unknown(at.spot, "side of an expectation", &side, &candidates);
    }
    let only = |check: &mut Check<'_>, key: &str, fits: bool, whose: &str| {
        if let (Some(at), false) = (node.get(key), fits) {
            check.complain(at.spot, format!("`{key}` is for {whose} only"));
        }
    };
    only(check, "verdict", matches!(subject, None | Some(Subject::Metric(_))), "metrics");
    only(check, "calls", matches!(subject, None | Some(Subject::Function(_))), "functions");
    if ["verdict", "change", "calls"].iter().all(|key| check.lacks(node, key)) {
        let hint = "add `verdict` or `change`";
        check.advise(node.spot, "an expectation says nothing of its side", hint);
    }
    Some(Wanted::Side {
        side,
        outcomes: outcomes(check, node)?,
        change: range(check, node, "change")?,
        calls: range(check, node, "calls")?,
    })
}

fn outcomes(check: &mut Check<'_>, node: &Node) -> Option<Vec<String>> {
    let Some(at) = node.get("verdict") else { return Some(Vec::new()) };
    let items = check.one_or_more(at, "`verdict`")?;
    let mut words = Vec::new();
    for item in items {
        let Some(word) = check.text(item, "`verdict`") else { continue };
        if !OUTCOMES.contains(&word.as_str()) {
            check.unknown(item.spot, "verdict", &word, &OUTCOMES);
        }
        words.push(word);
    }
    Some(words)
}

/// Nothing if it is wrong; what is not there is no range.
#[expect(clippy::option_option, reason = "an absent range is not one that is wrong")]
fn range(check: &mut Check<'_>, node: &Node, key: &str) -> Option<Option<Range>> {
    let Some(at) = node.get(key) else { return Some(None) };
    let text = check.text(at, &format!("`{key}`"))?;
    let range = Range::parse(&text);
    if range.is_none() {
        check.advise(at.spot, format!("`{key}` cannot be `{text}`"), RANGE_HELP);
    }
    range.map(Some)
}

fn order(
    check: &mut Check<'_>,
    node: &Node,
    at: &Node,
    experiment: Option<&Experiment>,
) -> Option<Wanted> {
    for key in ["verdict", "change", "calls"] {
        if let Some(at) = node.get(key) {
            let hint = "make an expectation of a `side` of it";
            check.advise(at.spot, format!("`{key}` beside `order`"), hint);
        }
    }
    let items = check.list(at, "`order`")?;
    if items.len() < 2 {
        check.complain(at.spot, "`order` needs two sides or more");
    }
    let sides: Vec<&str> = experiment
        .map(|experiment| experiment.sides.iter().map(|side| side.name.as_str()).collect())
        .unwrap_or_default();
    let mut order = Vec::new();
    for item in items {
        let Some(side) = check.text(item, "a side") else { continue };
        if !sides.is_empty() && !sides.contains(&side.as_str()) {
            check.unknown(item.spot, "side", &side, &sides);
        }
        order.push(side);
    }
    Some(Wanted::Order(order))
}
