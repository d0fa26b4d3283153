//! Exact runs in real guests, at length: what hosts differ in, and twenty runs each.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests load the host on purpose, show figures of long series, and fail by panicking"
)]

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use kduel::clock::{Deadline, Stopwatch};
use kduel::config::Environment;
use kduel_tests::{AskedQemu, BusyLoops, OtherQemu, Sandbox, WrappedQemu, kduel, said};

#[test]
fn all_another_qemu_is_compared_only_with_itself() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt \
               -w syscall:call=getppid --measure instructions --iterations 2 --json";
    let first = kduel(&sandbox, run);
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let other = OtherQemu::make();
    let qemu = format!("--qemu {} --allow-different-qemu", other.program().display());
    let verified = kduel(&sandbox, &format!("verify {qemu}"));
    assert_eq!(verified.status.code(), Some(0), "{}", said(&verified));
    assert!(said(&verified).contains("bit-identical: 2 boots"), "{}", said(&verified));
    let within = "done twice in QEMU 10";
    assert!(said(&verified).contains(within), "{}", said(&verified));
    let added = kduel(&sandbox, &format!("add @0 newer=debian:trixie --json {qemu}"));
    assert_eq!(added.status.code(), Some(0), "{}", said(&added));
    let report: serde_json::Value = serde_json::from_slice(&added.stdout).unwrap();
    let names: Vec<&str> =
        report["sides"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "newer"], "{report}");
    assert!(report["sides"][0]["guests"][0]["cached"].is_null(), "{report}");
    let runs = sandbox.runs();
    assert_eq!(runs.len(), 2);
    let boots = |run: &Path| journal(run).lines().count();
    assert_eq!((boots(&runs[0]), boots(&runs[1])), (3, 4));
    sandbox.assert_nothing_left();
}

fn journal(run: &Path) -> String {
    std::fs::read_to_string(run.join("journal.jsonl")).unwrap_or_default()
}

/// A guest that is asked for its symbols carries its plan out instead.
#[test]
fn all_a_kernel_without_symbols_is_counted_and_what_is_lost_is_told() {
    let sandbox = Sandbox::new();
    let environment = Environment::read().unwrap();
    let wrapped = WrappedQemu::make(
        "for word in \"$@\"; do shift; set -- \"$@\" \"${word%kduel.kallsyms}\"; done",
    );
    // Everything of the cache but the symbols.
    let cache = sandbox.work().join("cache");
    std::fs::create_dir(&cache).unwrap();
    for entry in std::fs::read_dir(&environment.cache_dir).unwrap().filter_map(Result::ok) {
        if entry.file_name() != "symbols" {
            std::os::unix::fs::symlink(entry.path(), cache.join(entry.file_name())).unwrap();
        }
    }
    let mut command = sandbox.kduel();
    command.args("run -a debian:bookworm -b debian:bookworm --append-b nosmt".split(' '));
    command.args("-w syscall:call=getppid --measure instructions --iterations 2".split(' '));
    command.env("KDUEL_CACHE_DIR", &cache).arg("--qemu").arg(wrapped.program());
    let output = command.output().expect("start kduel");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for words in ["no symbols, so functions stay unnamed", "the kernel has no usable symbols"] {
        assert!(said(&output).contains(words), "no `{words}` in {}", said(&output));
    }
    sandbox.assert_nothing_left();
}

/// Standard output and error are full before the first word, and kduel itself is stopped for a while.
#[test]
fn all_stopped_readers_and_a_stopped_kduel_change_nothing() {
    let sandbox = Sandbox::new();
    let run = "run -a debian:bookworm -b debian:bookworm --append-b nosmt --no-cache -v \
               -w fork-exit --measure instructions --iterations 3 --cpus 2 --json";
    let undisturbed = kduel(&sandbox, run);
    assert_eq!(undisturbed.status.code(), Some(0), "{}", said(&undisturbed));
    let pipes = [(); 2].map(|()| std::io::pipe().unwrap());
    let mut command = sandbox.kduel();
    command.args(run.split(' '));
    for (_, writer) in &pipes {
        rustix::io::ioctl_fionbio(writer, true).unwrap();
        while (&mut &*writer).write(&[b' '; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(writer, false).unwrap();
    }
    let [(stdout, out), (stderr, err)] = pipes;
    let mut child = command.stdout(out).stderr(err).spawn().unwrap();
    drop(command);
    // Nobody reads, so that no guest is even begun, or goes on alone.
    std::thread::sleep(Duration::from_secs(15));
    let read = |mut pipe: std::io::PipeReader| {
        std::thread::spawn(move || {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut pipe, &mut text).unwrap();
            text
        })
    };
    let talk = read(stderr);
    let deadline = Deadline::after(Duration::from_secs(100));
    while sandbox.guests().is_empty() && !deadline.passed() {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(2));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(10));
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    // The report waits for its reader, and no guest waits with it.
    while !sandbox.guests().is_empty() && !deadline.passed() {
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(Duration::from_secs(5));
    let report = read(stdout);
    assert_eq!(child.wait().unwrap().code(), Some(0), "{}", talk.join().unwrap());
    let comparisons = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report.trim_start()).unwrap();
        report["comparisons"].clone()
    };
    let then = comparisons(&String::from_utf8(undisturbed.stdout).unwrap());
    assert_eq!(comparisons(&report.join().unwrap()), then);
    sandbox.assert_nothing_left();
}

/// One run after the other, each on a host that differs from the one before in what hosts differ in:
/// where the run lies, how many processors there are, what else runs, where memory lies, who asks.
fn assert_runs_are_identical(times: usize, cpus: &str) {
    let sandbox = Sandbox::new();
    let mut first = None;
    for time in 0..times {
        let started = Stopwatch::start();
        let out = sandbox.work().join("x".repeat(1 + 7 * time));
        let mut words = Vec::new();
        if time % 2 == 1 {
            words.extend(["taskset", "-c", "0"].map(str::to_owned));
        }
        if time % 3 == 1 {
            words.extend(["setarch", "-R"].map(str::to_owned));
        }
        let busy = (time % 4 > 1).then(BusyLoops::start);
        let asked = (time % 5 > 2).then(AskedQemu::start);
        let kduel = sandbox.kduel();
        words.push(kduel.get_program().to_string_lossy().into_owned());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(sandbox.work());
        command.envs(kduel.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.args("run -a debian:bookworm -b debian:bookworm --aa --no-cache".split(' '));
        command.args("-w fork-exit --measure instructions --iterations 3 --json".split(' '));
        command.args(["--cpus", cpus, "--out"]).arg(&out);
        if let Some(asked) = &asked {
            command.arg("--qemu").arg(asked.program());
        }
        let output = command.output().expect("start kduel");
        let hindrances =
            format!("{words:?}, {} busy loops", if busy.is_some() { "three" } else { "no" });
        drop(busy);
        let answers = asked.map(AskedQemu::end);
        assert_eq!(output.status.code(), Some(0), "run {time}: {}", said(&output));
        assert!(answers.is_none_or(|answers| answers > 100), "only {answers:?} answers");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["comparisons"][0]["exact"], "identical", "run {time}: {report}");
        let comparisons = report["comparisons"].clone();
        println!(
            "run {time}, {:.1} s: {} ({hindrances}, {answers:?} answers)",
            started.elapsed().as_secs_f64(),
            comparisons[0]["base"]
        );
        assert_eq!(*first.get_or_insert_with(|| comparisons.clone()), comparisons, "run {time}");
    }
    sandbox.assert_nothing_left();
}

#[test]
fn all_twenty_runs_with_one_processor_are_identical() {
    assert_runs_are_identical(20, "1");
}

#[test]
fn all_twenty_runs_with_four_processors_are_identical() {
    assert_runs_are_identical(20, "4");
}
