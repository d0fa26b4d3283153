use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kduel_protocol::Topology;
use serde::{Deserialize, Serialize};

use super::Grants;
use crate::event::RunEvent;
use crate::id::BootId;
use crate::plan::Placement;

/// What a guest is, without where it runs. Everything a [`super::Machine`] needs to boot.
#[derive(Debug, Clone)]
pub struct GuestSpec {
    /// Which boot of the run.
    pub boot: BootId,
    /// Which side.
    pub side: String,
    /// The bzImage.
    pub image: PathBuf,
    /// The base initramfs of this kernel.
    pub initramfs: PathBuf,
    /// A cpio archive of this boot alone, put behind the base: keys, plan, the user's files.
    pub overlay: Vec<u8>,
    /// A disk of it, if it has one.
    pub disk: Option<ImageFile>,
    /// The whole kernel command line.
    pub cmdline: String,
    /// Processors and memory.
    pub topology: Topology,
    /// `-erms`, `+pcid`.
    pub cpu_flags: Vec<String>,
    /// What executes the guest's instructions.
    pub accel: Accel,
    /// What it gets of the host for itself.
    pub grants: Grants,
    /// The plan's nonce, which the ready line repeats.
    pub nonce: String,
    /// How the guest is reached, and how it proves that it is the right one.
    pub ssh: SshIdentity,
    /// How long what may take.
    pub deadlines: Deadlines,
    /// Where its threads and memory are bound to; anywhere if absent.
    pub placement: Option<Placement>,
}

/// A read-only file system that a guest mounts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ImageFile {
    /// On the host.
    pub path: PathBuf,
    /// Lower-case hex.
    pub sha256: String,
    /// Its size, a multiple of 2 MiB.
    pub bytes: u64,
}

/// The keys of one boot. Both pairs are made on the host and handed to the guest in its overlay.
#[derive(Debug, Clone)]
pub struct SshIdentity {
    /// The guest's public host key, as the SSH wire format has it (RFC 8709 for Ed25519).
    pub host_key_blob: Vec<u8>,
    /// Our private key in OpenSSH's PEM format.
    pub client_private_pem: String,
    /// Our public key as a line of `authorized_keys`.
    pub client_public_line: String,
}

/// What executes the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accel {
    /// The host's processor.
    Kvm,
    /// QEMU's translator; every number is marked *emulated*.
    Tcg,
}

impl Accel {
    /// As QEMU, the documents and the reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

/// How long what may take, with the slowness of the accelerator already in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From start to ready.
    pub boot: Duration,
    /// Between two lines of an executed command.
    pub progress: Duration,
    /// For QEMU to answer on its control socket.
    pub qmp: Duration,
    /// For the guest to switch itself off.
    pub shutdown: Duration,
}

impl Deadlines {
    /// The defaults.
    pub fn of(accel: Accel) -> Self {
        let scale = match accel {
            Accel::Kvm => 1,
            Accel::Tcg => 3,
        };
        Self {
            boot: Duration::from_secs(40 * scale),
            progress: Duration::from_secs(20 * scale),
            qmp: Duration::from_secs(5),
            shutdown: Duration::from_secs(5 * scale),
        }
    }
}

/// Takes what happens; called from the guest's own threads.
pub type Listener = Arc<dyn Fn(RunEvent) + Send + Sync>;

/// What a machine tells, and how it is told to stop.
#[derive(Clone)]
pub struct Watch {
    /// Takes events.
    pub listener: Listener,
    /// Set once by the first Ctrl-C or by a sibling that made this boot pointless.
    pub stop: Arc<AtomicBool>,
}

impl Watch {
    /// Whether the machine shall stop.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells what happened.
    pub fn tell(&self, event: RunEvent) {
        (self.listener)(event);
    }
}

/// How an executed command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEnd {
    /// With this exit status.
    Status(i32),
    /// By this signal, as SSH names it: `KILL`. (Dropbear reports status 0 beside it.)
    Signal(String),
}
