use serde::Serialize;

use crate::plan::Plan;
use crate::plan::series_label;

use super::{BootOutcome, BootRecord};

/// One line of `samples.jsonl`.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Line<'a> {
    experiment: &'a str,
    side: &'a str,
    block: usize,
    boot: &'a str,
    workload: &'a str,
    metric: &'a str,
    unit: &'a str,
    iteration: u32,
    ops: u64,
    value: f64,
}

/// All samples of a run, one JSON object per line, for other people's tools.
pub fn samples_jsonl(plan: &Plan, records: &[BootRecord]) -> String {
    let mut lines = String::new();
    for record in records {
        let BootOutcome::Completed(result) = &record.outcome else { continue };
        let experiment = plan.experiments.iter().find(|e| e.name == record.experiment);
        for sample in &result.samples {
            let trials = experiment.map_or(&[][..], |experiment| &experiment.trials);
            let trial = trials.iter().find(|trial| trial.id == sample.trial);
            let line = Line {
                experiment: &record.experiment,
                side: &record.side,
                block: record.block,
                boot: &record.boot.0,
                workload: &trial.map(series_label).unwrap_or_default(),
                metric: &sample.metric,
                unit: &sample.unit,
                iteration: sample.iteration,
                ops: sample.ops,
                value: sample.value,
            };
            if let Ok(json) = serde_json::to_string(&line) {
                lines.push_str(&json);
                lines.push('\n');
            }
        }
    }
    lines
}
