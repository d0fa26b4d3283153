//! A running QEMU and all that can be seen of its guest: console, control socket, process.

use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use kduel_protocol::READY_MARKER;
use serde_json::Value;

use super::console::Console;
use super::ending::{ended, last_words, with_console};
use super::handles::{
    archives, console_pipe, forwarded_port, memory_copy, open_kvm, open_read_only, read, rig,
};
use super::pin::pin;
use super::process::{Launch, Process};
use super::qemu_args::{Descriptors, command_line};
use super::qmp::{Qmp, QmpEvent};
use super::{Accel, GuestSpec, Watch};
use crate::clock::{Deadline, Stopwatch};
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::plan::Placement;

/// How often the guest's state is looked at while nothing happens.
const PAUSE: Duration = Duration::from_millis(50);

/// A crash report is complete when the console has been quiet for this long.
const REPORT_QUIET: Duration = Duration::from_millis(500);

/// For a crash report, however long it is, and for QEMU to end after it said that it will.
const REPORT_LONGEST: Duration = Duration::from_secs(5);

/// How often QEMU is asked whether it is still there.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// For the console to explain a connection that was lost.
const EXPLANATION: Duration = Duration::from_secs(3);

/// Watches over one guest. Belongs to the thread that started it.
pub struct Vigil {
    process: Process,
    qmp: Qmp,
    console: Console,
    watch: Watch,
    accel: Accel,
    deadline_qmp: Duration,
    /// One per vCPU, while the guest was still paused.
    threads: Vec<u64>,
    shut_down: Option<String>,
    heard: Stopwatch,
}

impl Vigil {
    /// Starts QEMU paused, takes hold of it, and lets the guest go.
    ///
    /// # Errors
    ///
    /// Files that cannot be read, and what QEMU did instead of starting.
    pub fn start(spec: &GuestSpec, qemu: &Qemu, watch: &Watch) -> Result<Self, Failure> {
        let (console, console_theirs) = console_pipe()?;
        let (control, control_theirs) = UnixStream::pair()
            .map_err(|error| rig(&format!("failed to make a socket pair: {error}")))?;
        let image = memory_copy("kernel", &spec.image)?;
        let initramfs = archives("initramfs", &[&read(&spec.initramfs)?, &spec.overlay])?;
        let kvm = if spec.accel == Accel::Kvm { Some(open_kvm()?) } else { None };
        let disk = spec.disk.as_ref().map(|disk| open_read_only(&disk.path)).transpose()?;
        let descriptors = Descriptors {
            console: console_theirs.as_raw_fd(),
            control: control_theirs.as_raw_fd(),
            image: image.as_raw_fd(),
            initramfs: initramfs.as_raw_fd(),
            kvm: kvm.as_ref().map(AsRawFd::as_raw_fd),
            disk: disk.as_ref().map(AsRawFd::as_raw_fd),
        };
        let argv = command_line(spec, &qemu.program, qemu.architecture, &descriptors);
        watch.tell(RunEvent::CommandLine { boot: spec.boot.clone(), argv: argv.clone() });
        let console = Console::read(
            console,
            spec.side.clone(),
            format!("{READY_MARKER}{}", spec.nonce),
            watch.clone(),
        )
        .map_err(|error| rig(&format!("failed to start a thread: {error}")))?;
        let mut inherited: Vec<OwnedFd> =
            vec![console_theirs, control_theirs.into(), image, initramfs];
        inherited.extend(kvm.into_iter().chain(disk));
        let launch = Launch {
            program: qemu.program.clone(),
            args: argv[1..].to_vec(),
            inherited,
            file_bytes: spec.grants.file_bytes(spec.topology.memory_mib),
        };
        let mut process = Process::start(launch)?;
        let held =
            Self::take_hold(control, spec.deadlines.qmp, process.id(), spec.placement.as_ref());
        match held {
            Ok((qmp, threads)) => Ok(Self {
                process,
                qmp,
                console,
                watch: watch.clone(),
                accel: spec.accel,
                deadline_qmp: spec.deadlines.qmp,
                threads,
                shut_down: None,
                heard: Stopwatch::start(),
            }),
            // Most likely it refused its arguments, and says so better itself.
            Err(failure) if failure.class == FailureClass::NotPinned => Err(failure),
            Err(_) if process.wait(REPORT_QUIET) => Err(ended(&mut process, &console)),
            Err(failure) => Err(failure),
        }
    }

    /// The guest goes on only once its threads are where they belong.
    fn take_hold(
        control: UnixStream,
        patience: Duration,
        pid: u32,
        placement: Option<&Placement>,
    ) -> Result<(Qmp, Vec<u64>), Failure> {
        let mut qmp = Qmp::greet(control, patience)?;
        let cpus = qmp.execute("query-cpus-fast", Value::Null)?;
        let threads = cpus.as_array().into_iter().flatten();
        let threads: Vec<u64> = threads.filter_map(|cpu| cpu["thread-id"].as_u64()).collect();
        if let Some(placement) = placement {
            pin(pid, &threads, placement)?;
        }
        qmp.execute("cont", Value::Null)?;
        Ok((qmp, threads))
    }

    /// Waits for the agent's ready line.
    ///
    /// # Errors
    ///
    /// What the guest did instead.
    pub fn wait_ready(&mut self, longest: Duration) -> Result<(), Failure> {
        let deadline = Deadline::after(longest);
        while !self.console.ready() {
            self.check()?;
            if deadline.passed() {
                return Err(self.not_ready(longest));
            }
            self.console.wait(PAUSE);
        }
        Ok(())
    }

    /// The guest's SSH port on the loopback address.
    ///
    /// # Errors
    ///
    /// QEMU does not say.
    pub fn ssh_port(&mut self) -> Result<u16, Failure> {
        let table = self.qmp.monitor("info usernet")?;
        forwarded_port(&table)
            .ok_or_else(|| rig("QEMU names no forwarded port in `info usernet`").detail(table))
    }

    /// Whether all is well and nobody wants to stop.
    ///
    /// # Errors
    ///
    /// The first reason why not.
    pub fn check(&mut self) -> Result<(), Failure> {
        if self.watch.stopped() {
            return Err(Failure::new(FailureClass::Interrupted, "stopped before it was done"));
        }
        self.health()
    }

    /// Whether the guest runs without a crash.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn health(&mut self) -> Result<(), Failure> {
        if self.console.crash().is_some() {
            self.console.settle(REPORT_QUIET, REPORT_LONGEST);
            return Err(self.crashed_or(FailureClass::Panic, ""));
        }
        while let Some(event) = self.qmp.event()? {
            self.judge(event)?;
        }
        if self.process.has_ended() || self.qmp.closed() && self.process.wait(REPORT_QUIET) {
            return Err(self.gone());
        }
        if self.qmp.closed() {
            let title = "QEMU closed its control socket but runs on";
            return Err(self.failure(FailureClass::QemuStuck, title));
        }
        if self.heard.elapsed() >= HEARTBEAT {
            if let Err(failure) = self.qmp.execute("query-status", Value::Null) {
                return Err(with_console(failure, &self.console));
            }
            self.heard = Stopwatch::start();
        }
        Ok(())
    }

    fn judge(&mut self, event: QmpEvent) -> Result<(), Failure> {
        match event {
            QmpEvent::Shutdown { reason } => {
                self.shut_down = Some(reason);
                self.process.wait(REPORT_LONGEST);
                Err(self.gone())
            }
            QmpEvent::Stop => Err(self.stopped()),
            QmpEvent::Panicked => {
                self.console.settle(REPORT_QUIET, REPORT_LONGEST);
                Err(self.crashed_or(FailureClass::Panic, "the guest used its panic device"))
            }
            QmpEvent::Reset => Err(self.crashed_or(FailureClass::Reboot, "the guest was reset")),
        }
    }

    /// QEMU has ended, or is about to.
    fn gone(&mut self) -> Failure {
        // An event may still lie in the socket of a process that is gone.
        while let Ok(Some(event)) = self.qmp.event() {
            if let QmpEvent::Shutdown { reason } = event {
                self.shut_down = Some(reason);
            }
        }
        self.console.settle(REPORT_LONGEST, REPORT_LONGEST);
        match self.shut_down.as_deref() {
            Some("guest-reset") if !self.console.kernel_started() => self.crashed_or(
                FailureClass::BootFailed,
                "the guest reset itself before the kernel printed anything",
            ),
            Some("guest-reset") => {
                self.crashed_or(FailureClass::Reboot, "the guest reset itself unasked")
            }
            Some("guest-shutdown") => match last_words(&self.console.tail()) {
                Some(words) => self.crashed_or(FailureClass::BootFailed, &words),
                None => {
                    self.crashed_or(FailureClass::PowerOff, "the guest switched itself off unasked")
                }
            },
            Some("guest-panic") => {
                self.crashed_or(FailureClass::Panic, "the guest used its panic device")
            }
            Some("host-signal") => {
                self.failure(FailureClass::QemuKilled, "QEMU was asked to end by a signal not ours")
            }
            _ => ended(&mut self.process, &self.console),
        }
    }

    fn stopped(&mut self) -> Failure {
        let status = match self.qmp.execute("query-status", Value::Null) {
            Ok(status) => status["status"].as_str().unwrap_or("unknown").to_owned(),
            Err(failure) => return failure,
        };
        let class = match self.accel {
            Accel::Kvm if status == "internal-error" => FailureClass::AcceleratorBroken,
            _ => FailureClass::QemuFailed,
        };
        self.failure(class, &format!("QEMU stopped the guest by itself, run state `{status}`"))
    }

    /// What to say of a lost connection: what the guest did, if that shows soon, else `failure`.
    pub fn explain(&mut self, mut failure: Failure) -> Failure {
        let deadline = Deadline::after(EXPLANATION);
        while !deadline.passed() {
            if let Err(cause) = self.check() {
                return cause;
            }
            self.console.wait(PAUSE);
        }
        failure.console_tail = self.console.tail();
        failure
    }

    /// The guest did not get on with `what` for `waited`: silent, or printing all the while?
    pub fn hang(&mut self, what: &str, waited: Duration) -> Failure {
        let silence = self.console.silence();
        let class = match silence < waited / 4 {
            true => FailureClass::ChattyHang,
            false => FailureClass::SilentHang,
        };
        let title = format!("{what} within {:.0} s", waited.as_secs_f64());
        let mut failure = self
            .failure(class, &title)
            .detail(format!("last output on the console {:.1} s ago", silence.as_secs_f64()));
        failure.details.extend(self.whereabouts());
        failure
    }

    fn not_ready(&mut self, waited: Duration) -> Failure {
        if self.console.kernel_started() {
            return self.hang("the guest did not become ready", waited);
        }
        let title = format!("the kernel printed nothing within {:.0} s", waited.as_secs_f64());
        let mut failure = self.failure(FailureClass::BootFailed, &title);
        failure.details.extend(self.whereabouts());
        failure.hint("is it a kernel for this architecture, with a serial console built in?")
    }

    /// The run state and where the first vCPU is.
    fn whereabouts(&mut self) -> impl Iterator<Item = String> {
        let lines = self.diagnose().into_iter();
        lines.filter(|line| !line.contains('=') || line.contains("RIP="))
    }

    /// Run state and registers of the first vCPU, as far as QEMU answers.
    pub fn diagnose(&mut self) -> Vec<String> {
        let status = match self.qmp.execute("query-status", Value::Null) {
            Ok(status) => format!("run state: {}", status["status"].as_str().unwrap_or("unknown")),
            Err(failure) => return vec![failure.to_string()],
        };
        let registers = self.qmp.monitor("info registers").unwrap_or_default();
        let registers = registers
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take_while(|line| !line.starts_with("FCW"));
        std::iter::once(status).chain(registers.map(|line| line.trim_end().to_owned())).collect()
    }

    /// QEMU's process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Thread ids of the vCPUs.
    pub fn vcpu_threads(&self) -> &[u64] {
        &self.threads
    }

    /// Waits for the guest to switch itself off and for QEMU to follow.
    ///
    /// # Errors
    ///
    /// What happened instead.
    pub fn wait_shutdown(&mut self, longest: Duration) -> Result<(), Failure> {
        let deadline = Deadline::after(longest);
        loop {
            match self.health() {
                Err(failure) if failure.class == FailureClass::PowerOff => return Ok(()),
                Err(failure) => return Err(failure),
                Ok(()) if deadline.passed() => {
                    return Err(self.hang("the guest did not switch itself off", longest));
                }
                Ok(()) => self.console.wait(PAUSE),
            }
        }
    }

    /// Ends QEMU whatever its state, and proves that nothing of it is left. Then the console is
    /// complete.
    ///
    /// # Errors
    ///
    /// Something survived.
    pub fn end(&mut self) -> Result<(), Failure> {
        let asked = Stopwatch::start();
        if !self.process.has_ended() && self.qmp.execute("quit", Value::Null).is_ok() {
            self.process.wait(self.deadline_qmp);
        }
        let status = self.process.end(self.deadline_qmp)?;
        tracing::debug!("QEMU ended after {:.3} s: {status}", asked.elapsed().as_secs_f64());
        self.console.join();
        Ok(())
    }

    /// The console.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// The crash on the console, else a failure of its own.
    pub fn crashed_or(&self, class: FailureClass, title: &str) -> Failure {
        match self.console.crash() {
            Some(crash) => self.failure(crash.class, &crash.title),
            None => self.failure(class, title),
        }
    }

    fn failure(&self, class: FailureClass, title: &str) -> Failure {
        with_console(Failure::new(class, title), &self.console)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use kduel_protocol::Topology;

    use super::*;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::boot::{Deadlines, Grants, SshIdentity};
    use crate::host::Version;
    use crate::id::BootId;

    /// A QEMU that is a shell script.
    fn started(script: &str) -> Failure {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("qemu");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        for path in [folder.path(), &program] {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(path, mode).unwrap();
        }
        let qemu = Qemu { program, version: Version(10, 0, 0), architecture: &ARCHITECTURES[0] };
        let mut deadlines = Deadlines::of(Accel::Tcg);
        deadlines.qmp = Duration::from_millis(500);
        let spec = GuestSpec {
            boot: BootId("x".into()),
            side: "x".into(),
            image: "/dev/null".into(),
            initramfs: "/dev/null".into(),
            overlay: Vec::new(),
            disk: None,
            cmdline: String::new(),
            topology: Topology { memory_mib: 64, ..Topology::default() },
            cpu_flags: Vec::new(),
            accel: Accel::Tcg,
            grants: Grants::default(),
            nonce: "x".into(),
            ssh: SshIdentity {
                host_key_blob: Vec::new(),
                client_private_pem: String::new(),
                client_public_line: String::new(),
            },
            deadlines,
            placement: None,
        };
        let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::default() };
        Vigil::start(&spec, &qemu, &watch).err().unwrap()
    }

    #[test]
    fn a_qemu_that_refuses_its_arguments_is_quoted() {
        let failure = started("echo 'qemu: -cpu: no such flag' >&2; exit 1");
        assert_eq!(failure.class, FailureClass::QemuFailed);
        assert_eq!(failure.title, "QEMU ended with status 1: qemu: -cpu: no such flag");
        assert!(failure.details.contains(&"the console is empty".to_owned()));
    }

    #[test]
    fn a_qemu_that_is_killed_or_says_nothing_is_told_apart() {
        assert_eq!(started("kill -9 $$").class, FailureClass::QemuKilled);
        let failure = started("echo 'kvm.c: Assertion failed.' >&2; kill -ABRT $$");
        assert_eq!(failure.class, FailureClass::QemuFailed);
        assert_eq!(failure.title, "QEMU crashed with signal 6: kvm.c: Assertion failed.");
        assert_eq!(started("exec sleep 67").class, FailureClass::QemuStuck);
    }
}
