//! What was watched beside workloads, for the JSON report.

use serde_json::{Value, json};

use crate::analyse::{Analysis, MonitorMean, MonitorTable};
use crate::text::escape;

/// One object for each monitor and workload.
pub(super) fn monitors(analysis: &Analysis) -> Vec<Value> {
    analysis.monitors.iter().map(monitor).collect()
}

fn monitor(table: &MonitorTable) -> Value {
    let value = |value: &Option<MonitorMean>| match value {
        Some(found) => json!({ "mean": found.mean, "spread": found.spread }),
        None => Value::Null,
    };
    let rows = table.rows.iter().map(|row| {
        let values: Vec<Value> = row.values.iter().map(value).collect();
        json!({ "name": escape(&row.name), "values": values })
    });
    let absent = table.absent.iter().map(
        |(side, name, why)| json!({ "side": side, "name": escape(name), "reason": escape(why) }),
    );
    json!({
        "experiment": table.experiment,
        "workload": table.workload,
        "monitor": table.monitor,
        "kind": table.kind,
        "sides": table.sides,
        "rows": rows.collect::<Vec<_>>(),
        "absent": absent.collect::<Vec<_>>(),
    })
}

/// One object for each complaint of a kernel.
pub(super) fn kernel_log(analysis: &Analysis) -> Vec<Value> {
    let one = |found: &crate::analyse::LogFinding| {
        let lines: Vec<String> = found.lines.iter().map(|line| escape(line)).collect();
        json!({
            "experiment": found.experiment,
            "side": found.side,
            "workload": found.workload,
            "kind": found.kind,
            "title": escape(&found.title),
            "lines": lines,
            "boots": found.boots,
        })
    };
    analysis.kernel_log.iter().map(one).collect()
}
