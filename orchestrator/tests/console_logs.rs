//! Golden console logs: a header (`class`, `title`, `note`), an empty line, the raw console.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::Path;

use kduel::boot::crash::{self, Detector};

struct Case {
    class: String,
    title: Option<String>,
    note: Option<String>,
    log: String,
}

fn read(path: &Path) -> Case {
    let text = fs::read_to_string(path).unwrap();
    let (header, log) = text.split_once("\n\n").unwrap();
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        header.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
    };
    Case {
        class: field("class").unwrap(),
        title: field("title"),
        note: field("note"),
        log: log.to_owned(),
    }
}

fn class_name(crash: &crash::Crash) -> String {
    serde_json::to_value(crash.class).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn every_console_log_is_read_as_its_header_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/console");
    let mut cases = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let case = read(&path);
        let mut detector = Detector::default();
        for line in case.log.split('\n') {
            detector.line(line.trim_end_matches('\r'));
        }
        let crash = detector.crash();
        assert_eq!(
            crash.map_or_else(|| "none".to_owned(), class_name),
            case.class,
            "class of {name}"
        );
        assert_eq!(crash.map(|crash| crash.title.clone()), case.title, "title of {name}");
        assert_eq!(detector.note(), case.note.as_deref(), "note of {name}");
        if let Some(crash) = crash::find(&case.log) {
            let line = case.log[crash.start..].lines().next().unwrap();
            assert!(line.contains(&crash.title), "{name}: `{line}` begins the report");
        }
        cases += 1;
    }
    assert!(cases >= 12, "only {cases} logs were found");
}
