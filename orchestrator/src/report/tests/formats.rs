//! Mails, commit messages, CSV, JUnit and KTAP of the same runs.

use super::*;
use crate::collect::Monitored;
use crate::report::{changelog, csv, junit, ktap, mail, regzbot};
use kduel_protocol::Monitor;

/// All of them, by name, within their bounds.
fn formats(info: &RunInfo, plan: &Plan, records: &[BootRecord]) -> [(&'static str, String); 5] {
    let analysis = analyse(plan, records);
    let report = Report { info, plan, analysis: &analysis, profiles: &RunProfiles::default() };
    let made = || {
        [
            ("changelog", changelog(&report)),
            ("mail", mail(&report, records)),
            ("csv", csv(&report)),
            ("junit", junit(&report)),
            ("ktap", ktap(&report)),
        ]
    };
    let all = made();
    assert_eq!(all, made());
    let fits = |text: &str, width| text.lines().all(|line| line.len() <= width) && text.is_ascii();
    assert!(fits(&all[0].1, 72) && all[0].1.lines().count() <= 12, "{}", all[0].1);
    assert!(fits(&all[1].1, 75), "{}", all[1].1);
    for (name, text) in &all {
        assert!(text.ends_with('\n'), "{name}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}: {text:?}");
        assert!(!text.contains('\u{202e}'), "{name}: {text:?}");
    }
    all
}

fn shown(info: &RunInfo, plan: &Plan, records: &[BootRecord]) -> String {
    let parts = formats(info, plan, records).map(|(name, text)| format!("==== {name}\n{text}"));
    parts.join("\n")
}

#[test]
fn a_timed_regression() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    let shown = shown(&info(), &plan, &records);
    assert!(!shown.contains("..."), "{shown}");
    insta::assert_snapshot!("formats_regression", shown);
}

#[test]
fn where_nothing_is_decided_the_whole_is_skipped() {
    let plan = plan(&["base", "patched"], 8);
    let records = pairs("patched", &[1.3, 0.8, 1.02, 0.91, 1.2, 0.85, 1.15, 0.95]);
    let [(_, changelog), (_, mail), .., (_, ktap)] = formats(&info(), &plan, &records);
    assert!(ktap.ends_with("\nok 1 fork # SKIP nothing was decided\n"), "{ktap}");
    assert!(changelog.contains("\n  1 inconclusive\n"), "{changelog}");
    assert!(mail.starts_with("kduel: fork-exit time: inconclusive (6.1.176 -> 6.12.48)\n"));
}

#[test]
fn an_exact_run_has_more_or_fewer_and_nothing_is_slow() {
    let base = exact_boot("base", 142_510.0, 14);
    let records = [base.clone(), exact_boot("patched", 165_450.0, 700), again(&base)];
    let shown = shown(&info(), &exact_plan(), &records);
    for word in ["slower", "faster", "worse", "better"] {
        assert!(!shown.replace(",better,", "").contains(word), "{word}: {shown}");
    }
    assert!(shown.contains("\nkduel: fork-exit +16.1 % instructions (6.1.176 -> 6.12.48)\n"));
    insta::assert_snapshot!("formats_exact", shown);
}

#[test]
fn three_sides_one_of_them_unsure_and_one_crashing() {
    let plan = plan(&["base", "patched", "dynmods"], 8);
    let mut records = pairs("patched", &[1.3, 0.8, 1.02, 0.91, 1.2, 0.85, 1.15, 0.95]);
    for block in 0..8 {
        let title = "Kernel panic - not syncing: <init> & \u{1b}]0;x\u{7} # 'died'";
        records.push(failed("fork", "dynmods", block, FailureClass::Panic, title));
    }
    let shown = shown(&info(), &plan, &records);
    assert!(shown.contains("<skipped message=\"inconclusive: "), "{shown}");
    insta::assert_snapshot!("formats_crash", shown);
}

#[test]
fn a_fault_of_the_rig_that_cost_no_pair_is_no_error() {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &[1.0; 8]);
    let mut first = failed("fork", "patched", 0, FailureClass::QemuKilled, "ended by signal 9");
    for record in &mut records {
        record.attempt = 1;
    }
    let error = |records: &[BootRecord]| {
        let [.., (_, junit), (_, ktap)] = formats(&info(), &plan, records);
        let errors = junit.contains("<error type=\"error\" message=\"QEMU was killed");
        assert_eq!(errors, ktap.contains("# ERROR QEMU was killed"));
        assert!(junit.contains("ended by signal 9") && ktap.contains("ended by signal 9"));
        errors
    };
    records.insert(0, first.clone());
    assert!(!error(&records));
    first.attempt = 2;
    records.push(first);
    assert!(error(&records));
}

#[test]
fn what_guests_chose_is_raw_nowhere() {
    let evil = "=\u{1b}[31m\u{202e}<&\"'#,\u{ffff}\n";
    let mut plan = plan(&["base", "patched"], 1);
    plan.experiments[0].name = format!("fork{evil}");
    plan.experiments[0].trials[0].workload = format!("{evil}w");
    let metric = format!("{evil}m");
    let experiment = plan.experiments[0].name.clone();
    let boots = ["base", "patched"].map(|side| completed(&experiment, side, 0, &[(&metric, 1.0)]));
    let mut records: Vec<BootRecord> = boots.to_vec();
    for record in &mut records {
        let result = result_mut(record);
        result.facts.release = evil.into();
        result.facts.cmdline = evil.into();
        result.samples[0].unit = evil.into();
    }
    let mut info = info();
    info.command.push(evil.into());
    let [_, _, (_, csv), (_, junit), (_, ktap)] = formats(&info, &plan, &records);
    assert!(csv.lines().skip(1).all(|row| !row.contains(",=")), "{csv}");
    let between = junit.replace(['<', '>'], "\n");
    assert!(!between.contains("&\"") && !junit.contains("<&") && !junit.contains('\u{ffff}'));
    let results = ktap.lines().map(str::trim_start).filter(|line| line.contains("ok "));
    assert!(results.filter(|line| !line.starts_with('#')).all(|l| l.matches(" # ").count() <= 1));
}

#[test]
fn a_long_command_and_many_changes_leave_twelve_lines() {
    let mut plan = plan(&["base", "patched", "third", "fourth", "fifth"], 8);
    for id in 1..9 {
        plan.experiments[0].trials.push(trial(id, "fork-exec"));
    }
    let mut records = pairs("patched", &SLOWER);
    for record in &mut records {
        let result = result_mut(record);
        let kept = result.samples.clone();
        for id in 1..9 {
            result.samples.extend(kept.iter().map(|s| Sample { trial: id, ..s.clone() }));
        }
    }
    let mut info = info();
    info.command.extend((0..40).map(|number| format!("--option-{number}=value with blanks")));
    let [(_, changelog), ..] = formats(&info, &plan, &records);
    assert_eq!(changelog.lines().count(), 12, "{changelog}");
    assert!(changelog.contains("and 3 sides more") && changelog.contains("changes more"));
    assert!(changelog.contains("kduel report 20261130-164501-3fa9 --format mail"), "{changelog}");
}

#[test]
fn columns_are_those_of_the_json_report() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    let [_, _, (_, csv), ..] = formats(&info(), &plan, &records);
    let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let document: serde_json::Value = serde_json::from_str(&json_of(&plan, &records)).unwrap();
    let row: Vec<&str> = csv.lines().nth(1).unwrap().split(',').collect();
    let mut fields = document["comparisons"][0].as_object().unwrap().clone();
    let timed = fields.remove("timed").unwrap();
    fields.extend(timed.as_object().unwrap().clone());
    assert!(fields.contains_key("pair-sd"));
    for (name, value) in &fields {
        let place = heading.iter().position(|column| column == name).expect(name);
        if value.is_f64() || value.is_u64() {
            assert_eq!(row[place], value.to_string(), "{name}");
        }
    }
    assert_eq!(row[..3], ["20261130-164501-3fa9", "time", "tcg"]);
}

#[test]
fn the_tracker_is_told_on_a_line_of_its_own() {
    assert_eq!(regzbot("v6.1..v6.12"), "\n#regzbot introduced: v6.1..v6.12\n");
}

#[test]
fn a_mail_has_the_monitors_counters_per_second() {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &SLOWER);
    for record in &mut records {
        let faults = if record.side == "base" { 500.0 } else { 1000.0 };
        let more = record.block as f64;
        let deltas = [("pgfault", faults + more), ("ctxt", 40.0), ("odd \u{1b}[2J#regzbot", 8.0)];
        let deltas = deltas.map(|(name, delta)| (name.to_owned(), delta)).into();
        let monitored = Monitored {
            trial: 0,
            deltas,
            elapsed_ns: 2_000_000_000,
            monitor: Some(Monitor::Vmstat),
            ops: 1000,
            absent: Default::default(),
        };
        result_mut(record).monitored.push(monitored);
    }
    let [_, (_, mail), ..] = formats(&info(), &plan, &records);
    let from = mail.find("vmstat beside fork-exit, per second").unwrap();
    let shown: Vec<&str> = mail[from..].lines().take(5).collect();
    let row = |name: &str| shown.iter().find(|line| line.contains(name)).copied().unwrap();
    assert!(shown[1].ends_with("base      patched"), "{shown:?}");
    let faults: Vec<&str> = row("pgfault").split_whitespace().collect();
    assert_eq!(faults[..4], ["pgfault", "251.8", "501.8", "+99.3"]);
    assert!(row("odd").contains("\\x1b[2J\\x23regzbot"), "{shown:?}");
}

#[test]
fn no_name_can_give_the_regression_tracker_a_command() {
    let mut plan = plan(&["base", "#regzbot fix: x"], 8);
    plan.experiments[0].trials[0].workload = "#regzbot introduced: x".into();
    let mut records = pairs("#regzbot fix: x", &SLOWER);
    for record in &mut records {
        result_mut(record).facts.release = "\n\n#regzbot introduced: y".into();
    }
    let [(_, changelog), (_, mail), ..] = formats(&info(), &plan, &records);
    for text in [changelog, mail] {
        assert!(text.contains("\\x23regzbot") && !text.contains("#regzbot"), "{text}");
    }
}

/// What stands in a commit message or a mail, pasted into a shell, is the command that was given.
#[test]
#[expect(clippy::disallowed_methods, reason = "a shell is the judge")]
fn a_pasted_command_is_the_one_that_was_given() {
    let (plan, records) = (plan(&["base", "patched"], 8), pairs("patched", &SLOWER));
    let long =
        "fork-exit,syscall:call=getppid,pipe-roundtrip,context-switch,page-fault:kind=anonymous";
    for word in
        [long, "it's one word, with blanks, that does not fit into a line of a commit message"]
    {
        let mut info = info();
        info.command = ["printf", "<%s>", "-w", word].map(str::to_owned).to_vec();
        let [(_, changelog), (_, mail), ..] = formats(&info, &plan, &records);
        for text in [changelog, mail] {
            let from = text.lines().position(|line| line.trim_start().starts_with("printf"));
            let lines: Vec<&str> = text.lines().skip(from.unwrap()).collect();
            let output =
                std::process::Command::new("bash").args(["-c", &lines.join("\n")]).output();
            let read = String::from_utf8(output.unwrap().stdout).unwrap();
            assert_eq!(read, format!("<-w><{word}>"), "{text}");
        }
    }
}
