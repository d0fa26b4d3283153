//! Every class of failure, from the script of a fake machine to exit code and report.

use kduel::fault::{FailureClass, Fault};
use kduel_tests::{Said, Sandbox};

/// Every boot of side b ends in this failure.
fn b_fails(class: &str) -> Said {
    let script = format!(
        "boots:
- {{side: b, console: [one, \"two \\e[2J \\u202e\", three], boot-failure: {{class: {class}, title: \"seen \\e]0;t\\a here\"}}}}
"
    );
    Sandbox::new().ad_hoc(&script, &[]).is_plain_text()
}

/// As it is written in scripts and records.
fn word(class: FailureClass) -> String {
    serde_json::to_value(class)
        .map(|value| value.as_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

fn boots_begun(said: &Said) -> usize {
    said.stderr.lines().filter(|line| line.contains(": b: ")).count()
}

#[test]
fn a_kernel_that_fails_has_its_class_title_and_tail_in_the_report() {
    for class in [
        FailureClass::Panic,
        FailureClass::OutOfMemory,
        FailureClass::SilentHang,
        FailureClass::ChattyHang,
        FailureClass::Reboot,
        FailureClass::PowerOff,
        FailureClass::BootFailed,
    ] {
        assert_eq!(class.fault(), Fault::KernelUnderTest);
        let said = b_fails(&word(class)).ends_with(5).reports(&[
            "verdict: fails",
            class.words(),
            "fault: kernel under test",
            "seen \\x1b]0;t\\x07 here",
            "| two \\x1b[2J \\u{202e}",
            "| three",
        ]);
        assert_eq!(boots_begun(&said), 4, "a kernel's fault is not repeated: {said}");
        assert!(!said.stderr.contains("booting again"), "{said}");
    }
}

#[test]
fn a_fault_of_the_rig_is_repeated_twice_and_then_ends_the_run() {
    for class in [
        FailureClass::QemuFailed,
        FailureClass::QemuKilled,
        FailureClass::QemuStuck,
        FailureClass::SshRefused,
        FailureClass::SshCut,
        FailureClass::HostIo,
    ] {
        assert_eq!(class.fault(), Fault::Rig);
        let said = b_fails(&word(class)).ends_with(69).tells(&[
            class.words(),
            "seen \\x1b]0;t\\x07 here",
            "booting again",
        ]);
        assert_eq!(boots_begun(&said), 3, "{said}");
        assert!(!said.stdout.contains("b fails"), "{said}");
        assert!(!said.stdout.contains("regression"), "{said}");
    }
}

#[test]
fn what_no_repetition_mends_ends_the_run_at_once() {
    for class in [
        FailureClass::WrongHostKey,
        FailureClass::ToolMissing,
        FailureClass::QemuTooOld,
        FailureClass::AcceleratorBroken,
        FailureClass::TopologyMismatch,
    ] {
        assert_eq!(class.fault(), Fault::Rig);
        let said = b_fails(&word(class)).ends_with(69).tells(&[class.words()]);
        assert_eq!(boots_begun(&said), 1, "{said}");
    }
}

#[test]
fn a_workload_that_fails_does_not_count_against_the_kernel() {
    for class in [
        FailureClass::OutputTruncated,
        FailureClass::OutputOversized,
        FailureClass::OutputMalformed,
        FailureClass::WorkloadFailed,
        FailureClass::Unsupported,
    ] {
        assert_eq!(class.fault(), Fault::Workload);
        let said = b_fails(&word(class)).ends_with(69).reports(&[
            "verdict: invalid",
            class.words(),
            "fault: workload",
        ]);
        assert_eq!(boots_begun(&said), 2, "{said}");
    }
}

#[test]
fn what_the_user_wrote_wrong_ends_the_run_with_2() {
    for class in [FailureClass::KnobNotTaken, FailureClass::SidesSame, FailureClass::KernelUnusable]
    {
        let said = b_fails(&word(class)).ends_with(2).tells(&[class.words()]);
        assert_eq!(boots_begun(&said), 1, "{said}");
    }
}

#[test]
fn a_broken_invariant_of_ours_ends_the_run_with_70() {
    b_fails("internal").ends_with(70).tells(&["internal error"]);
}

#[test]
fn the_same_failures_count_when_they_come_late() {
    for (part, failure) in [
        ("{side: b, cut-off: {after-lines: 6, failure: {class: panic, title: late}}}", 5),
        ("{side: b, stop-failure: {class: panic, title: late}}", 5),
        ("{side: b, cut-off: {after-lines: 6, failure: {class: ssh-cut, title: late}}}", 69),
        ("{side: b, stop-failure: {class: qemu-killed, title: late}}", 69),
    ] {
        let said = Sandbox::new().ad_hoc(&format!("boots: [{part}]"), &[]).ends_with(failure);
        assert!(said.stderr.contains("late"), "{said}");
    }
}

#[test]
fn the_rig_may_fail_once_and_the_pair_is_kept() {
    let script =
        "boots: [{side: b, block: 2, attempt: 0, boot-failure: {class: ssh-cut, title: t}}]";
    let said = Sandbox::new().ad_hoc(script, &[]).ends_with(0).tells(&["booting again"]);
    assert!(said.stdout.contains("no change"), "{said}");
    assert!(!said.stdout.contains("dropped") && !said.stdout.contains("planned pairs"), "{said}");
}

#[test]
fn a_pair_that_lost_a_boot_is_dropped_and_counted() {
    let script = "boots: [{side: b, block: 2, boot-failure: {class: panic, title: once}}]";
    Sandbox::new().ad_hoc(script, &[]).ends_with(0).reports(&[
        "kernel panicked in 1 of 6 boots",
        "5 of 6 planned pairs of boots are complete",
        "no change",
    ]);
}

#[test]
fn a_base_that_fails_leaves_nothing_to_compare() {
    let script = "boots: [{side: a, boot-failure: {class: panic, title: all}}]";
    Sandbox::new()
        .ad_hoc(script, &[])
        .ends_with(5)
        .reports(&["verdict: invalid", "kernel panicked in 4 of 4 boots"]);
}

#[test]
fn with_three_sides_the_one_that_fails_does_not_stop_the_others() {
    let script = "
sides: {b: {factor: {all: 2}}}
boots: [{side: c, boot-failure: {class: silent-hang, title: no progress for 60 s}}]";
    let said = Sandbox::new().ad_hoc(script, &["-b", "debian:sid"]).ends_with(5);
    said.reports(&["b is slower by ~100.0 %", "c fails: guest hangs silently ("]);
}
