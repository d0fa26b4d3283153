//! Every JSON report keeps what the schema promises.

use serde_json::Value;

use super::*;
use crate::collect::TrialNoise;
use crate::host::noise::HostNoise;
use crate::plan::{Claim, Prognosis};
use crate::report::REPORT_SCHEMA;

fn schema() -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(REPORT_SCHEMA).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn complaints(report: &Value) -> Vec<String> {
    let schema = schema();
    schema.iter_errors(report).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

fn read(text: &str) -> Value {
    let report = serde_json::from_str(text).unwrap();
    assert_eq!(complaints(&report), Vec::<String>::new(), "{text}");
    report
}

fn timed() -> Value {
    read(&json_of(&plan(&["base", "patched"], 8), &pairs("patched", &SLOWER)))
}

fn exact() -> Value {
    let mut base = exact_boot("base", 142_510.0, 14);
    result_mut(&mut base).distributions.push(Distribution {
        trial: 0,
        iteration: 0,
        metric: "guest-time".into(),
        unit: "ns".into(),
        values: vec![1.0, 2.0],
    });
    let records = [base.clone(), exact_boot("patched", 120_000.0, 700), again(&base)];
    read(&json_of(&exact_plan(), &records))
}

#[test]
fn timed_exact_failing_empty_and_hostile_reports_fit() {
    assert_eq!(timed()["comparisons"][0]["verdict"], "regression");
    assert_eq!(exact()["comparisons"][0]["exact"], "fewer-instructions");
    let plan = plan(&["base", "patched"], 3);
    let mut records = pairs("patched", &[1.0; 3]);
    for record in records.iter_mut().filter(|record| record.side == "patched") {
        *record = failed("fork", "patched", record.block, FailureClass::Panic, "t\u{1b}[2J");
    }
    assert_eq!(read(&json_of(&plan, &records))["verdict"], "fails");
    assert_eq!(read(&json_of(&plan, &[]))["verdict"], "invalid");
    for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        read(&json_of(&plan, &pairs("patched", &[1.0, odd, 1.0])));
        let records = [exact_boot("base", 0.0, 1), exact_boot("patched", odd, 1)];
        read(&json_of(&exact_plan(), &records));
    }
}

#[test]
fn claims_and_what_the_host_did_fit() {
    let mut plan = plan(&["base", "patched"], 8);
    let claim = |metric: &str, change| Claim {
        side: "patched".into(),
        metric: metric.into(),
        workload: Some("fork-exit".into()),
        base: None,
        value: None,
        unit: String::new(),
        change,
        better: Some(kduel_protocol::Better::Lower),
        prognosis: Some(Prognosis::ByTime),
    };
    plan.experiments[0].claims = vec![claim("a\u{1b}[2Jb", 0.15), claim("c", -0.2)];
    let mut records = pairs("patched", &SLOWER);
    let steals = std::iter::once(0.5).chain(std::iter::repeat(0.1));
    for (record, steal) in records.iter_mut().zip(steals) {
        let host = HostNoise { steal: Some(steal), ..HostNoise::default() };
        result_mut(record).noise = vec![TrialNoise { trial: 0, host }];
    }
    let report = read(&json_of(&plan, &records));
    assert_eq!(report["claims"][0]["answer"], "reproduced");
    assert_eq!(report["claims"][1]["answer"], "opposite");
    assert_eq!(report["comparisons"][0]["all-pairs"]["verdict"], "regression");
    assert_eq!(report["sides"][0]["noise"]["contaminated"], 1);
    let (info, analysis) = (info(), analyse(&plan, &records));
    let none = RunProfiles::default();
    let report = Report { info: &info, plan: &plan, analysis: &analysis, profiles: &none };
    let page = crate::report::html(&report, &crate::report::Beside::default());
    assert!(page.contains("Claims of the report") && page.contains("a\\x1b[2Jb"), "{page}");
}

#[test]
fn a_comparison_of_runs_fits_and_names_them() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    let analysis = analyse(&plan, &records);
    let info = RunInfo {
        label: Some("l\u{202e}".into()),
        compared: vec!["one".into(), "two".into()],
        ..info()
    };
    let profiles = RunProfiles::default();
    let report = Report { info: &info, plan: &plan, analysis: &analysis, profiles: &profiles };
    let report = read(&json(&report));
    assert_eq!(
        (&report["runs"], &report["label"]),
        (&serde_json::json!(["one", "two"]), &serde_json::json!("l\\u{202e}"))
    );
}

/// By path, every object of a report, so that each can be spoiled.
fn objects(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(path.to_owned());
            fields.iter().for_each(|(name, part)| objects(part, &format!("{path}/{name}"), found));
        }
        Value::Array(parts) => {
            let mut each = parts.iter().enumerate();
            each.by_ref().for_each(|(at, part)| objects(part, &format!("{path}/{at}"), found));
        }
        _ => {}
    }
}

#[test]
fn a_field_that_is_unknown_or_absent_is_refused_wherever_it_is() {
    let optional = [
        "label",
        "runs",
        "base",
        "value",
        "change",
        "timed",
        "steal-base",
        "steal",
        "pair-sd",
        "shuffled-sd",
        "pairing",
        "exact",
        "work",
        "guests",
        "geometric-means",
        "distributions",
    ];
    let mut tried = 0;
    for report in [timed(), exact()] {
        let mut paths = Vec::new();
        objects(&report, "", &mut paths);
        for path in paths.iter().filter(|path| !path.contains("vulnerabilities")) {
            let mut more = report.clone();
            more.pointer_mut(path).unwrap()["surprise"] = serde_json::json!(1);
            assert!(!complaints(&more).is_empty(), "{path} with a surprise");
            let fields = report.pointer(path).unwrap().as_object().unwrap();
            for name in fields.keys().filter(|name| !optional.contains(&name.as_str())) {
                let mut less = report.clone();
                less.pointer_mut(path).unwrap().as_object_mut().unwrap().remove(name);
                assert!(!complaints(&less).is_empty(), "{path} without {name}");
                tried += 1;
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

#[test]
fn words_are_from_their_lists() {
    for (path, odd) in [
        ("/format", serde_json::json!("kduel-report/2")),
        ("/verdict", serde_json::json!("great")),
        ("/comparisons/0/better", serde_json::json!("faster")),
        ("/comparisons/0/margin", serde_json::json!(0)),
        ("/comparisons/0/pairs", serde_json::json!(-1)),
        ("/started", serde_json::json!("yesterday")),
        ("/sides/0/boots", serde_json::json!("8")),
    ] {
        let mut report = timed();
        *report.pointer_mut(path).unwrap() = odd;
        assert!(!complaints(&report).is_empty(), "{path}");
    }
}
