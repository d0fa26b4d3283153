use kduel_protocol::{COMMAND, CommandSpec, ParamInfo, ParamKind, WORKLOADS, WorkloadInfo};
use serde_json::Value;

use super::check::Check;
use super::command;
use super::diagnostic::Spot;
use super::node::{Content, Entry, Node};
use crate::plan::UserFile;
use crate::units;

/// A workload with all its parameters; one with several values is a sweep.
#[derive(Debug, Clone)]
pub struct WorkloadUse {
    /// Which.
    pub info: &'static WorkloadInfo,
    /// Every parameter in the order of `info`, with at least one value each.
    pub params: Vec<(&'static str, Vec<Value>)>,
    /// The user's own benchmark, for `command` only.
    pub command: Option<CommandSpec>,
    /// Files that the command brings along.
    pub files: Vec<UserFile>,
    /// Where it stands.
    pub spot: Spot,
}

/// Reads `workloads:`. Those with something wrong are left out.
pub fn read(check: &mut Check<'_>, node: &Node) -> Vec<WorkloadUse> {
    let Some(items) = check.one_or_more(node, "`workloads`") else { return Vec::new() };
    let used: Vec<WorkloadUse> = items.into_iter().flat_map(|item| one(check, item)).collect();
    for (index, workload) in used.iter().enumerate() {
        if used[..index].iter().any(|other| other.overlaps(workload)) {
            let message = format!(
                "workload `{}` is listed twice with the same parameters",
                workload.info.name
            );
            check.complain(workload.spot, message);
        }
    }
    used
}

impl WorkloadUse {
    /// Whether some trial of both would be the same.
    fn overlaps(&self, other: &Self) -> bool {
        let shared =
            |mine: &[Value], theirs: &[Value]| mine.iter().any(|value| theirs.contains(value));
        self.info.name == other.info.name
            && self.command == other.command
            && self
                .params
                .iter()
                .zip(&other.params)
                .all(|(mine, theirs)| shared(&mine.1, &theirs.1))
    }
}

fn one(check: &mut Check<'_>, item: &Node) -> Vec<WorkloadUse> {
    match &item.content {
        Content::Map(entries) if entries.len() == 1 => {
            with_params(check, &entries[0]).into_iter().collect()
        }
        Content::Scalar { .. } => by_name(check, item),
        _ => {
            let hint = "write `name`, or `name: {parameter: value}`";
            check.advise(item.spot, format!("a workload cannot be {}", item.kind()), hint);
            Vec::new()
        }
    }
}

/// A workload, or every workload of a suite.
fn by_name(check: &mut Check<'_>, item: &Node) -> Vec<WorkloadUse> {
    let Some(name) = check.text(item, "a workload") else { return Vec::new() };
    if name == COMMAND {
        check.advise(
            item.spot,
            "`command` needs the command",
            "write `command: {argv: [./bench]}`",
        );
        return Vec::new();
    }
    let suite: Vec<_> =
        WORKLOADS.iter().filter(|info| info.suites.contains(&name.as_str())).collect();
    if !suite.is_empty() {
        return suite.into_iter().map(|info| of_suite(info, item.spot)).collect();
    }
    find(check, item.spot, &name).map(|info| plain(info, item.spot)).into_iter().collect()
}

fn find(check: &mut Check<'_>, spot: Spot, name: &str) -> Option<&'static WorkloadInfo> {
    let found = kduel_protocol::workload(name);
    if found.is_none() {
        let names: Vec<&str> = WORKLOADS.iter().map(|info| info.name).collect();
        let near = super::check::nearest(name, names);
        let hint = near.map_or_else(
            || "`kduel workloads` lists them; a program of your own is `command`".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        check.advise(spot, format!("unknown workload `{name}`"), hint);
    }
    found
}

fn plain(info: &'static WorkloadInfo, spot: Spot) -> WorkloadUse {
    let params = info.params.iter().map(|param| (param.name, defaults(param))).collect();
    WorkloadUse { info, params, command: None, files: Vec::new(), spot }
}

/// A suite is broad: it takes fewer values of a parameter than the workload alone does.
fn of_suite(info: &'static WorkloadInfo, spot: Spot) -> WorkloadUse {
    let values = |param| parsed(param, info.suite_default(param));
    let params = info.params.iter().map(|param| (param.name, values(param))).collect();
    WorkloadUse { params, ..plain(info, spot) }
}

/// The values of a parameter that is not written.
pub fn defaults(param: &ParamInfo) -> Vec<Value> {
    parsed(param, param.default)
}

fn parsed(param: &ParamInfo, values: &str) -> Vec<Value> {
    values.split(',').filter_map(|text| value(param.kind, text).ok()).collect()
}

fn with_params(check: &mut Check<'_>, entry: &Entry) -> Option<WorkloadUse> {
    let info = find(check, entry.spot, &entry.key)?;
    let mut workload = plain(info, entry.spot);
    let what = format!("workload `{}`", info.name);
    let names: Vec<&str> = info.params.iter().map(|param| param.name).collect();
    if info.name == COMMAND {
        let valid: Vec<&str> = command::KEYS.iter().copied().chain(names).collect();
        check.map(&entry.value, &what, &valid)?;
        (workload.command, workload.files) = command::read(check, entry)?;
    } else if entry.value.is_null() {
        return Some(workload);
    } else {
        check.map(&entry.value, &what, &names)?;
    }
    for (param, values) in info.params.iter().zip(&mut workload.params) {
        if let Some(node) = entry.value.get(param.name) {
            values.1 = sweep(check, node, param)?;
        }
    }
    Some(workload)
}

fn sweep(check: &mut Check<'_>, node: &Node, param: &ParamInfo) -> Option<Vec<Value>> {
    let what = format!("`{}`", param.name);
    let mut values = Vec::new();
    for item in check.one_or_more(node, &what)? {
        let text = check.text(item, &what)?;
        match value(param.kind, &text) {
            Ok(value) if values.contains(&value) => {
                check.complain(item.spot, format!("{what} has the value `{text}` twice"));
            }
            Ok(value) => values.push(value),
            Err(hint) => {
                check.advise(item.spot, format!("{what} cannot be `{text}`"), hint);
                return None;
            }
        }
    }
    Some(values)
}

/// What a written value travels as.
///
/// # Errors
///
/// What to write instead.
fn value(kind: ParamKind, text: &str) -> Result<Value, String> {
    match kind {
        ParamKind::Integer { min, max } => {
            let number = text.parse::<u64>().ok().filter(|n| (min..=max).contains(n));
            number
                .map(Value::from)
                .ok_or_else(|| format!("write a whole number from {min} to {max}"))
        }
        ParamKind::Bytes { min, max } => {
            let bytes = units::parse_size(text).ok().filter(|n| (min..=max).contains(n));
            bytes.map(Value::from).ok_or_else(|| {
                format!("from {} to {}; {}", units::size(min), units::size(max), units::SIZE_HELP)
            })
        }
        ParamKind::Duration { max_ns } => {
            let ns = units::parse_duration_ns(text).ok().filter(|ns| *ns <= max_ns);
            ns.map(Value::from).ok_or_else(|| {
                format!("at most {}; {}", units::written_duration(max_ns), units::DURATION_HELP)
            })
        }
        ParamKind::Choice(words) if words.contains(&text) => Ok(Value::from(text)),
        ParamKind::Choice(words) => Err(super::check::choice_hint(text, words).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_kind() {
        for info in WORKLOADS {
            for param in info.params {
                let written = param.default.split(',').count();
                assert_eq!(defaults(param).len(), written, "{} {}", info.name, param.name);
            }
        }
    }
}
