//! What `kduel doctor` says of hosts that are there as fixtures: each `.host` file holds a host's files,
//! `== path` before each, and the `.kvm.txt` or `.tcg.txt` beside it what is found.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside test functions")]

use std::fs;
use std::path::{Path, PathBuf};

use kduel::boot::Accel;
use kduel::host::examine::{Finding, State, examine, render};
use kduel::host::files::HostFiles;
use tempfile::TempDir;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hosts")
}

/// Makes the files of a fixture below a root.
fn unpack(host: &Path) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(host).unwrap();
    let files = text.split("== ").filter(|file| !file.is_empty());
    for (path, content) in files.map(|file| file.split_once('\n').unwrap()) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

fn findings(name: &str, accel: Accel) -> Vec<Finding> {
    let root = unpack(&folder().join(name).with_extension("host"));
    examine(&HostFiles::new(root.path()), accel)
}

#[test]
fn every_host_is_described() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "host") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        for accel in [Accel::Kvm, Accel::Tcg] {
            // The others differ in the one line about KVM's polling at most.
            if accel == Accel::Tcg && name != "laptop-on-battery" {
                continue;
            }
            seen += 1;
            let found = render(&findings(name, accel));
            let golden = path.with_extension(format!("{}.txt", accel.name()));
            if found != fs::read_to_string(&golden).unwrap_or_default() {
                let actual =
                    Path::new(env!("CARGO_TARGET_TMPDIR")).join(golden.file_name().unwrap());
                fs::write(&actual, &found).unwrap();
                wrong.push(format!("{name}: found what is in {}:\n{found}", actual.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, 9);
}

#[test]
fn a_host_that_tells_nothing_is_no_alarm() {
    let findings = findings("nothing-told", Accel::Kvm);
    assert!(findings.iter().all(|finding| finding.state == State::Absent), "{findings:?}");
    let json = serde_json::to_string(&findings[0]).unwrap();
    assert_eq!(json, r#"{"what":"processors","state":"absent"}"#);
}

#[test]
fn a_finding_in_json_has_everything_that_is_known() {
    let findings = findings("laptop-on-battery", Accel::Tcg);
    let of = |what: &str| findings.iter().find(|finding| finding.what == what).unwrap();
    let json = |what: &str| serde_json::to_value(of(what)).unwrap();
    assert_eq!(
        json("ksm"),
        serde_json::json!({
            "what": "ksm",
            "state": "worse",
            "found": "runs",
            "effect": "equal pages of both sides are merged, and the next write to one takes a fault",
            "fix": "echo 0 | sudo tee /sys/kernel/mm/ksm/run",
            "tunable": true
        })
    );
    assert_eq!((&json("halt-poll")["state"], of("power").tunable), (&"moot".into(), false));
}
