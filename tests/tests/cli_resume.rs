//! Runs that end before their plan does: killed, interrupted, on a full disk; and going on with them.

#![expect(clippy::expect_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use kduel::clock::{Deadline, Stopwatch};
use kduel_tests::{AD_HOC, Said, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// 12 boots of about 40 ms each.
const PACED: &str = "
noise: 0.02
sides: {b: {factor: {all: 1.5}}}
boots:
- {side: b, block: 1, boot-failure: {class: panic, title: once}}
- {side: a, block: 3, attempt: 0, boot-failure: {class: ssh-cut, title: once}}
- {line-after-ms: 2}
";

const FLAGS: [&str; 3] = ["--quick", "--seed", "7"];

fn start(sandbox: &Sandbox, script: &str) -> Child {
    let mut run = sandbox.fake(script, &AD_HOC);
    run.args(FLAGS).stdout(Stdio::piped()).stderr(Stdio::piped());
    run.spawn().expect("start kduel")
}

fn send(child: &Child, signal: Signal) {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("send a signal");
}

/// What decides, without what two runs never share.
fn verdict(json: &str) -> Value {
    let mut report: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(report["format"], "kduel-report/1");
    let comparisons = report["comparisons"].take();
    assert!(comparisons.as_array().is_some_and(|list| !list.is_empty()));
    comparisons
}

fn json_of(sandbox: &Sandbox) -> Value {
    verdict(&sandbox.says(&["report", "--format", "json"]).stdout)
}

fn boots(run: &Path) -> Vec<String> {
    let journal = fs::read_to_string(run.join("journal.jsonl")).expect("the journal");
    let boot = |line: &str| {
        let from = line.find("\"boot\":\"").expect("a boot") + 8;
        line[from..].split('"').next().unwrap_or_default().to_owned()
    };
    journal.lines().map(boot).collect()
}

fn plan(run: &Path) -> String {
    fs::read_to_string(run.join("plan.json")).expect("the plan")
}

#[test]
fn a_run_killed_at_any_point_goes_on_with_its_schedule_to_the_same_verdict() {
    let whole = Sandbox::new();
    whole.ad_hoc(PACED, &[]).ends_with(1);
    let (wanted, schedule) = (json_of(&whole), boots(&whole.latest()));
    let mut cut_in_the_middle = 0;
    for point in 0..24 {
        let sandbox = Sandbox::new();
        let mut child = start(&sandbox, PACED);
        thread::sleep(Duration::from_millis(15 + 23 * point));
        child.kill().expect("SIGKILL");
        child.wait().expect("wait");
        let Some(run) = sandbox.runs().pop().filter(|run| run.join("run.json").exists()) else {
            continue;
        };
        let done = boots(&run).len();
        cut_in_the_middle += usize::from((1..schedule.len()).contains(&done));
        // A killed run can be looked at.
        sandbox.says(&["runs"]).ends_with(0);
        sandbox.says(&["report"]).is_plain_text();
        let before = plan(&run);
        let id = run.file_name().expect("a name").to_string_lossy().into_owned();
        let resumed = Said::by(&mut sandbox.fake(PACED, &["--resume", &id])).ends_with(1);
        assert_eq!(plan(&run), before);
        assert_eq!(boots(&run), schedule, "cut after {done} boots: {resumed}");
        assert_eq!(json_of(&sandbox), wanted, "cut after {done} boots: {resumed}");
    }
    assert!(cut_in_the_middle >= 12, "only {cut_in_the_middle} runs were cut in the middle");
}

#[test]
fn a_journal_cut_at_any_byte_of_its_last_record_recovers() {
    let sandbox = Sandbox::new();
    sandbox.ad_hoc(PACED, &[]).ends_with(1);
    let (wanted, run) = (json_of(&sandbox), sandbox.latest());
    let path = run.join("journal.jsonl");
    let whole = fs::read(&path).expect("the journal");
    let last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines");
    for cut in [last + 1, last + 2, last + 100, whole.len() - 2, whole.len() - 1] {
        fs::write(&path, &whole[..cut]).expect("cut the journal");
        Said::by(&mut sandbox.fake(PACED, &["--resume", "@0"])).ends_with(1);
        assert_eq!(json_of(&sandbox), wanted, "cut at {cut} of {}", whole.len());
    }
    let mut damaged = whole.clone();
    damaged[last / 2] ^= 1;
    fs::write(&path, &damaged).expect("damage the journal");
    sandbox.says(&["report"]).reports(&["journal.jsonl is used up to line"]);
    Said::by(&mut sandbox.fake(PACED, &["--resume", "@0"])).ends_with(1);
    assert_eq!(json_of(&sandbox), wanted);
}

#[test]
fn a_finished_run_resumed_does_nothing_and_says_the_same() {
    let sandbox = Sandbox::new();
    let first = sandbox.ad_hoc(PACED, &[]).ends_with(1);
    let before = boots(&sandbox.latest());
    let again = Said::by(&mut sandbox.fake(PACED, &["--resume", "@0"])).ends_with(1);
    assert_eq!(again.stdout, first.stdout);
    assert_eq!(boots(&sandbox.latest()), before);
}

#[test]
fn resume_of_nothing_is_told() {
    let sandbox = Sandbox::new();
    Said::by(&mut sandbox.fake("{}", &["--resume", "@0"])).ends_with(2).tells(&["no run"]);
}

/// Waits until so many boots are in the journal.
fn until(sandbox: &Sandbox, boots_done: usize) {
    let deadline = Deadline::after(Duration::from_secs(10));
    loop {
        let done = sandbox.runs().pop().and_then(|run| fs::read(run.join("journal.jsonl")).ok());
        let lines = done.unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
        if lines >= boots_done {
            return;
        }
        assert!(!deadline.passed(), "only {lines} boots after 10 s");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_first_interruption_keeps_and_reports_what_is_finished() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let sandbox = Sandbox::new();
        let child = start(&sandbox, PACED);
        until(&sandbox, 6);
        send(&child, signal);
        let said = Said::from(child.wait_with_output().expect("wait")).ends_with(130);
        let said = said.tells(&["stopping: finished pairs are kept", "kduel run --resume"]);
        said.reports(&["planned pairs of boots are complete", "~+"]);
        let done = boots(&sandbox.latest()).len();
        assert!((6..12).contains(&done), "{done} boots");
        let resumed = Said::by(&mut sandbox.fake(PACED, &["--resume", "@0"])).ends_with(1);
        assert!(!resumed.stdout.contains("5 of 6 planned") || resumed.stdout.contains("panicked"));
    }
}

#[test]
fn an_interruption_before_the_first_boot_ends_says_there_is_nothing() {
    let sandbox = Sandbox::new();
    let child = start(&sandbox, "boots: [{ready-after-ms: 60000}]");
    until(&sandbox, 0);
    thread::sleep(Duration::from_millis(150));
    send(&child, Signal::INT);
    let said = Said::from(child.wait_with_output().expect("wait")).ends_with(130);
    assert!(said.stdout.is_empty(), "{said}");
    said.tells(&["nothing to report", "--resume"]);
}

#[test]
fn the_second_interruption_ends_at_once() {
    let sandbox = Sandbox::new();
    let child = start(&sandbox, "boots: [{deaf: true, ready-after-ms: 60000}]");
    thread::sleep(Duration::from_millis(200));
    send(&child, Signal::INT);
    thread::sleep(Duration::from_millis(100));
    send(&child, Signal::INT);
    let began = Stopwatch::start();
    let said = Said::from(child.wait_with_output().expect("wait")).ends_with(130);
    assert!(began.elapsed() < Duration::from_secs(2), "{said}");
    // The journal is whole and the run goes on.
    Said::by(&mut sandbox.fake("{}", &["--resume", "@0"])).ends_with(0);
}

/// Little room for a sandbox's state; absent where this process may not mount a file system.
struct SmallDisk<'a>(&'a Sandbox);

impl<'a> SmallDisk<'a> {
    fn with(sandbox: &'a Sandbox, room: &str) -> Option<Self> {
        let disk = Self(sandbox);
        let size = format!("size={room}");
        disk.call("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"]).then_some(disk)
    }

    fn grow(&self) {
        assert!(self.call("mount", &["-o", "remount,size=8m"]));
    }

    fn call(&self, program: &str, arguments: &[&str]) -> bool {
        let mut command = self.0.program(program);
        let status = command.args(arguments).arg(self.0.state()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // Best effort: nothing is mounted where `with` gave nothing.
        self.call("umount", &[]);
    }
}

#[test]
fn a_full_disk_ends_the_run_and_what_was_written_is_good() {
    let whole = Sandbox::new();
    whole.ad_hoc(PACED, &[]).ends_with(1);
    let wanted = json_of(&whole);
    let mut stopped_within = 0;
    for room in ["8k", "16k", "24k", "28k", "32k", "36k", "40k", "44k", "48k", "52k", "56k"] {
        let sandbox = Sandbox::new();
        let Some(disk) = SmallDisk::with(&sandbox, room) else {
            eprintln!("skipped: no file system can be mounted here");
            return;
        };
        let said = sandbox.ad_hoc(PACED, &[]).is_plain_text();
        if said.code == Some(1) {
            continue;
        }
        let said = said.ends_with(69).tells(&["No space left on device", "make room"]);
        disk.grow();
        let Some(run) = sandbox.runs().pop() else { continue };
        let finished = boots(&run).len();
        stopped_within += usize::from(finished < 13);
        // What was finished is reported although there is no room to store the report.
        assert_eq!(said.stdout.is_empty(), finished == 0, "{finished} boots: {said}");
        sandbox.says(&["report"]).is_plain_text();
        Said::by(&mut sandbox.fake(PACED, &["--resume", "@0"])).ends_with(1);
        assert_eq!(json_of(&sandbox), wanted, "{room}");
    }
    assert!(stopped_within > 0, "no disk was too small");
}
