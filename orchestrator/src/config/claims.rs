use kduel_protocol::Better;

use super::check::Check;
use super::node::Node;
use super::workloads::WorkloadUse;
use crate::plan::{Claim, PlannedSide, Prognosis};

const KEYS: &[&str] =
    &["side", "metric", "workload", "base", "value", "unit", "change", "better", "prognosis"];

/// Reads `claims:`, what a report says of the sides. Those with something wrong are left out.
pub fn read(
    check: &mut Check<'_>,
    node: &Node,
    sides: &[PlannedSide],
    workloads: &[WorkloadUse],
) -> Vec<Claim> {
    let items = check.list(node, "`claims`").unwrap_or_default();
    items.iter().filter_map(|item| claim(check, item, sides, workloads)).collect()
}

fn claim(
    check: &mut Check<'_>,
    node: &Node,
    sides: &[PlannedSide],
    workloads: &[WorkloadUse],
) -> Option<Claim> {
    check.map(node, "a claim", KEYS)?;
    let side = required(check, node, "side");
    let metric = required(check, node, "metric");
    if let (Some(side), Some(at)) = (&side, node.get("side")) {
        let candidates: Vec<&str> = sides.iter().skip(1).map(|side| side.name.as_str()).collect();
        // Sides with something wrong were complained about, and are not among them.
        if !candidates.is_empty() && !candidates.contains(&side.as_str()) {
            check.unknown(at.spot, "side of a claim", side, &candidates);
        }
    }
    let workload = optional(check, node, "workload");
    if let (Some(workload), Some(at)) = (&workload, node.get("workload")) {
        let names: Vec<&str> = workloads.iter().map(|used| used.info.name).collect();
        let name = workload.split(' ').next().unwrap_or_default();
        if !names.is_empty() && !names.contains(&name) {
            check.unknown(at.spot, "workload of a claim", name, &names);
        }
    }
    let better =
        word(check, node, "better", &[("lower", Better::Lower), ("higher", Better::Higher)]);
    let prognosis = word(check, node, "prognosis", &Prognosis::ALL);
    let (base, value) = (positive(check, node, "base"), positive(check, node, "value"));
    let change = change(check, node, base, value);
    Some(Claim {
        side: side?,
        metric: metric?,
        workload,
        base,
        value,
        unit: optional(check, node, "unit").unwrap_or_default(),
        change: change?,
        better,
        prognosis,
    })
}

fn required(check: &mut Check<'_>, node: &Node, key: &str) -> Option<String> {
    if node.get(key).is_none() && check.lacks(node, key) {
        check.complain(node.spot, format!("a claim has no `{key}`"));
    }
    optional(check, node, key)
}

fn optional(check: &mut Check<'_>, node: &Node, key: &str) -> Option<String> {
    node.get(key).and_then(|node| check.text(node, &format!("`{key}`")))
}

/// One of some words.
fn word<T: Copy>(check: &mut Check<'_>, node: &Node, key: &str, all: &[(&str, T)]) -> Option<T> {
    let at = node.get(key)?;
    let text = check.text(at, &format!("`{key}`"))?;
    let found = all.iter().find(|(word, _)| *word == text).map(|(_, meant)| *meant);
    if found.is_none() {
        let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
        check.unknown(at.spot, &format!("`{key}`"), &text, &words);
    }
    found
}

/// A figure above zero: logarithms are taken of it.
fn positive(check: &mut Check<'_>, node: &Node, key: &str) -> Option<f64> {
    let at = node.get(key)?;
    let text = check.text(at, &format!("`{key}`"))?;
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    if number.is_none() {
        check.advise(at.spot, format!("`{key}` cannot be `{text}`"), "write a number above zero");
    }
    number
}

/// What is written, or what follows from both figures.
fn change(
    check: &mut Check<'_>,
    node: &Node,
    base: Option<f64>,
    value: Option<f64>,
) -> Option<f64> {
    const HINT: &str = "write a percentage above -100 as `+9.8%`";
    let Some(at) = node.get("change") else {
        let given = node.get("base").is_some() && node.get("value").is_some();
        if !given && check.lacks(node, "change") {
            check.advise(node.spot, "a claim has no `change`", "or give both `base` and `value`");
        }
        return Some(value? / base? - 1.0).filter(|change| change.is_finite());
    };
    let text = check.text(at, "`change`")?;
    let digits = text.strip_suffix('%').map(str::trim_end);
    let percent = digits.and_then(|digits| digits.parse::<f64>().ok());
    let percent = percent.filter(|percent| percent.is_finite() && *percent > -100.0);
    if percent.is_none() {
        check.advise(at.spot, format!("`change` cannot be `{text}`"), HINT);
    }
    Some(percent? / 100.0)
}
