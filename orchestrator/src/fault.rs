//! Whose fault a failure is, and what kind of failure it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::exit_code;

/// Whose fault a failure is. A fault of the rig never counts against a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// What the user wrote.
    Config,
    /// The host, QEMU, the connection to the guest.
    Rig,
    /// The kernel that is compared.
    KernelUnderTest,
    /// The benchmark.
    Workload,
    /// kduel itself.
    Internal,
}

impl Fault {
    /// The exit code of a command that ended with this fault.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Config => exit_code::USAGE,
            Self::Rig | Self::Workload => exit_code::RIG,
            Self::KernelUnderTest => exit_code::KERNEL_FAILED,
            Self::Internal => exit_code::INTERNAL,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "configuration",
            Self::Rig => "rig",
            Self::KernelUnderTest => "kernel under test",
            Self::Workload => "workload",
            Self::Internal => "internal",
        })
    }
}

/// What happened to a guest that did not give its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureClass {
    /// An argument that names nothing, or too much.
    Usage,
    /// The kernel panicked, oopsed or hit a BUG.
    Panic,
    /// The kernel ran out of memory and killed the agent, or panicked for it.
    OutOfMemory,
    /// Nothing on the console and no progress until the deadline.
    SilentHang,
    /// The console went on printing, but there was no progress until the deadline.
    ChattyHang,
    /// The guest reset itself.
    Reboot,
    /// The guest switched itself off.
    PowerOff,
    /// The guest never came to the agent.
    BootFailed,
    /// A program that is needed is not there: QEMU, busybox, ….
    ToolMissing,
    /// QEMU is older than needed, or lacks a feature.
    QemuTooOld,
    /// QEMU refused its arguments or ended by itself.
    QemuFailed,
    /// QEMU was ended by a signal that was not ours.
    QemuKilled,
    /// QEMU was stopped and went on, which guests that must not hear the host hear.
    QemuStopped,
    /// QEMU does not answer on its control socket.
    QemuStuck,
    /// Another run measures on the same CPUs.
    CpusHeld,
    /// QEMU's threads are not on the CPUs that they were placed on.
    NotPinned,
    /// The accelerator does not work on this host.
    AcceleratorBroken,
    /// SSH cannot be reached or refuses our key.
    SshRefused,
    /// The connection ended in the middle.
    SshCut,
    /// The guest shows another host key than the one it was given.
    WrongHostKey,
    /// The agent's output ended before its end marker.
    OutputTruncated,
    /// The agent's output is longer than allowed.
    OutputOversized,
    /// The agent's output is not what the protocol says, or its checksum is wrong.
    OutputMalformed,
    /// The agent or a trial in it gave up.
    WorkloadFailed,
    /// The kernel lacks what a workload or knob needs.
    Unsupported,
    /// A knob was set but reads back differently.
    KnobNotTaken,
    /// The guest does not see the topology that was asked for.
    TopologyMismatch,
    /// A side turned out to be the same as the base.
    SidesSame,
    /// The kernel that was named cannot be had, or is nothing that can be booted here.
    KernelUnusable,
    /// An image that was named cannot be had.
    ImageUnusable,
    /// The kernel's source does not compile, or cannot have the config that was asked for.
    BuildFailed,
    /// A file, a disk, a lock of the host.
    HostIo,
    /// The user stopped it.
    Interrupted,
    /// A broken invariant of kduel.
    Internal,
}

impl FailureClass {
    /// Whose fault a failure of this class is.
    pub fn fault(self) -> Fault {
        match self {
            Self::Usage => Fault::Config,
            Self::Panic
            | Self::OutOfMemory
            | Self::SilentHang
            | Self::ChattyHang
            | Self::Reboot
            | Self::PowerOff
            | Self::BootFailed
            | Self::BuildFailed => Fault::KernelUnderTest,
            Self::ToolMissing
            | Self::QemuTooOld
            | Self::QemuFailed
            | Self::QemuKilled
            | Self::QemuStopped
            | Self::QemuStuck
            | Self::CpusHeld
            | Self::NotPinned
            | Self::AcceleratorBroken
            | Self::SshRefused
            | Self::SshCut
            | Self::WrongHostKey
            | Self::TopologyMismatch
            | Self::HostIo
            | Self::Interrupted => Fault::Rig,
            Self::OutputTruncated
            | Self::OutputOversized
            | Self::OutputMalformed
            | Self::WorkloadFailed
            | Self::Unsupported => Fault::Workload,
            Self::KnobNotTaken | Self::SidesSame | Self::KernelUnusable | Self::ImageUnusable => {
                Fault::Config
            }
            Self::Internal => Fault::Internal,
        }
    }

    /// The class in words, as the subject of a sentence's end: `side patched: kernel panicked`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Usage => "wrong usage",
            Self::Panic => "kernel panicked",
            Self::OutOfMemory => "guest ran out of memory",
            Self::SilentHang => "guest hangs silently",
            Self::ChattyHang => "guest prints but makes no progress",
            Self::Reboot => "guest reset itself",
            Self::PowerOff => "guest switched itself off",
            Self::BootFailed => "kernel does not boot",
            Self::ToolMissing => "a needed program is missing",
            Self::QemuTooOld => "QEMU is too old",
            Self::QemuFailed => "QEMU failed",
            Self::QemuKilled => "QEMU was killed",
            Self::QemuStopped => "QEMU was stopped in between",
            Self::QemuStuck => "QEMU does not answer",
            Self::CpusHeld => "CPUs are in use",
            Self::NotPinned => "guest is not on its CPUs",
            Self::AcceleratorBroken => "accelerator does not work",
            Self::SshRefused => "SSH refused",
            Self::SshCut => "SSH connection was cut",
            Self::WrongHostKey => "guest shows a wrong host key",
            Self::OutputTruncated => "agent output is cut off",
            Self::OutputOversized => "agent output is too long",
            Self::OutputMalformed => "agent output is malformed",
            Self::WorkloadFailed => "workload failed",
            Self::Unsupported => "kernel lacks what the workload needs",
            Self::KnobNotTaken => "a knob did not take",
            Self::TopologyMismatch => "guest sees another topology",
            Self::SidesSame => "sides are the same",
            Self::KernelUnusable => "kernel cannot be used",
            Self::ImageUnusable => "image cannot be used",
            Self::BuildFailed => "kernel does not build",
            Self::HostIo => "host file operation failed",
            Self::Interrupted => "interrupted",
            Self::Internal => "internal error",
        }
    }
}

/// A guest that did not give its result: what happened, to what, and what was seen last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Failure {
    /// The kind.
    pub class: FailureClass,
    /// One line: the crash title found on the console, QEMU's last words, the path and error.
    pub title: String,
    /// More lines for the reader: wanted and found, how long was waited for what.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub details: Vec<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The last lines of the console, raw; escape them before showing.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub console_tail: Vec<String>,
}

impl Failure {
    /// A failure with a title only.
    pub fn new(class: FailureClass, title: impl Into<String>) -> Self {
        Self {
            class,
            title: title.into(),
            details: Vec::new(),
            hint: None,
            console_tail: Vec::new(),
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a line for the reader.
    #[must_use]
    pub fn detail(mut self, line: impl Into<String>) -> Self {
        self.details.push(line.into());
        self
    }

    /// A failed operation on a file or folder of the host.
    pub fn host_io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(FailureClass::HostIo, format!("failed to {doing} {}: {error}", path.display()))
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        self.class.fault()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class.words(), crate::text::escape(&self.title))?;
        for line in &self.details {
            write!(f, "\n  {}", crate::text::escape(line))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", crate::text::escape(hint))?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
