//! Things that are killed in the middle: QEMU, kduel during a boot, kduel during a trial, kduel by
//! Ctrl-C. Nothing is left of a guest, and what was finished is kept.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use kduel::clock::Deadline;
use kduel_tests::Sandbox;
use rustix::process::{Pid, Signal, kill_process};

/// What one pair of 6.1 against itself needs to say.
fn aa(sandbox: &Sandbox, pairs: &str) -> Command {
    let mut kduel = sandbox.kduel();
    kduel
        .args(["run", "-a", "debian:bookworm", "-b", "debian:bookworm", "--aa"])
        .args(["-w", "syscall:call=getppid", "--accel", "tcg", "--pairs", pairs])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    kduel
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Waits until a guest of this sandbox runs.
fn guest(sandbox: &Sandbox) -> u32 {
    let deadline = Deadline::after(Duration::from_secs(120));
    loop {
        if let Some(guest) = sandbox.guests().first() {
            return guest.pid;
        }
        assert!(!deadline.passed(), "no guest was started");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Reads standard error until a line contains `words`; the rest is read in the background.
fn wait_for(child: &mut Child, words: &str) -> Vec<String> {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = Vec::new();
    for line in lines.by_ref() {
        let line = line.unwrap();
        let found = line.contains(words);
        seen.push(line);
        if found {
            thread::spawn(move || lines.for_each(drop));
            return seen;
        }
    }
    panic!("`{words}` never came; seen:\n{}", seen.join("\n"));
}

fn journal(sandbox: &Sandbox) -> String {
    let run: PathBuf = sandbox.runs().pop().expect("a run's folder");
    std::fs::read_to_string(run.join("journal.jsonl")).unwrap()
}

#[test]
fn a_killed_qemu_is_the_rigs_fault_and_the_boot_is_repeated() {
    let sandbox = Sandbox::new();
    let child = aa(&sandbox, "1").spawn().unwrap();
    signal(guest(&sandbox), Signal::KILL);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("QEMU was killed"), "{stderr}");
    assert!(stderr.contains("booting again"), "{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    sandbox.assert_nothing_left();
}

#[test]
fn kduel_killed_during_a_boot_takes_its_guest_along() {
    let sandbox = Sandbox::new();
    let mut child = aa(&sandbox, "1").spawn().unwrap();
    guest(&sandbox);
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.assert_nothing_left();
}

#[test]
fn kduel_killed_during_a_trial_loses_only_that_boot_and_goes_on_later() {
    let sandbox = Sandbox::new();
    // 42 iterations of a fifth of a second: the trial lasts long beyond the moment of the kill.
    let mut child = aa(&sandbox, "2").args(["--iterations", "40"]).spawn().unwrap();
    wait_for(&mut child, "pair 1 of 2");
    // The first guest is gone; the second one needs 3 s to its trial on a quiet host.
    guest(&sandbox);
    thread::sleep(Duration::from_secs(8));
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.assert_nothing_left();
    let before = journal(&sandbox);
    assert_eq!(before.lines().count(), 1, "{before}");

    let run = sandbox.runs().pop().unwrap();
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    let output = sandbox
        .kduel()
        .args(["run", "--resume", &name, "--accel", "tcg"])
        .output()
        .expect("start kduel");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let after = journal(&sandbox);
    assert!(after.starts_with(&before), "the finished boot was not kept");
    assert_eq!(after.lines().count(), 4, "{after}");
    sandbox.assert_nothing_left();
}

#[test]
fn the_first_ctrl_c_stops_in_order_and_reports() {
    let sandbox = Sandbox::new();
    let mut child = aa(&sandbox, "3").spawn().unwrap();
    wait_for(&mut child, "pair 1 of 3");
    signal(child.id(), Signal::INT);
    let mut report = String::new();
    child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(report.contains("syscall"), "no report: {report}");
    sandbox.assert_nothing_left();
}

#[test]
fn the_second_ctrl_c_ends_at_once() {
    let sandbox = Sandbox::new();
    let mut child = aa(&sandbox, "1").spawn().unwrap();
    guest(&sandbox);
    signal(child.id(), Signal::INT);
    signal(child.id(), Signal::TERM);
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    sandbox.assert_nothing_left();
}

#[test]
fn all_twenty_runs_in_a_row_leave_nothing() {
    let sandbox = Sandbox::new();
    for run in 1..=20 {
        let output = aa(&sandbox, "1").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "run {run}: {stderr}");
        sandbox.assert_nothing_left();
    }
    assert_eq!(sandbox.runs().len(), 20);
    let open = sandbox.kduel().args(["runs", "gc", "--keep", "0"]).output().expect("start kduel");
    assert!(open.status.success(), "a lock is left: {open:?}");
    assert_eq!(sandbox.runs().len(), 0);
}
