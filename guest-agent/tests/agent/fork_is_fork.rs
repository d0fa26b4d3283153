//! The fork workloads use fork(2) itself: no task of theirs ever shares memory with another.
#![expect(unsafe_code, reason = "the filter is installed between fork and exec")]

use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use crate::common::{AGENT, trial};
use serde_json::json;

/// Starts the measuring child itself, as the agent does for each trial.
fn start(workload: &str, min_interval_ns: u64, is_filtered: bool) -> Child {
    let mut spec = trial(1, workload, json!({ "mappings": 0 }));
    spec.min_interval_ns = min_interval_ns;
    let request = json!({ "trial": spec, "monitors": [], "together": false }).to_string();
    let mut command = Command::new(AGENT);
    command.arg("child").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if is_filtered {
        // SAFETY: the hook makes two system calls on memory of its own stack, nothing else.
        unsafe { command.pre_exec(kill_on_shared_memory) };
    }
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    child
}

/// A seccomp filter, kept across exec and fork: vfork, and clone with CLONE_VM, kill the process;
/// clone3, whose flags a filter cannot see, is not there.
fn kill_on_shared_memory() -> io::Result<()> {
    // `struct seccomp_data`: the call's number, and the lower half of its first argument.
    const NUMBER: u32 = 0;
    const FLAGS: u32 = 16;
    let load = |at| statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at);
    let is = |call: libc::c_long, skip: u8| {
        let number = u32::try_from(call).unwrap_or(u32::MAX);
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, number)
    };
    let answer = |action| statement(libc::BPF_RET | libc::BPF_K, 0, 0, action);
    let absent = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    let filter = [
        load(NUMBER),
        is(libc::SYS_clone3, 1),
        answer(absent),
        is(libc::SYS_vfork, 1),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        is(libc::SYS_clone, 3),
        load(FLAGS),
        statement(
            libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
            0,
            1,
            libc::CLONE_VM.unsigned_abs(),
        ),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 10, filter: filter.as_ptr().cast_mut() };
    // SAFETY: `program` and the filter it points to live until both calls have returned.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn statement(code: u32, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).unwrap_or(0), jt, jf, k }
}

/// What the measuring child says last if all went well.
const WENT_WELL: &str = r#"{"event":"trial-end","trial":1}"#;

/// How the measuring child ended, and what it said last.
fn outcome(workload: &str) -> (ExitStatus, String) {
    let output = start(workload, 1_000_000, true).wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status, text.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn the_fork_workloads_never_share_memory() {
    for workload in ["fork-exit", "fork-exec"] {
        let (status, last) = outcome(workload);
        assert_eq!(last, WENT_WELL, "{workload}: {status}");
    }
    // A shell may vfork as it likes, and dies of it here: that is its own affair. The measuring
    // process lives on to report it, so it has not.
    let (status, last) = outcome("fork-shell");
    assert!(status.success(), "fork-shell: {status}: {last}");
}

#[test]
fn the_filter_catches_what_it_is_there_for() {
    let (status, last) = outcome("futex-wake");
    assert_eq!(status.signal(), Some(libc::SIGSYS), "a thread shares memory: {status}");
    assert_ne!(last, WENT_WELL);
}

/// The measuring child's process folder, as long as it measures.
struct Measuring(Child);

impl Measuring {
    fn start(workload: &str) -> Self {
        Self(start(workload, 600_000_000_000, false))
    }

    fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap().count()
    }

    /// Whether it has waited for a child of its own: page faults of such are counted.
    fn has_forked(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(8) != Some("0")
    }

    fn wait_until(&self, is_so: impl Fn(&Self) -> bool) {
        let so_far = (0..1000).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_so(self)
        });
        assert!(so_far.is_some(), "not within ten seconds");
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn the_measuring_process_has_one_thread() {
    let forking = Measuring::start("fork-exit");
    forking.wait_until(Measuring::has_forked);
    assert_eq!(forking.threads(), 1);
    // Or the count above would prove nothing.
    Measuring::start("futex-wake").wait_until(|waking| waking.threads() == 2);
}
