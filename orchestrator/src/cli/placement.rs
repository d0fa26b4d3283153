//! Where the guests of a timed run are put, and that no other run measures there meanwhile.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::watch::Watcher;
use crate::clock;
use crate::config::Environment;
use crate::fault::{Failure, FailureClass};
use crate::host::lock::{self, CpuLock, LockError};
use crate::host::topology::{CpuList, HostTopology};
use crate::plan::{Measure, NoPlace, Placement, Plan, settle};
use crate::text::escape;

/// How often a run that waits looks whether its CPUs are free.
const PAUSE: Duration = Duration::from_millis(250);

/// This host, as far as it is this process's.
pub(super) fn this_host(environment: &Environment) -> HostTopology {
    HostTopology::read(Path::new("/"), environment.slurm_cpus)
}

/// Puts the guests of a timed run on the host; those of an exact run are nowhere in particular, since
/// their bits do not depend on it.
///
/// # Errors
///
/// `Usage` if the host has too few CPUs for some.
pub(super) fn place_guests(
    plan: &mut Plan,
    host: &HostTopology,
    overcommit: bool,
) -> Result<(), Failure> {
    // A host that does not tell of its CPUs is left to place threads itself.
    if plan.measure != Measure::Time || host.cpus.is_empty() {
        return Ok(());
    }
    let mut refused = Vec::new();
    for experiment in &mut plan.experiments {
        match settle(experiment, host, overcommit) {
            Ok((pairing, placements)) => {
                (experiment.pairing, experiment.placements) = (pairing, placements);
            }
            Err(error) => refused.push((error, experiment.name.clone())),
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    let is_shared = |error: &NoPlace| matches!(error, NoPlace::Shared(_));
    let (title, hint) = if refused.iter().all(|(error, _)| is_shared(error)) {
        let hint = "leave out `duet` for them; if the guests of a command of your own do not disturb \
                    each other, give it `duet: yes`";
        ("these workloads cannot be measured as duets", hint)
    } else {
        let hint = "take a smaller topology, count with --measure instructions, or add --overcommit: \
                    threads then share CPUs, and every number is marked";
        ("this host has too few CPUs for the guests", hint)
    };
    let lines = refused.iter().map(|(error, name)| format!("{name}: {error}"));
    let lines = lines.chain(host.limits.clone());
    Err(lines.fold(Failure::new(FailureClass::Usage, title), Failure::detail).hint(hint))
}

/// Why a run that began elsewhere cannot go on here.
pub(super) fn lost(plan: &Plan, host: &HostTopology) -> Vec<String> {
    let usable = host.usable();
    let cpus = |placement: &Placement| -> CpuList {
        let all = placement.vcpus.iter().chain([&placement.emulator]).flat_map(CpuList::iter);
        all.filter(|cpu| !usable.contains(*cpu)).collect()
    };
    let placements = plan.experiments.iter().flat_map(|each| &each.placements);
    let gone: CpuList = placements.flat_map(|each| cpus(each).iter().collect::<Vec<_>>()).collect();
    match gone.is_empty() {
        true => Vec::new(),
        false => vec![format!("host CPUs: {gone} may not be used any more, only {usable}")],
    }
}

/// Holds the CPUs that the plan's guests are placed on; nothing if they are placed nowhere.
///
/// # Errors
///
/// Another run has them and `wait` is not wanted, or the files of locks cannot be used.
pub(super) fn hold(
    plan: &Plan,
    environment: &Environment,
    wait: bool,
    watcher: &Arc<Watcher>,
) -> Result<Option<CpuLock>, Failure> {
    let placements = plan.experiments.iter().flat_map(|each| &each.placements);
    let cpus: CpuList = placements.flat_map(|placement| placement.held.iter()).collect();
    if cpus.is_empty() {
        return Ok(None);
    }
    let runtime = environment.runtime_dir.as_deref();
    let folder = lock::folder(environment.lock_dir.as_deref(), runtime, &environment.state_dir);
    let mut told = String::new();
    loop {
        let (cpu, by) = match CpuLock::try_take(&folder, &cpus, &holder(None)) {
            Ok(lock) => return Ok(Some(lock)),
            Err(LockError::Failed(failure)) => return Err(failure),
            Err(LockError::Held { cpu, by }) => (cpu, by),
        };
        let held = format!("another run measures on CPU {cpu}: {}", escape(&by));
        if !wait {
            return Err(Failure::new(FailureClass::CpusHeld, held).hint(
                "leave out --no-wait to wait for it, or give this run other CPUs with taskset",
            ));
        }
        if told != held {
            watcher.say(&format!("waiting: {held}"));
            told = held;
        }
        std::thread::sleep(PAUSE);
    }
}

/// What others are told of this process.
pub(super) fn holder(run: Option<&str>) -> String {
    let command: Vec<String> = std::env::args().collect();
    let run = run.map(|run| format!("run {run}, ")).unwrap_or_default();
    let since = clock::now().strftime("%Y-%m-%d %H:%M:%S UTC");
    format!("{run}pid {}, since {since}: {}", std::process::id(), command.join(" "))
}
