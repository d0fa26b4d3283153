//! One row for each comparison, for spreadsheets and scripts.

use serde_json::{Map, Value};

use super::{Report, json};

/// Of the run, as the JSON report has them at its top.
const RUN: [&str; 3] = ["run", "measure", "accelerator"];

/// Of a comparison, as the JSON report names them.
const COLUMNS: [&str; 19] = [
    "experiment",
    "side",
    "workload",
    "metric",
    "unit",
    "better",
    "primary",
    "base",
    "value",
    "change",
    "low",
    "high",
    "confidence",
    "margin",
    "pairs",
    "dropped",
    "verdict",
    "exact",
    "reason",
];

/// Of what is known of timed boots besides, as the JSON report names it there.
const TIMED: [&str; 4] = ["steal-base", "steal", "pair-sd", "shuffled-sd"];

/// The comparisons as comma-separated values with a heading. What is absent is empty.
pub fn csv(report: &Report<'_>) -> String {
    let mut heading: Vec<&str> = RUN.to_vec();
    heading.extend(COLUMNS.iter().chain(&TIMED));
    let mut text = heading.join(",") + "\n";
    let run = json::run_fields(report);
    for comparison in json::comparison_fields(report) {
        let cells = RUN.iter().map(|name| cell(&run, name));
        let cells = cells.chain(COLUMNS.map(|name| cell(&comparison, name)));
        let timed = |name| match comparison.get("timed") {
            Some(Value::Object(timed)) => cell(timed, name),
            _ => String::new(),
        };
        let cells: Vec<String> = cells.chain(TIMED.map(timed)).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

fn cell(fields: &Map<String, Value>, name: &str) -> String {
    match fields.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(value) => value.to_string(),
    }
}

/// A spreadsheet would take what begins so for a formula.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];

fn quoted(text: &str) -> String {
    let text = if text.starts_with(FORMULA) { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\'']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        assert_eq!(quoted("plain text"), "plain text");
        assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(quoted("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }
}
