use kduel_protocol::{COMMAND, ParamInfo, ParamKind, TrialSpec, WorkloadParams, workload};
use serde_json::Value;

use super::cost;
use crate::config::{Terms, WorkloadUse};
use crate::units;

/// Expands sweeps: one trial for every combination of parameters, the last parameter fastest.
pub fn trials(workloads: &[WorkloadUse], terms: &Terms) -> Vec<TrialSpec> {
    let mut trials = Vec::new();
    for used in workloads {
        for params in combinations(&used.params) {
            let id = u32::try_from(trials.len()).unwrap_or(u32::MAX);
            trials.push(trial(id, used, params, terms));
        }
    }
    trials
}

fn combinations(params: &[(&'static str, Vec<Value>)]) -> Vec<WorkloadParams> {
    params.iter().fold(vec![WorkloadParams::new()], |made, (name, values)| {
        let with = |base: &WorkloadParams, value: &Value| {
            let mut params = base.clone();
            params.insert((*name).to_owned(), value.clone());
            params
        };
        made.iter().flat_map(|base| values.iter().map(move |value| with(base, value))).collect()
    })
}

fn trial(id: u32, used: &WorkloadUse, params: WorkloadParams, terms: &Terms) -> TrialSpec {
    let mut trial = TrialSpec {
        id,
        workload: used.info.name.to_owned(),
        params,
        command: used.command.clone(),
        warmup: terms.warmup.unwrap_or(used.info.warmup),
        iterations: terms.iterations.unwrap_or(used.info.iterations),
        min_interval_ns: u64::from(used.info.min_interval_ms) * 1_000_000,
        deadline_s: 0,
    };
    trial.deadline_s = terms.deadline_s.unwrap_or_else(|| cost::trial_deadline_s(&trial));
    trial
}

/// A trial's name among its experiment's series: `pipe-roundtrip bytes=4096`. Shows the parameters
/// that differ from their default, and those whose default is a sweep. A command is known by its words.
pub fn series_label(trial: &TrialSpec) -> String {
    let mut label = match &trial.command {
        Some(command) => command_label(&command.argv),
        None => trial.workload.clone(),
    };
    let params = workload(&trial.workload).map_or(&[][..], |info| info.params);
    for param in params {
        if let Some(value) = trial.params.get(param.name)
            && is_telling(param, value)
        {
            label += &format!(" {}={}", param.name, shown(param.kind, value));
        }
    }
    label
}

fn is_telling(param: &ParamInfo, value: &Value) -> bool {
    param.default.contains(',') || crate::config::defaults(param) != [value.clone()]
}

/// A parameter's value in its unit: sizes as a number of bytes, durations as `60ms`.
pub fn shown(kind: ParamKind, value: &Value) -> String {
    match (kind, value) {
        (ParamKind::Duration { .. }, value) => {
            value.as_u64().map_or_else(|| value.to_string(), units::written_duration)
        }
        (_, Value::String(text)) => text.clone(),
        (_, value) => value.to_string(),
    }
}

/// `command bench -n 1000`: the program without its folder, cut where it gets long.
fn command_label(argv: &[String]) -> String {
    const LONGEST: usize = 48;
    let mut words = argv.iter().map(String::as_str);
    let program = words.next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    // A script among the words may have several lines, and a label has one.
    let words = std::iter::once(program).chain(words.flat_map(str::split_whitespace));
    let label = words.collect::<Vec<_>>().join(" ");
    let label = if label.chars().count() > LONGEST {
        label.chars().take(LONGEST).chain(['…']).collect()
    } else {
        label
    };
    format!("{COMMAND} {label}")
}

#[cfg(test)]
mod tests {
    use kduel_protocol::CommandSpec;

    use super::*;

    fn label(workload: &str, params: &[(&str, Value)], argv: &[&str]) -> String {
        let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
        let command = CommandSpec {
            argv,
            env: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            cpus: None,
            cgroup: None,
            nice: None,
            metrics: Vec::new(),
        };
        series_label(&TrialSpec {
            id: 0,
            workload: workload.to_owned(),
            params: params
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            command: (workload == COMMAND).then_some(command),
            warmup: 0,
            iterations: 1,
            min_interval_ns: 0,
            deadline_s: 0,
        })
    }

    #[test]
    fn labels_show_what_is_not_the_default() {
        assert_eq!(label("pipe-roundtrip", &[("bytes", 4.into())], &[]), "pipe-roundtrip");
        assert_eq!(label("pipe-roundtrip", &[("bytes", 9.into())], &[]), "pipe-roundtrip bytes=9");
        assert_eq!(label("syscall", &[("call", "stat".into())], &[]), "syscall call=stat");
        let interval = [("interval", Value::from(20_000_000)), ("moves", 5.into())];
        assert_eq!(label("cgroup-exec", &interval, &[]), "cgroup-exec interval=20ms");
    }

    #[test]
    fn commands_are_known_by_their_words() {
        let argv = ["/kduel/files/bench", "-n", "1000"];
        assert_eq!(label(COMMAND, &[("repeat", 1.into())], &argv), "command bench -n 1000");
        let script = ["sh", "-c", "echo a\n  echo b"];
        assert_eq!(
            label(COMMAND, &[("repeat", 5.into())], &script),
            "command sh -c echo a echo b repeat=5"
        );
    }
}
