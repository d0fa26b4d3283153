use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::build::Profile;
use crate::shell::Tool;

/// One measured iteration and nothing before it: `uname -r` neither waits for an idle guest nor warms
/// up.
const DOCUMENT: &str = "version: 1
experiments:
  first-sample:
    sides: { a: debian:bookworm, b: debian:bookworm }
    aa: true
    topology: 1s2c
    pairs: 1
    settle: 0s
    warmup: 0
    iterations: 1
    workloads: [{ syscall: { call: getppid } }]
";

/// Runs one pair of the same kernel on both sides and gives the time of each of its boots, in
/// seconds from QEMU's start to the first sample.
pub fn seconds_to_first_sample() -> Result<Vec<f64>> {
    let state = tempfile::tempdir().context("failed to create a folder for kduel's runs")?;
    let document = state.path().join("kernels.yaml");
    fs::write(&document, DOCUMENT)
        .with_context(|| format!("failed to write {}", document.display()))?;
    Tool::new(Profile::Release.kduel())
        .args(["run", "--accel", "tcg", "--overcommit"])
        .env("KDUEL_STATE_DIR", state.path())
        .in_folder(state.path())
        .output()?;
    let journal = find(state.path(), "journal.jsonl")?.context("kduel left no journal")?;
    let text = fs::read_to_string(&journal)
        .with_context(|| format!("failed to read {}", journal.display()))?;
    let seconds: Vec<f64> =
        text.lines().filter_map(first_sample_ms).map(|ms| ms / 1000.0).collect();
    ensure!(!seconds.is_empty(), "kduel's journal says of no boot when its first sample came");
    Ok(seconds)
}

/// The record of a line of the journal lies somewhere within what guards it.
fn first_sample_ms(line: &str) -> Option<f64> {
    let value: Value = serde_json::from_str(line.get(line.find('{')?..)?).ok()?;
    number(&value, "first-sample-ms")
}

fn number(value: &Value, key: &str) -> Option<f64> {
    match value {
        Value::Object(fields) => {
            let here = fields.get(key).and_then(Value::as_f64);
            here.or_else(|| fields.values().find_map(|field| number(field, key)))
        }
        _ => None,
    }
}

fn find(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in
        fs::read_dir(folder).with_context(|| format!("failed to list {}", folder.display()))?
    {
        let entry = entry?;
        // Not through links: `last` names a run that is found by its own name.
        let found = if entry.file_type()?.is_dir() { find(&entry.path(), name)? } else { None };
        let here = (entry.file_name() == name).then(|| entry.path());
        if let Some(path) = here.or(found) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_through_its_guard() {
        let line = r#"1a2b3c4d {"boot":{"ready-ms":4100,"first-sample-ms":5250,"outcome":{}}}"#;
        assert_eq!(first_sample_ms(line), Some(5250.0));
        assert_eq!(first_sample_ms(r#"{"first-sample-ms":null}"#), None);
        assert_eq!(first_sample_ms("torn {\"first-sam"), None);
    }
}
