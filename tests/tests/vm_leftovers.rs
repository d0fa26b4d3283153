//! The proof that nothing is left must itself be able to fail.

#![expect(clippy::disallowed_methods, reason = "starts a QEMU that is left on purpose")]
#![expect(clippy::unwrap_used, reason = "what a test needs and does not get fails it")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::Duration;

use kduel_tests::Sandbox;
use rustix::process::{Pid, Signal, kill_process};

/// A guest whose parent has ended, as that of a kduel that was killed.
struct Orphan(Pid);

impl Orphan {
    fn start() -> Self {
        const QEMU: &str = "qemu-system-x86_64 -name kduel-left-b00-base,debug-threads=on \
                            -machine none -S -nodefaults -display none \
                            -serial tcp:127.0.0.1:0,server=on,wait=off >/dev/null 2>&1 & echo $!";
        let shell = Command::new("sh").args(["-c", QEMU]).stdin(Stdio::null()).output().unwrap();
        let pid = String::from_utf8(shell.stdout).unwrap().trim().parse().unwrap();
        Self(Pid::from_raw(pid).unwrap())
    }
}

impl Drop for Orphan {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// What the proof says; it waits long enough for QEMU to listen on its port.
fn complaint(sandbox: &Sandbox) -> String {
    let proof = || sandbox.assert_nothing_left_after(Duration::from_secs(2));
    let panic = catch_unwind(AssertUnwindSafe(proof)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn a_guest_that_is_left_is_named_with_its_port() {
    let sandbox = Sandbox::new();
    let orphan = Orphan::start();

    let complaint = complaint(&sandbox);
    let expected = format!("guest kduel-left-b00-base (process {})", orphan.0.as_raw_nonzero());
    assert!(complaint.contains(&expected), "{complaint}");
    let (_, ports) = complaint.split_once("ports {").unwrap();
    let (port, _) = ports.split_once('}').unwrap();
    assert!(port.parse::<u16>().is_ok(), "{complaint}");

    drop(orphan);
    sandbox.assert_nothing_left();
}

#[test]
fn a_temporary_file_that_is_left_is_named() {
    let sandbox = Sandbox::new();
    let temporary = sandbox.work().with_file_name("temporary").join("kduel-x");
    std::fs::write(&temporary, "").unwrap();

    let complaint = complaint(&sandbox);
    assert!(complaint.contains(&temporary.display().to_string()), "{complaint}");

    std::fs::remove_file(&temporary).unwrap();
    sandbox.assert_nothing_left();
}
