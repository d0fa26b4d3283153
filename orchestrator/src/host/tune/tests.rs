use std::path::Path;

use super::*;

/// A host with some settings, and a place for the undo file that is none of its own.
struct Host {
    root: tempfile::TempDir,
}

const GOVERNORS: [&str; 2] = [
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
];
const KSM: &str = "sys/kernel/mm/ksm/run";
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

impl Host {
    fn new() -> Self {
        let host = Self { root: tempfile::tempdir().unwrap() };
        host.put(BOOT_ID, "first\n");
        host.put(KSM, "1\n");
        for governor in GOVERNORS {
            host.put(governor, "powersave\n");
            let offered = governor.replace("scaling_governor", "scaling_available_governors");
            host.put(&offered, "performance powersave\n");
        }
        host
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap().trim().to_owned()
    }

    fn undo_file(&self) -> UndoFile {
        UndoFile::new(&self.root.path().join("state/tune.json"))
    }

    fn files(&self) -> HostFiles {
        HostFiles::new(self.root.path())
    }

    fn tuner(&self) -> Tuner {
        Tuner::new(self.files(), self.undo_file())
    }

    fn changes(&self, what: &str) -> Vec<Change> {
        find(what).unwrap().changes(&self.files()).unwrap()
    }

    fn all(&self) -> [String; 3] {
        [self.get(GOVERNORS[0]), self.get(GOVERNORS[1]), self.get(KSM)]
    }
}

#[test]
fn what_is_applied_is_undone() {
    let host = Host::new();
    let tuner = host.tuner();
    let changes = [host.changes("governor"), host.changes("ksm")].concat();
    assert_eq!(changes.len(), 3);
    tuner.apply(&changes).unwrap();
    assert_eq!(host.all(), ["performance", "performance", "0"]);
    let Pending::Changed(undo) = tuner.pending().unwrap() else { panic!("nothing is pending") };
    assert_eq!((undo.unfinished, undo.settings()), (false, vec!["governor", "ksm"]));
    assert!(host.changes("governor").is_empty(), "it is as it should be now");
    assert_eq!(tuner.undo().unwrap().len(), 3);
    assert_eq!(host.all(), ["powersave", "powersave", "1"]);
    assert_eq!(tuner.pending().unwrap(), Pending::Nothing);
    assert_eq!(tuner.undo().unwrap(), []);
}

#[test]
fn the_first_old_value_survives_a_second_application() {
    let host = Host::new();
    host.tuner().apply(&host.changes("governor")).unwrap();
    // Somebody else changes it meanwhile.
    host.put(GOVERNORS[0], "powersave\n");
    host.put(GOVERNORS[1], "schedutil\n");
    host.tuner().apply(&host.changes("governor")).unwrap();
    host.tuner().apply(&host.changes("ksm")).unwrap();
    assert_eq!(host.tuner().undo().unwrap().len(), 3);
    assert_eq!(host.all(), ["powersave", "powersave", "1"]);
}

#[test]
fn a_change_that_fails_undoes_those_before_it() {
    let host = Host::new();
    host.tuner().apply(&host.changes("ksm")).unwrap();
    let mut changes = host.changes("governor");
    // A folder cannot be written, whoever tries.
    fs::create_dir_all(host.root.path().join("sys/gone")).unwrap();
    changes.push(Change { path: "sys/gone".to_owned(), ..changes[0].clone() });
    let failure = host.tuner().apply(&changes).unwrap_err();
    assert!(failure.to_string().contains("sys/gone"), "{failure}");
    assert_eq!(host.all(), ["powersave", "powersave", "0"], "what was applied before stays");
    let Pending::Changed(undo) = host.tuner().pending().unwrap() else { panic!("all is lost") };
    assert_eq!(undo.settings(), ["ksm", "governor"], "what cannot be restored is still told");
    let failure = host.tuner().undo().unwrap_err();
    assert!(failure.hint.is_some(), "{failure}");
    assert_eq!(host.all(), ["powersave", "powersave", "1"]);
}

#[test]
fn a_value_that_does_not_take_is_an_error_and_leaves_nothing_changed() {
    let host = Host::new();
    let tuner = host.tuner();
    let mut changes = host.changes("governor");
    // Reads back as the word in brackets, as a file of sysfs does that knows better.
    changes[1].new = "always [never]".to_owned();
    let failure = tuner.apply(&changes).unwrap_err();
    assert!(failure.to_string().contains("reads back as \"never\""), "{failure}");
    assert_eq!(host.all(), ["powersave", "powersave", "1"]);
    assert_eq!(tuner.pending().unwrap(), Pending::Nothing);
}

#[test]
fn nothing_is_changed_where_the_old_values_cannot_be_kept() {
    let host = Host::new();
    host.put("state", "a file where a folder should be");
    host.tuner().apply(&host.changes("ksm")).unwrap_err();
    assert_eq!(host.get(KSM), "1");
}

#[test]
fn after_a_crash_the_undo_file_tells_all_and_undoes_all() {
    let host = Host::new();
    let changes = host.changes("governor");
    let mut undo = Undo::new("first");
    undo.add(&changes);
    fs::create_dir_all(host.root.path().join("state")).unwrap();
    host.undo_file().write(&undo).unwrap();
    // The first change was done when the crash came.
    host.put(GOVERNORS[0], "performance\n");
    let Pending::Changed(found) = host.tuner().pending().unwrap() else { panic!("it is lost") };
    assert!(found.unfinished);
    host.tuner().undo().unwrap();
    assert_eq!(host.all(), ["powersave", "powersave", "1"]);
}

#[test]
fn another_boot_of_the_host_makes_it_moot() {
    let host = Host::new();
    host.tuner().apply(&host.changes("ksm")).unwrap();
    host.put(BOOT_ID, "second\n");
    assert!(matches!(host.tuner().pending().unwrap(), Pending::Forgotten(_)));
    host.tuner().forget().unwrap();
    assert_eq!(host.tuner().pending().unwrap(), Pending::Nothing);
    assert_eq!(host.get(KSM), "0", "files are left alone");
}

#[test]
fn a_file_that_says_something_else_is_not_guessed_at() {
    let host = Host::new();
    for text in ["{", r#"{"format":"x","host-boot":"","unfinished":false,"changes":[]}"#] {
        host.put("state/tune.json", text);
        let failure = host.tuner().pending().unwrap_err();
        assert!(failure.hint.is_some(), "{failure}");
        host.tuner().apply(&host.changes("ksm")).unwrap_err();
        assert_eq!(host.get(KSM), "1");
    }
}

#[test]
fn settings_that_a_host_lacks_are_told_from_those_that_are_right() {
    let host = Host::new();
    let files = host.files();
    assert_eq!(find("thp").unwrap().changes(&files), None);
    assert!(!can_change(&files, "thp") && can_change(&files, "ksm"));
    assert!(!can_change(&files, "no such thing"));
    let smt = Path::new("sys/devices/system/cpu/smt/control").to_str().unwrap();
    for (control, changes) in [("on", Some(1)), ("off", Some(0)), ("notsupported", None)] {
        host.put(smt, control);
        let found = find("smt").unwrap().changes(&files);
        assert_eq!(found.map(|changes| changes.len()), changes, "{control}");
    }
}
