//! Which accelerator really works here: found out by booting, remembered until the host reboots.
//!
//! `/dev/kvm` may exist, open, and make guests that never get out of their decompressor, so only a
//! guest that reached its init counts.

use std::fs;
use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kduel_protocol::Topology;
use serde::{Deserialize, Serialize};

use super::qemu::Qemu;
use crate::boot::qemu_args::default_cmdline;
use crate::boot::vigil::Vigil;
use crate::boot::{Accel, Deadlines, Grants, GuestSpec, SshIdentity, Watch};
use crate::clock::Stopwatch;
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;

/// For the tiny guest to reach its init. A working KVM needs one.
const PROBE: Duration = Duration::from_secs(15);

const DEVICE: &str = "/dev/kvm";

/// What is known about KVM on this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kvm", rename_all = "kebab-case")]
pub enum KvmState {
    /// A guest booted with it.
    Works,
    /// It is there, but no guest boots with it.
    Broken {
        /// What was seen instead.
        seen: String,
    },
    /// It is not there, or not for us.
    Absent {
        /// Why.
        why: String,
    },
}

/// The answer, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccelReport {
    /// About KVM; TCG always works.
    pub kvm: KvmState,
    /// From an earlier probe of this host's boot.
    pub remembered: bool,
    /// How long the probe took.
    pub took: Duration,
}

impl AccelReport {
    /// What guests run with if the user does not say.
    pub fn accel(&self) -> Accel {
        match self.kvm {
            KvmState::Works => Accel::Kvm,
            KvmState::Broken { .. } | KvmState::Absent { .. } => Accel::Tcg,
        }
    }

    /// One line for people.
    pub fn line(&self) -> String {
        let remembered = if self.remembered { ", as found earlier" } else { "" };
        match &self.kvm {
            KvmState::Works => format!("kvm works{remembered}"),
            KvmState::Broken { seen } => format!(
                "kvm does not work here ({seen}{remembered}); guests are emulated by tcg, every number is marked"
            ),
            KvmState::Absent { why } => {
                format!("no kvm ({why}); guests are emulated by tcg, every number is marked")
            }
        }
    }

    /// For a user who insists on KVM.
    ///
    /// # Errors
    ///
    /// [`FailureClass::AcceleratorBroken`] with what was seen.
    pub fn require_kvm(&self) -> Result<(), Failure> {
        let seen = match &self.kvm {
            KvmState::Works => return Ok(()),
            KvmState::Broken { seen } => seen,
            KvmState::Absent { why } => why,
        };
        Err(Failure::new(
            FailureClass::AcceleratorBroken,
            format!("kvm does not work here: {seen}"),
        )
        .hint("leave out --accel, or say --accel tcg, to run emulated guests"))
    }
}

/// Where answers are kept, below the cache.
const MEMORY: &str = "accelerator.json";

/// An answer in the cache, with what it holds for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Remembered {
    host_boot: String,
    qemu: String,
    device: String,
    #[serde(flatten)]
    kvm: KvmState,
}

/// Finds out whether KVM boots the kernel `image` with the base `initramfs`, or remembers it from
/// `cache`. `host_boot` is the content of `/proc/sys/kernel/random/boot_id`. Takes at most
/// [`PROBE`] and a few seconds, and a watch whose stop ends it early.
///
/// # Errors
///
/// Anything that says nothing about KVM: QEMU does not start, files cannot be read, interrupted.
pub fn probe(
    qemu: &Qemu,
    image: &Path,
    initramfs: &Path,
    cache: &Path,
    host_boot: &str,
    stop: &Arc<AtomicBool>,
) -> Result<AccelReport, Failure> {
    if let Some(known) = remembered(qemu, cache, host_boot) {
        return Ok(known);
    }
    let watch = Stopwatch::start();
    let device = device().unwrap_or_default();
    let mut entry = entry(qemu, device, host_boot);
    entry.kvm = try_kvm(qemu, image, initramfs, stop)?;
    if let Err(failure) = remember(&cache.join(MEMORY), &entry) {
        tracing::warn!("the answer about kvm is not remembered: {failure}");
    }
    Ok(AccelReport { kvm: entry.kvm, remembered: false, took: watch.elapsed() })
}

/// What is known of KVM without booting anything: an earlier probe, or that it is not there.
pub fn remembered(qemu: &Qemu, cache: &Path, host_boot: &str) -> Option<AccelReport> {
    let report = |kvm, remembered| AccelReport { kvm, remembered, took: Duration::ZERO };
    match device() {
        Ok(device) => recall(&cache.join(MEMORY), &entry(qemu, device, host_boot))
            .map(|known| report(known, true)),
        Err(why) => Some(report(KvmState::Absent { why }, false)),
    }
}

fn entry(qemu: &Qemu, device: String, host_boot: &str) -> Remembered {
    Remembered {
        host_boot: host_boot.trim().to_owned(),
        qemu: format!("{} {}", qemu.program.display(), qemu.version),
        device,
        kvm: KvmState::Works,
    }
}

/// What tells this `/dev/kvm` from another, or why it cannot be used.
fn device() -> Result<String, String> {
    let meta = fs::metadata(DEVICE).map_err(|error| format!("{DEVICE}: {error}"))?;
    fs::File::options()
        .read(true)
        .write(true)
        .open(DEVICE)
        .map_err(|error| format!("failed to open {DEVICE}: {error}"))?;
    Ok(format!("{:x}:{:x}:{:o}:{}", meta.st_dev(), meta.st_rdev(), meta.st_mode(), meta.st_ctime()))
}

fn recall(file: &Path, wanted: &Remembered) -> Option<KvmState> {
    let known: Remembered = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let same = known.host_boot == wanted.host_boot
        && known.qemu == wanted.qemu
        && known.device == wanted.device;
    same.then_some(known.kvm)
}

fn remember(file: &Path, entry: &Remembered) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::host_io("write", file, error);
    let folder = file.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    serde_json::to_writer(&mut new, entry).map_err(|error| failed(&error.into()))?;
    new.persist(file).map_err(|error| failed(&error.error))?;
    Ok(())
}

fn try_kvm(
    qemu: &Qemu,
    image: &Path,
    initramfs: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<KvmState, Failure> {
    let spec = tiny_guest(qemu, image.to_owned(), initramfs.to_owned());
    let watch = Watch { listener: Arc::new(|_| {}), stop: Arc::clone(stop) };
    let mut guest = match Vigil::start(&spec, qemu, &watch) {
        Ok(guest) => guest,
        Err(failure) => return verdict(failure),
    };
    let booted = guest.wait_ready(PROBE);
    guest.end()?;
    booted.map_or_else(verdict, |()| Ok(KvmState::Works))
}

/// What a tiny guest that did not become ready says about KVM.
fn verdict(failure: Failure) -> Result<KvmState, Failure> {
    match failure.class {
        FailureClass::Interrupted
        | FailureClass::HostIo
        | FailureClass::ToolMissing
        | FailureClass::Internal
        | FailureClass::QemuKilled => Err(failure),
        _ => Ok(KvmState::Broken { seen: format!("a tiny guest: {}", failure.title) }),
    }
}

fn tiny_guest(qemu: &Qemu, image: PathBuf, initramfs: PathBuf) -> GuestSpec {
    let nonce = format!("probe{:x}", std::process::id());
    let words = ["kduel.probe".to_owned(), format!("kduel.nonce={nonce}")];
    GuestSpec {
        boot: BootId("probe".into()),
        side: "probe".into(),
        image,
        initramfs,
        overlay: Vec::new(),
        disk: None,
        cmdline: default_cmdline(qemu.architecture, Accel::Kvm, &words),
        topology: Topology { memory_mib: 256, ..Topology::default() },
        cpu_flags: Vec::new(),
        accel: Accel::Kvm,
        grants: Grants::default(),
        nonce,
        ssh: SshIdentity {
            host_key_blob: Vec::new(),
            client_private_pem: String::new(),
            client_public_line: String::new(),
        },
        deadlines: Deadlines::of(Accel::Kvm),
        placement: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(host_boot: &str) -> Remembered {
        Remembered {
            host_boot: host_boot.into(),
            qemu: "/usr/bin/qemu 10.0.2".into(),
            device: "5:ae8:20666:1".into(),
            kvm: KvmState::Broken { seen: "a tiny guest: nothing".into() },
        }
    }

    #[test]
    fn an_answer_holds_for_one_boot_of_the_host_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache/accelerator.json");
        assert_eq!(recall(&file, &entry("one")), None);
        remember(&file, &entry("one")).unwrap();
        assert_eq!(recall(&file, &entry("one")), Some(entry("one").kvm));
        assert_eq!(recall(&file, &entry("two")), None);
        fs::write(&file, "{").unwrap();
        assert_eq!(recall(&file, &entry("one")), None);
    }

    #[test]
    fn a_rig_failure_says_nothing_about_kvm() {
        let io = Failure::new(FailureClass::HostIo, "disk");
        assert_eq!(verdict(io.clone()), Err(io));
        let killed = Failure::new(FailureClass::QemuKilled, "QEMU was ended by signal 9");
        assert_eq!(verdict(killed.clone()), Err(killed));
        let crash = Failure::new(FailureClass::QemuFailed, "QEMU crashed with signal 6");
        assert!(matches!(verdict(crash), Ok(KvmState::Broken { .. })));
        let hang = Failure::new(FailureClass::SilentHang, "the guest did not become ready");
        let seen = "a tiny guest: the guest did not become ready".to_owned();
        assert_eq!(verdict(hang), Ok(KvmState::Broken { seen }));
    }

    #[test]
    fn who_insists_on_a_broken_kvm_is_told_what_was_seen() {
        let report = AccelReport { kvm: entry("x").kvm, remembered: true, took: Duration::ZERO };
        assert_eq!(report.accel(), Accel::Tcg);
        let failure = report.require_kvm().unwrap_err();
        assert_eq!(failure.title, "kvm does not work here: a tiny guest: nothing");
    }
}
