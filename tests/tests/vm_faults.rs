//! Kernels that misbehave in real guests: the class, the title, the tail, the exit code, and
//! nothing left. The base stays well; the other side is broken by a set-up command.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::process::Output;

use kduel_tests::Sandbox;

/// What a broken side must be reported as.
struct Expected {
    exit_code: i32,
    words: &'static str,
    title: &'static str,
}

fn run_broken(sandbox: &Sandbox, setup: &str, flags: &[&str]) -> Output {
    let document = format!(
        "version: 1
experiments:
  fault:
    pairs: 1
    iterations: 1
    warmup: 0
    sides:
      base: debian:bookworm
      broken: {{ kernel: debian:bookworm, setup: [{}] }}
    workloads: [{{ syscall: {{ call: getppid }} }}]
",
        serde_json::to_string(setup).unwrap()
    );
    fs::write(sandbox.work().join("kernels.yaml"), document).unwrap();
    let mut kduel = sandbox.kduel();
    kduel.args(["run", "--anyway", "--accel", "tcg"]).args(flags).output().expect("start kduel")
}

fn assert_reported(setup: &str, flags: &[&str], expected: &Expected) {
    let sandbox = Sandbox::new();
    let output = run_broken(&sandbox, setup, flags);
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let said = format!("stdout:\n{stdout}\nstderr:\n{stderr}");
    assert_eq!(output.status.code(), Some(expected.exit_code), "{said}");
    assert!(stdout.contains(expected.words), "no `{}` in {said}", expected.words);
    assert!(said.contains(expected.title), "no `{}` in {said}", expected.title);
    assert!(!stdout.contains('\x1b') && !stderr.contains('\x1b'), "raw escapes in {said}");
    sandbox.assert_nothing_left();
}

#[test]
fn a_panic_is_the_kernels_fault_and_its_title_is_shown() {
    let expected =
        Expected { exit_code: 5, words: "kernel panicked", title: "sysrq triggered crash" };
    assert_reported("echo c > /proc/sysrq-trigger", &[], &expected);
}

#[test]
fn a_reset_is_no_orderly_end() {
    let expected = Expected { exit_code: 5, words: "guest reset itself", title: "broken" };
    assert_reported("echo b > /proc/sysrq-trigger", &[], &expected);
}

#[test]
fn running_out_of_memory_is_told_from_other_panics() {
    let expected = Expected { exit_code: 5, words: "out of memory", title: "panic_on_oom" };
    let setup = "echo 1 > /proc/sys/vm/panic_on_oom; tail /dev/zero";
    assert_reported(setup, &[], &expected);
}

#[test]
fn silence_is_a_hang_after_the_progress_deadline() {
    let expected = Expected { exit_code: 5, words: "hangs silently", title: "no sign of progress" };
    // The agent itself is stopped, so that not even its sign of life comes.
    assert_reported("kill -STOP $PPID; sleep 600", &["--progress-deadline", "8s"], &expected);
}

#[test]
fn a_chatty_console_is_no_progress() {
    let setup = "kill -STOP $PPID; i=0; while true; do i=$((i+1)); echo \"tick $i \\033]0;title\\007\" > /dev/kmsg; sleep 1; done";
    let expected = Expected { exit_code: 5, words: "prints but makes no progress", title: "tick" };
    assert_reported(setup, &["--progress-deadline", "8s"], &expected);
}
