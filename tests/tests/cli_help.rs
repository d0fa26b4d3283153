//! Commands that explain.

use kduel_tests::{Said, Sandbox};

#[test]
fn every_workload_is_listed_and_explained() {
    let sandbox = Sandbox::new();
    let list = sandbox.says(&["workloads"]).ends_with(0).is_plain_text();
    for info in kduel_protocol::WORKLOADS {
        assert!(list.stdout.contains(info.name), "no {} in {list}", info.name);
        let said = sandbox.says(&["workloads", info.name]).ends_with(0).is_plain_text();
        for metric in info.metrics {
            assert!(said.stdout.contains(metric.name), "no {} in {said}", metric.name);
        }
        for param in info.params {
            assert!(said.stdout.contains(param.name), "no {} in {said}", param.name);
        }
    }
    assert!(sandbox.runs().is_empty());
}

#[test]
fn completions_are_scripts_their_shells_can_read() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let said = sandbox.says(&["completions", shell]).ends_with(0);
        assert!(said.stdout.contains("kduel") && said.stderr.is_empty(), "{said}");
    }
    sandbox.write("kduel.bash", &sandbox.says(&["completions", "bash"]).stdout);
    let mut bash = sandbox.program("bash");
    Said::by(bash.args(["-n", "kduel.bash"])).ends_with(0);
}

#[test]
fn the_manual_page_is_one() {
    let said = Sandbox::new().says(&["man"]).ends_with(0);
    assert!(said.stdout.contains(".TH kduel 1"), "{said}");
    for command in ["run", "plan", "report", "runs", "doctor"] {
        assert!(said.stdout.contains(command), "no {command} in {said}");
    }
}

#[test]
fn the_doctor_answers_in_json() {
    let said = Sandbox::new().says(&["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    assert!(json.is_object(), "{said}");
    assert!(matches!(said.code, Some(0 | 69)), "{said}");
}

#[test]
fn help_fits_eighty_columns_and_version_is_said() {
    let sandbox = Sandbox::new();
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["runs", "--help"],
        &["report", "--help"],
        &["annotate", "--help"],
        &["tune", "--help"],
        &["doctor", "--help"],
    ] {
        sandbox.says(arguments).ends_with(0).is_plain_text();
    }
    sandbox.says(&["--version"]).ends_with(0).reports(&["kduel 0."]);
    sandbox.says(&[]).ends_with(2);
}
