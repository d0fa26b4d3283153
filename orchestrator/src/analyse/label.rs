use kduel_protocol::{COMMAND, ParamInfo, ParamKind, TrialSpec, workload};
use serde_json::Value;

/// A trial's workload with the parameters that are swept by default or differ from their default:
/// `pipe-roundtrip bytes=4096`. For the user's own benchmark, its command.
pub fn workload_label(trial: &TrialSpec) -> String {
    let mut label = trial.workload.clone();
    if let (COMMAND, Some(command)) = (trial.workload.as_str(), &trial.command) {
        label = command.argv.join(" ");
    }
    let infos = workload(&trial.workload).map_or(&[][..], |info| info.params);
    for info in infos {
        if let Some(value) = trial.params.get(info.name).filter(|value| !is_default(info, value)) {
            label.push_str(&format!(" {}={}", info.name, shown(info, value)));
        }
    }
    label
}

fn is_default(info: &ParamInfo, value: &Value) -> bool {
    match info.kind {
        ParamKind::Choice(_) => value.as_str() == Some(info.default),
        ParamKind::Integer { .. } | ParamKind::Bytes { .. } | ParamKind::Duration { .. } => {
            value.as_u64().is_some() && value.as_u64() == scaled(info.default)
        }
    }
}

/// `64K`, `60ms`, `5`: a number and one of the suffixes that defaults are written with.
fn scaled(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[digits.len()..] {
        "" | "ns" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

fn shown(info: &ParamInfo, value: &Value) -> String {
    match (info.kind, value.as_u64()) {
        (ParamKind::Duration { .. }, Some(ns)) => {
            let steps = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
            let fitting = steps.iter().find(|(scale, _)| ns > 0 && ns % scale == 0);
            fitting
                .map_or_else(|| format!("{ns}ns"), |(scale, unit)| format!("{}{unit}", ns / scale))
        }
        _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn label(workload: &str, params: Value) -> String {
        let params = serde_json::from_value(params).unwrap();
        workload_label(&TrialSpec {
            id: 0,
            workload: workload.into(),
            params,
            command: None,
            warmup: 0,
            iterations: 1,
            min_interval_ns: 0,
            deadline_s: 1,
        })
    }

    #[test]
    fn only_what_differs_from_the_default_or_is_swept_is_shown() {
        assert_eq!(label("pipe-roundtrip", json!({"bytes": 4})), "pipe-roundtrip");
        assert_eq!(label("pipe-roundtrip", json!({"bytes": 4096})), "pipe-roundtrip bytes=4096");
        assert_eq!(label("syscall", json!({"call": "stat"})), "syscall call=stat");
        let defaults = json!({"interval": 60_000_000, "moves": 5});
        assert_eq!(label("cgroup-exec", defaults), "cgroup-exec");
        let other = json!({"interval": 1_500_000, "moves": 5});
        assert_eq!(label("cgroup-exec", other), "cgroup-exec interval=1500us");
    }
}
