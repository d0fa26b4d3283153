//! Settings of a host that is a folder: what is changed, what is said, and that all comes back.
#![expect(clippy::unwrap_used, reason = "helpers of tests, outside test functions")]

use std::fs;
use std::path::PathBuf;

use kduel_tests::{Said, Sandbox};

const KSM: &str = "sys/kernel/mm/ksm/run";
const BALANCING: &str = "proc/sys/kernel/numa_balancing";

struct Host {
    sandbox: Sandbox,
}

impl Host {
    fn new() -> Self {
        let host = Self { sandbox: Sandbox::new() };
        host.put("proc/sys/kernel/random/boot_id", "one\n");
        host.put(KSM, "1\n");
        host.put(BALANCING, "1\n");
        host.put("sys/devices/system/node/online", "0-1\n");
        host.put("sys/module/kvm/parameters/halt_poll_ns", "200000\n");
        host
    }

    fn root(&self) -> PathBuf {
        self.sandbox.work().join("host")
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.root().join(path)).unwrap().trim().to_owned()
    }

    fn tune(&self, words: &[&str]) -> Said {
        let root = self.root();
        let all = [&["tune"], words, &["--root", root.to_str().unwrap()]].concat();
        self.sandbox.says(&all)
    }
}

#[test]
fn what_is_worse_here_is_changed_and_restored() {
    let host = Host::new();
    let said = host.tune(&["apply", "--dry-run"]).ends_with(0);
    assert!(said.stdout.contains("ksm             would change 1 -> 0\n"), "{said}");
    assert!(!said.stdout.contains("halt-poll"), "it is not worse here: {said}");
    assert_eq!(host.get(KSM), "1");
    assert!(!host.sandbox.state().join("tune.json").exists());

    host.tune(&["apply"]).ends_with(0);
    assert_eq!((host.get(KSM), host.get(BALANCING)), ("0".into(), "0".into()));
    let said = host.tune(&["apply"]).ends_with(0);
    assert_eq!(said.stdout, "nothing is to be changed\n");
    host.tune(&["apply", "halt-poll"]).ends_with(0);
    let said = host.tune(&["status"]).ends_with(0);
    assert!(said.stdout.contains("halt-poll       changed, was 200000\n"), "{said}");
    assert!(said.stdout.contains("smt             not on this host\n"), "{said}");

    let said = host.tune(&["undo"]).ends_with(0);
    assert!(said.stdout.contains("ksm             is 1 again\n"), "{said}");
    assert_eq!((host.get(KSM), host.get(BALANCING)), ("1".into(), "1".into()));
    assert_eq!(host.get("sys/module/kvm/parameters/halt_poll_ns"), "200000");
    assert_eq!(host.tune(&["undo"]).ends_with(0).stdout, "nothing is to be undone\n");
    assert!(host.tune(&["status"]).stdout.starts_with("nothing is changed\n"));
}

#[test]
fn all_wrong_words_are_told_at_once() {
    let host = Host::new();
    let said = host.tune(&["apply", "ksn", "smt", "ksm"]).ends_with(2);
    assert!(said.stderr.contains("there is no setting ksn\n  hint: did you mean ksm?"), "{said}");
    assert!(said.stderr.contains("smt cannot be changed on this host"), "{said}");
    assert_eq!(host.get(KSM), "1");
}

#[test]
fn a_reboot_has_undone_it_and_that_is_said() {
    let host = Host::new();
    host.tune(&["apply", "ksm"]).ends_with(0);
    host.put("proc/sys/kernel/random/boot_id", "two\n");
    let said = host.tune(&["undo"]).ends_with(0);
    assert!(said.stderr.contains("the host was booted again"), "{said}");
    assert_eq!(said.stdout, "nothing is to be undone\n");
    assert!(host.tune(&["status"]).stdout.starts_with("nothing is changed\n"));
}

#[test]
fn a_measuring_command_says_that_something_is_changed() {
    let host = Host::new();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    host.put("proc/sys/kernel/random/boot_id", &boot_id);
    host.tune(&["apply", "ksm"]).ends_with(0);
    let said = host.sandbox.says(&["doctor", "--json"]);
    assert!(said.stderr.contains("settings of this host are changed (ksm)"), "{said}");
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["format"], "kduel-doctor/1");
    let said = host.sandbox.says(&["workloads"]);
    assert_eq!(said.stderr, "");
}

#[test]
fn the_doctor_looks_at_the_host_and_knows_what_can_be_changed() {
    let host = Host::new();
    let root = host.root();
    let said = host.sandbox.says(&["doctor", "--json", "--root", root.to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    let checks = json["checks"].as_array().unwrap();
    let ksm = checks.iter().find(|check| check["what"] == "ksm").unwrap();
    assert_eq!((&ksm["state"], &ksm["tunable"]), (&"worse".into(), &true.into()));
    let governor = checks.iter().find(|check| check["what"] == "governor").unwrap();
    assert_eq!(*governor, serde_json::json!({ "what": "governor", "state": "absent" }));
}

#[test]
fn what_a_killed_apply_had_begun_is_undone_at_the_next_start() {
    let host = Host::new();
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    host.put("proc/sys/kernel/random/boot_id", &boot_id);
    host.tune(&["apply", "ksm"]).ends_with(0);
    // The command that measures looks at this very host: the setting is a file of our own on it.
    let setting = host.root().join("setting");
    fs::write(&setting, "new").unwrap();
    let undo = find_undo_file(&host);
    let mut content: serde_json::Value = serde_json::from_slice(&fs::read(&undo).unwrap()).unwrap();
    content["unfinished"] = true.into();
    content["changes"][0]["path"] = setting.to_str().unwrap().trim_start_matches('/').into();
    content["changes"][0]["old"] = "old".into();
    fs::write(&undo, content.to_string()).unwrap();
    let said = host.sandbox.says(&["doctor", "--json"]);
    if rustix::process::geteuid().is_root() {
        assert!(said.stderr.contains("settings of this host (ksm): all are restored"), "{said}");
        assert_eq!(fs::read_to_string(&setting).unwrap(), "old");
        assert!(!undo.exists());
    } else {
        assert!(said.stderr.contains("were about to be changed (ksm)"), "{said}");
    }
}

/// Told by `status`.
fn find_undo_file(host: &Host) -> std::path::PathBuf {
    let status = host.tune(&["status"]).stdout;
    let line = status.lines().find(|line| line.contains("restores it")).unwrap();
    line.rsplit(": ").next().unwrap().into()
}
