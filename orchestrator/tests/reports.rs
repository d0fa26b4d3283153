//! Reports of others: their figures to the last digit, and that no figure or line is lost unnoticed.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use kduel::collect::parse::{Format, Imported, Role, Row, Table, Value, import};
use kduel::report::{reported_json, reported_text, skeleton};
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/import")
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// Every fixture with its name.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for kind in ["mails", "real", "shapes"] {
        for entry in fs::read_dir(folder().join(kind)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension != "md") {
                all.push((path.display().to_string(), fs::read(path).unwrap()));
            }
        }
    }
    all.sort();
    assert!(all.len() >= 20, "{}", all.len());
    all
}

fn table(imported: &Imported, format: Format) -> &Table {
    imported.tables.iter().find(|table| table.format == format).unwrap()
}

fn row<'t>(table: &'t Table, metric: &str) -> &'t Row {
    table.rows.iter().find(|row| row.metric == metric).unwrap()
}

/// The figures of a row, side by side.
fn means(row: &Row) -> Vec<Option<f64>> {
    row.cells.iter().map(kduel::collect::parse::Cell::mean).collect()
}

#[track_caller]
fn tells(imported: &Imported, words: &[&str]) {
    let text = reported_text(imported, true);
    for word in words {
        assert!(text.contains(word), "{word} is not in\n{text}");
    }
}

#[test]
fn task_classes_quoted_twice() {
    let imported = import(&fixture("mails/task-classes.eml"));
    let table = table(&imported, Format::Lmbench);
    let sides: Vec<&str> = table.sides.iter().map(|side| side.name.as_str()).collect();
    let names = ["Vanilla 2.6.14", "CKRM f0.4 with numtasks", "CKRM f0.4 without numtasks"];
    assert_eq!(sides, names);
    let figures: Vec<Vec<f64>> = table.rows[0]
        .cells
        .iter()
        .map(|cell| cell.values.iter().map(|value| value.number).collect())
        .collect();
    assert_eq!(
        figures,
        [[83.1061, 83.5152, 83.1194], [90.9, 91.4333, 91.8667], [89.5333, 88.871, 89.2419]]
    );
    assert_eq!(table.rows[0].cells[1].values[0].line, 21);
    assert_eq!(imported.context.machine.as_ref().unwrap().line, 9);
    tells(&imported, &["+9.8 % worse", "+7.2 % worse", "83.2469 (n=3)"]);
}

#[test]
fn kernbench_and_its_diffprofile_in_a_mailbox() {
    let imported = import(&fixture("mails/kernbench.mbox"));
    assert_eq!(imported.messages, 2);
    let times = table(&imported, Format::Kernbench);
    assert_eq!(means(row(times, "elapsed")), [Some(47.45), Some(47.18)]);
    assert_eq!(means(row(times, "system")), [Some(143.17), Some(138.62)]);
    assert_eq!(times.repeated, [60]);
    let profile = table(&imported, Format::Diffprofile);
    let (total, functions): (Vec<&Row>, Vec<&Row>) =
        profile.rows.iter().partition(|row| row.role == Role::Total);
    assert_eq!(functions.len(), 30);
    assert_eq!(total[0].metric, "total");
    assert_eq!(means(total[0]), [Some(-2076.0)]);
    assert_eq!(means(row(profile, "do_schedule")), [Some(2023.0)]);
    assert_eq!(means(row(profile, "schedule")), [Some(-2133.0)]);
    let sum: f64 = functions.iter().filter_map(|row| row.cells[0].mean()).sum();
    assert!((sum + 4380.0).abs() < 1e-9);
    tells(&imported, &["-0.6 % better", "-3.2 % better", "the ticks of either are not known"]);
    tells(&imported, &["machine: 16 CPUs"]);
}

#[test]
fn vmstat_of_three_sides_wrapped() {
    let imported = import(&fixture("mails/vmstat.eml"));
    let table = table(&imported, Format::Vmstat);
    assert_eq!(table.sides.len(), 3);
    assert_eq!(means(row(table, "r")), [Some(421.0), Some(4.0), Some(293.0)]);
    assert_eq!(means(row(table, "cs")), [Some(1_090_000.0), Some(390_000.0), Some(1_200_000.0)]);
    assert_eq!(means(row(table, "id")), [Some(7.0), Some(48.0), Some(2.0)]);
    let dropped =
        |note: &&kduel::collect::parse::Note| note.text.starts_with("first sample dropped");
    assert_eq!(table.notes.iter().filter(dropped).count(), 3);
    assert_eq!(imported.context.machine.as_ref().unwrap().cpus, 8);
}

#[test]
fn perf_stat_quoted_printable() {
    let imported = import(&fixture("mails/cgroup-move.eml"));
    let table = table(&imported, Format::PerfStat);
    assert_eq!(table.sides.len(), 2);
    let figures = [
        ("task-clock", [2.686149, 2.639303]),
        ("CPUs utilized", [0.119, 0.915]),
        ("context-switches", [2.0, 1.0]),
        ("page-faults", [633.0, 633.0]),
        ("cycles", [6_292_755.0, 3_883_572.0]),
        ("instructions", [4_844_702.0, 4_830_809.0]),
        ("branches", [974_011.0, 975_204.0]),
        ("branch-misses", [35_187.0, 35_314.0]),
        ("elapsed", [0.022597372, 0.002884424]),
    ];
    for (metric, figures) in figures {
        assert_eq!(means(row(table, metric)), figures.map(Some), "{metric}");
    }
    assert_eq!(row(table, "elapsed").cells[0].spread, Some(0.981));
    assert_eq!(row(table, "cycles").cells[1].spread, Some(1.767));
    for metric in ["cache-references", "cache-misses"] {
        let row = row(table, metric);
        assert_eq!(means(row), [None, None]);
        assert_eq!(row.cells[0].absent.as_deref(), Some("<not counted>"));
    }
    tells(&imported, &["7.8 times faster", "23.054", "3.329"]);
}

#[test]
fn every_fixture_reads_as_it_did() {
    for (name, bytes) in fixtures() {
        let file = name.rsplit('/').next().unwrap().replace('.', "-");
        insta::assert_snapshot!(file, reported_text(&import(&bytes), true));
    }
}

#[test]
fn percentages_that_the_figures_do_not_give_are_marked() {
    let marked = |from: &str, to: &str, name: &str| {
        let text = String::from_utf8(fixture(name)).unwrap();
        assert!(text.contains(from), "{from}");
        reported_text(&import(text.replacen(from, to, 1).as_bytes()), true)
    };
    for (name, ..) in fixtures().iter().filter(|(name, _)| name.contains("shapes")) {
        let text = reported_text(&import(&fs::read(name).unwrap()), true);
        assert!(!text.contains("DISAGREES") && !text.contains("OTHER SIGN"), "{text}");
    }
    assert!(
        marked("-6.2%      93800", "-7.2%      93800", "shapes/robot.txt").contains("DISAGREES")
    );
    assert!(
        marked("-6.2%      93800", "+6.2%      93800", "shapes/robot.txt").contains("OTHER SIGN")
    );
    assert!(
        marked("-1.0        7.54", "-2.0        7.54", "shapes/robot.txt").contains("DISAGREES")
    );
    assert!(marked("*   5.00%*", "*  -5.00%*", "shapes/mmtests.txt").contains("OTHER SIGN"));
    assert!(marked("*   6.00%*", "*   7.00%*", "shapes/mmtests.txt").contains("DISAGREES"));
    assert!(marked("-2.74%", "-2.14%", "shapes/kernbench-columns.txt").contains("DISAGREES"));
    assert!(marked("888.9", "988.9", "shapes/unixbench.txt").contains("its index is 988.9"));
}

/// Every number with its line, of all tables.
fn values(imported: &Imported) -> Vec<Value> {
    let rows = imported.tables.iter().flat_map(|table| &table.rows);
    rows.flat_map(|row| &row.cells).flat_map(|cell| cell.values.iter().copied()).collect()
}

/// What was found, without where it stands.
fn content(imported: &Imported) -> String {
    let mut text = String::new();
    for table in &imported.tables {
        text += &format!("{:?} {:?} {:?}\n", table.format, table.sides, table.parameters);
        for row in &table.rows {
            let numbers: Vec<Vec<f64>> = row
                .cells
                .iter()
                .map(|cell| cell.values.iter().map(|value| value.number).collect())
                .collect();
            text += &format!("{} {numbers:?}\n", row.metric);
        }
        text += &table.notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n");
    }
    let lines = |ranges: &[(usize, usize)]| ranges.iter().map(|(a, b)| b - a + 1).sum::<usize>();
    let skipped = &imported.skipped;
    text + &format!("skipped {} {}", lines(&skipped.text), lines(&skipped.figures))
}

/// Where a number stands in a line, as start and end of its digits.
fn place(line: &str, wanted: f64) -> Option<(usize, usize)> {
    let part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-' | '+' | 'e');
    let mut at = 0;
    while at < line.len() {
        let rest = &line[at..];
        let Some(start) = rest.find(|c: char| c.is_ascii_digit()) else { break };
        let start = at + start;
        let sign = usize::from(start > 0 && line[..start].ends_with('-'));
        let end = line[start..].find(|c| !part(c)).map_or(line.len(), |end| start + end);
        // Separators behind a number are none of it.
        let token = line[start..end].trim_end_matches([',', '.', '-', '+', 'e']);
        for piece in [token, token.split(',').next().unwrap_or_default()] {
            let number: Option<f64> = piece.replace(',', "").parse().ok();
            let negative = sign == 1 && wanted < 0.0;
            if number.is_some_and(|number| number == wanted || negative && number == -wanted) {
                return Some((start, start + piece.len()));
            }
        }
        at = start + token.len().max(1);
        if let Some(comma) = token.find(',') {
            at = start + comma + 1;
        }
    }
    None
}

#[test]
fn a_changed_digit_changes_the_result() {
    for (name, bytes) in fixtures() {
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let before = import(text.as_bytes());
        let found = values(&before);
        assert!(!found.is_empty(), "{name}");
        for value in found {
            // What passed is no number of the text.
            if table_of(&before, value).format == Format::Ktap {
                continue;
            }
            let line = lines[value.line - 1];
            let (start, end) = place(line, value.number)
                .unwrap_or_else(|| panic!("{name}:{}: no {} in {line}", value.line, value.number));
            let digits = |at: &usize| line.as_bytes()[*at].is_ascii_digit();
            // Further digits than a double holds are none.
            let first = (start..end).find(digits).unwrap();
            let last = (start..end.min(start + 12)).rfind(digits).unwrap();
            for digit in [first, last] {
                let other = if &line[digit..=digit] == "7" { "3" } else { "7" };
                let changed = format!("{}{other}{}", &line[..digit], &line[digit + 1..]);
                let mut mutated = lines.clone();
                mutated[value.line - 1] = &changed;
                let after = import(mutated.join("\n").as_bytes());
                assert_ne!(content(&after), content(&before), "{name}:{}: {changed}", value.line);
            }
        }
    }
}

fn table_of(imported: &Imported, value: Value) -> &Table {
    let within = |table: &&Table| (table.first..=table.last).contains(&value.line);
    imported.tables.iter().find(within).unwrap()
}

#[test]
fn a_test_that_fails_instead_changes_the_result() {
    let text = String::from_utf8(fixture("shapes/ktap.txt")).unwrap();
    let before = content(&import(text.as_bytes()));
    for (from, to) in [
        ("  ok 1", "  not ok 1"),
        ("not ok 1 list", "ok 1 list"),
        ("1..3", "1..4"),
        ("ok 3", "ok 4"),
    ] {
        assert!(text.contains(from));
        assert_ne!(content(&import(text.replacen(from, to, 1).as_bytes())), before, "{from}");
    }
}

#[test]
fn a_line_that_is_missing_is_noticed() {
    for (name, bytes) in fixtures() {
        let text = String::from_utf8(bytes).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let before = import(text.as_bytes());
        let mut places: Vec<usize> = values(&before).iter().map(|value| value.line).collect();
        places.extend(before.tables.iter().map(|table| table.first));
        places.sort_unstable();
        places.dedup();
        // The names of groups above the names of columns say nothing.
        places.retain(|place| !lines[place - 1].starts_with("procs "));
        for place in places {
            let mut rest = lines.clone();
            rest.remove(place - 1);
            let after = import(rest.join("\n").as_bytes());
            assert_ne!(content(&after), content(&before), "{name}:{place}: {}", lines[place - 1]);
        }
    }
}

/// Everything that can be done with an input.
fn all_of(bytes: &[u8]) {
    let imported = import(bytes);
    let text = reported_text(&imported, true);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    let json: serde_json::Value = serde_json::from_str(&reported_json(&imported)).unwrap();
    assert_eq!(json["format"], "kduel-import/1");
    if let Ok(document) = skeleton(&imported, "x\u{1b}\n", 2) {
        assert!(serde_yaml::from_str::<serde::de::IgnoredAny>(&document).is_ok(), "{document}");
    }
}

#[test]
fn long_lines_and_odd_bytes_are_survived() {
    all_of(b"");
    all_of(b"\n");
    all_of(&[0xff; 100_000]);
    all_of("{".repeat(200_000).as_bytes());
    all_of("{\n".repeat(20_000).as_bytes());
    all_of("> ".repeat(200_000).as_bytes());
    all_of("1 ".repeat(500_000).as_bytes());
    all_of("KTAP version 1\n".repeat(10_000).as_bytes());
    all_of("procs memory\n r b\n".repeat(10_000).as_bytes());
    all_of("12 function\n".repeat(50_000).as_bytes());
    all_of("commit:\n".repeat(10_000).as_bytes());
    all_of(
        "Content-Type: multipart/mixed; boundary=a\nSubject: x\nFrom: y\n\n--a\n"
            .repeat(200)
            .as_bytes(),
    );
    all_of("Process fork+exit: \u{1b}[2J 1e999 microseconds\nTime: 0\n".as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..4000)) {
        all_of(&bytes);
    }

    #[test]
    fn no_damaged_report_breaks_it(
        which in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0usize..40), 1..12),
    ) {
        let fixtures = fixtures();
        let mut bytes = which.get(&fixtures).1.clone();
        for (at, byte, length) in cuts {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + length);
            bytes.splice(at..end, [byte]);
        }
        all_of(&bytes);
    }
}
