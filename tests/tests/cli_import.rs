//! Reports of others: read, tried, answered.

#![expect(clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use kduel_tests::{Said, Sandbox};

/// A report that was written anew around published figures.
fn fixture(name: &str) -> String {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../orchestrator/tests/fixtures/import");
    let path = folder.join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn tables_of_a_mail_are_shown_with_their_changes() {
    let sandbox = Sandbox::new();
    sandbox.write("report.eml", &fixture("mails/task-classes.eml"));
    let said = sandbox.says(&["import", "report.eml"]).ends_with(0).is_plain_text();
    said.reports(&["3 sides", "+9.8 % worse", "+7.2 % worse", "skipped: 9 lines of text"]);
    let said = sandbox.says(&["import", "report.eml", "--json"]).ends_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(json["format"], "kduel-import/1");
    assert_eq!(json["tables"][0]["rows"][0]["cells"][0]["values"][0]["number"], 83.1061);
}

#[test]
fn what_is_no_report_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("prose", "Nothing was measured.\n");
    sandbox.says(&["import", "prose"]).ends_with(4).reports(&["no table in a shape that is known"]);
    sandbox.write("binary", "\u{7f}ELF\0\0\0");
    sandbox
        .says(&["import", "binary"])
        .ends_with(2)
        .tells(&["it is no text but binary data", "hint:"]);
    sandbox.says(&["import", "absent"]).ends_with(69).tells(&["failed to read absent"]);
    let long = fs::File::create(sandbox.work().join("long")).expect("a file");
    long.set_len(200 << 20).expect("a long file");
    sandbox.says(&["import", "long"]).ends_with(2).tells(&["longer than 32 MiB"]);
}

#[test]
fn an_experiment_is_written_tried_and_its_claims_answered() {
    let sandbox = Sandbox::new();
    sandbox.write("report.eml", &fixture("mails/task-classes.eml"));
    let words = ["import", "report.eml", "--experiment", "kernels.yaml"];
    sandbox.says(&words).ends_with(0).tells(&["wrote kernels.yaml"]);
    sandbox.says(&words).ends_with(69).tells(&["kernels.yaml"]);
    let document = fs::read_to_string(sandbox.work().join("kernels.yaml")).expect("a document");
    assert!(document.contains("# +9.8 %, line 21, 22, 23: testable exactly"), "{document}");
    sandbox.says(&["plan"]).ends_with(0);

    let document = document.replace("measure: instructions", "measure: time");
    let script = "{noise: 0.003, sides: {ckrm-f0.4-with-numtasks: {factor: {all: 1.11}}}}";
    let said = sandbox.run_document(&document, script, &["--fail-on", "never"]).ends_with(0);
    said.reports(&[
        "claims of the report",
        "reproduced Process fork+exit of ckrm-f0.4-with-numtasks: claimed +9.8 %",
        "not seen Process fork+exit of ckrm-f0.4-without-numtasks: claimed +7.2 %",
        "; could have seen 0.",
    ]);
    let said = sandbox.says(&["report", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert_eq!(json["claims"][0]["answer"], "reproduced", "{said}");
    assert_eq!(json["claims"][1]["answer"], "not-seen", "{said}");
}

#[test]
fn counts_of_cpus_are_scaled_and_what_cannot_be_tried_is_said() {
    let sandbox = Sandbox::new();
    for (mail, words) in [
        ("kernbench.mbox", "machine has 16 CPUs (line 7)"),
        ("vmstat.eml", "machine has 8 CPUs (line 6)"),
    ] {
        sandbox.write(mail, &fixture(&format!("mails/{mail}")));
        let file = format!("{mail}.yaml");
        sandbox.says(&["import", mail, "--experiment", &file]).ends_with(0);
        let document = fs::read_to_string(sandbox.work().join(&file)).expect("a document");
        assert!(document.contains(words), "{document}");
        assert!(document.contains("its figures cannot be compared with it"), "{document}");
        Said::by(sandbox.kduel().args(["plan", "-f", &file])).ends_with(0);
    }
    sandbox.write("fine.json", &fixture("real/hyperfine.json"));
    let words = ["import", "fine.json", "--experiment", "fine.yaml"];
    sandbox.says(&words).ends_with(4).tells(&["no workload here does what hyperfine did"]);
}
