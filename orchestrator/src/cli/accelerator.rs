//! What executes the guests: as asked for, as probed, or as far as is known.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::args::AccelArg;
use super::prepare::find_agent;
use super::watch::Watcher;
use crate::boot::Accel;
use crate::collect::HostInfo;
use crate::config::Environment;
use crate::event::RunEvent;
use crate::fault::Failure;
use crate::host::accel::{self, AccelReport};
use crate::host::qemu::Qemu;
use crate::provision::{Kernel, Provisioner};

/// KVM where it really boots a kernel, else TCG with one clear line.
pub(super) fn choose_accel(
    wanted: AccelArg,
    qemu: &Qemu,
    kernel: Option<&Kernel>,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<Accel, Failure> {
    let Some(kernel) = kernel.filter(|_| wanted != AccelArg::Tcg) else { return Ok(Accel::Tcg) };
    let what = "finding out whether kvm works here, once per boot of this host";
    watcher.handle(&RunEvent::Provisioning { what: what.to_owned() });
    let report = probe(qemu, kernel, environment)?;
    if wanted == AccelArg::Kvm {
        report.require_kvm()?;
    }
    if report.accel() == Accel::Tcg {
        watcher.say(&report.line());
    }
    Ok(report.accel())
}

fn probe(qemu: &Qemu, kernel: &Kernel, environment: &Environment) -> Result<AccelReport, Failure> {
    let host_boot = HostInfo::read(Path::new("/")).boot_id;
    let never = Arc::new(AtomicBool::new(false));
    let cache = &environment.cache_dir;
    accel::probe(qemu, &kernel.image, &kernel.initramfs, cache, &host_boot, &never)
}

/// Whether KVM works, by the newest kernel in the cache; nothing if there is none.
pub(super) fn probe_kvm(
    qemu: &Qemu,
    environment: &Environment,
) -> Result<Option<AccelReport>, Failure> {
    let agent = find_agent(environment)?;
    let silent = Provisioner::new(environment.cache_dir.clone(), agent, Arc::new(|_| {}));
    match silent.newest_cached()? {
        Some(kernel) => probe(qemu, &kernel, environment).map(Some),
        None => Ok(None),
    }
}

/// What a run would use as far as is known without booting anything.
pub(super) fn likely_accel(wanted: AccelArg, qemu: &Qemu, environment: &Environment) -> Accel {
    match wanted {
        AccelArg::Tcg => Accel::Tcg,
        AccelArg::Kvm => Accel::Kvm,
        AccelArg::Auto => {
            let host_boot = HostInfo::read(Path::new("/")).boot_id;
            accel::remembered(qemu, &environment.cache_dir, &host_boot)
                .map_or(Accel::Tcg, |report| report.accel())
        }
    }
}
