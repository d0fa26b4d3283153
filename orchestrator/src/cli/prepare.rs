//! What comes before the first boot: QEMU, agent, accelerator, kernels, the run's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::CliError;
use super::accelerator::choose_accel;
use super::args::{AccelArg, RunArgs, RunOptions};
use super::placement;
use super::plan_images;
use super::sight::refuse_blind;
use super::sources;
use super::watch::Watcher;
use crate::analyse::{self, Options};
use crate::boot::Accel;
use crate::boot::fake::Script;
use crate::collect::{
    BootRecord, Calibrations, HostInfo, KernelIdentity, KnownBoots, QemuInfo, RunFolder, RunInfo,
    RunRef,
};
use crate::config::{self, Environment, KernelSpec, Loaded};
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass};
use crate::host::lock::CpuLock;
use crate::host::qemu::Qemu;
use crate::host::tool;
use crate::plan::{self, Measure, Plan, PlannedSide};
use crate::provision::{Kernel, KernelsLock, Provisioner, pin_files};
use crate::run::Backend;
use crate::run::exact::{ExactRig, MachineDigests};
use crate::text::escape;

/// The agent's file name beside `kduel`.
#[cfg(target_arch = "x86_64")]
const AGENT_FILE: &str = "kduel-agent.x86_64";

/// The counting plugin's file name beside `kduel`.
const PLUGIN_FILE: &str = "libkduel_qemu_plugin.so";

/// Everything a run needs before its first boot.
pub(super) struct Prepared {
    /// What will be done.
    pub(super) plan: Plan,
    /// With what.
    pub(super) kernels: BTreeMap<KernelSpec, Kernel>,
    /// What executes the guests.
    pub(super) accel: Accel,
    /// What boots them.
    pub(super) backend: Backend,
    /// What boots the guests of an exact run.
    pub(super) exact: Option<ExactRig>,
    /// Keeps other runs off the CPUs of this one.
    pub(super) lock: Option<CpuLock>,
    /// Where results go.
    pub(super) folder: RunFolder,
    /// What an earlier part of the same run has done.
    pub(super) records: Vec<BootRecord>,
}

/// Makes everything ready; boots nothing but the probe of the accelerator.
pub(super) fn prepare(
    args: &RunArgs,
    options: &RunOptions,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<Prepared, CliError> {
    match &options.resume {
        Some(run) => resume(run, args, options, environment, watcher),
        None => start(args, options, environment, watcher),
    }
}

fn start(
    args: &RunArgs,
    options: &RunOptions,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<Prepared, CliError> {
    let (loaded, mut plan) = planned(args, environment)?;
    loaded.notes.iter().for_each(|note| watcher.say(note));
    check_console(options, &plan)?;
    let sources = sources::records(&plan, environment)?;
    if args.backend.is_none() {
        let host = placement::this_host(environment);
        placement::place_guests(&mut plan, &host, args.overcommit)?;
        host.limits.iter().for_each(|limit| watcher.say(limit));
    }
    for experiment in &mut plan.experiments {
        pin_files(&mut experiment.files)?;
    }
    if args.backend.is_none() {
        plan_images::pin(&mut plan, loaded.document.as_deref(), environment, watcher)?;
    }
    let wanted = Wanted::New { document: loaded.document.as_deref() };
    let rig = Rig::find(args, environment, &plan, wanted, watcher)?;
    Calibrations::load(&environment.calibration_file())?.enter(
        &mut plan,
        Path::new("/"),
        rig.accel,
    );
    if matches!(rig.backend, Backend::Qemu(_)) && !options.anyway {
        let command: Vec<String> = std::env::args().collect();
        refuse_blind(&plan, rig.accel, &command)?;
    }
    if let Some(path) = loaded.save()? {
        watcher.say(&format!("wrote {}", path.display()));
    }
    let mut info = RunInfo::new(rig.accel, std::env::args().collect());
    info.label.clone_from(&options.label);
    info.out = options.out.as_ref().map(|out| environment.current_dir.join(out));
    info.case.clone_from(&loaded.case);
    info.host = HostInfo::read(Path::new("/"));
    info.qemu = rig.qemu_info();
    info.kernels = identities(&plan, &rig.kernels);
    sources::enter(&sources, &mut info.kernels);
    info.configs = configs(&plan, &rig.kernels);
    let runs = options.out.clone().unwrap_or_else(|| environment.runs_dir());
    let lock = placement::hold(&plan, environment, !options.no_wait, watcher)?;
    let folder = RunFolder::create(&runs, &plan, info)?;
    sources::write(&sources, &folder)?;
    let mut prepared = rig.prepared(plan, folder, Vec::new(), lock);
    if let Some(exact) = &mut prepared.exact {
        exact.use_known = !options.no_cache;
    }
    Ok(prepared)
}

/// `--console` names a side of the plan.
fn check_console(options: &RunOptions, plan: &Plan) -> Result<(), CliError> {
    let Some(wanted) = &options.console else { return Ok(()) };
    let sides: BTreeSet<&str> = plan
        .experiments
        .iter()
        .flat_map(|experiment| &experiment.sides)
        .map(|side| side.name.as_str())
        .collect();
    if sides.contains(wanted.as_str()) {
        return Ok(());
    }
    let sides = sides.into_iter().collect::<Vec<_>>().join(", ");
    Err(CliError::Unknown(format!(
        "--console: no side `{}`\n  hint: there are {sides}",
        escape(wanted)
    )))
}

/// The plan of these arguments.
pub(super) fn planned(
    args: &RunArgs,
    environment: &Environment,
) -> Result<(Loaded, Plan), CliError> {
    let mut loaded = config::load(args, environment)?;
    sources::settle(&mut loaded)?;
    if loaded.experiments.is_empty() {
        return Err(CliError::NothingSelected("no experiment is selected".to_owned()));
    }
    let seed = match loaded.measure() {
        Measure::Time => loaded.seed.map_or_else(plan::random::seed_from_system, Ok),
        Measure::Instructions => Ok(loaded.seed.unwrap_or(plan::FIRST_SEED)),
    };
    let seed = seed.map_err(|error| {
        Failure::new(FailureClass::HostIo, format!("failed to draw a seed: {error}"))
    })?;
    let plan = plan::build(&loaded, seed);
    Ok((loaded, plan))
}

/// Goes on with a run: the same plan, the same kernels, the same QEMU, the same accelerator.
fn resume(
    run: &RunRef,
    args: &RunArgs,
    options: &RunOptions,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<Prepared, CliError> {
    let (folder, stored) = RunFolder::resume(&environment.runs_dir(), run)?;
    check_console(options, &stored.plan)?;
    if let Some(cut) = &stored.cut {
        watcher.say(&format!("journal.jsonl: cut off from line {} on: {}", cut.line, cut.reason));
    }
    let args = as_begun(args, &stored.info);
    let rig = Rig::find(&args, environment, &stored.plan, Wanted::Begun(&stored.info), watcher)?;
    let mut differences = Vec::new();
    let mut compare = |what: &str, then: String, now: String| {
        if then != now {
            differences.push(format!("{what}: then {then}, now {now}"));
        }
    };
    let then = &stored.info;
    compare("accelerator", then.accelerator.name().into(), rig.accel.name().into());
    compare("host CPU", then.host.cpu_model.clone(), HostInfo::read(Path::new("/")).cpu_model);
    let version = |qemu: &Option<QemuInfo>| {
        qemu.as_ref().map_or_else(|| "none".to_owned(), |qemu| qemu.version.clone())
    };
    compare("QEMU", version(&then.qemu), version(&rig.qemu_info()));
    for (name, now) in identities(&stored.plan, &rig.kernels) {
        let then = then.kernels.get(&name);
        let image = then.map_or("none", |kernel| &kernel.image_sha256);
        compare(&format!("kernel {name}"), image.to_owned(), now.image_sha256);
        let initramfs = then.map_or("none", |kernel| &kernel.initramfs_sha256);
        let what = format!("agent, programs and modules for kernel {name}");
        compare(&what, initramfs.to_owned(), now.initramfs_sha256);
    }
    if let Some(exact) = &rig.exact {
        let boots = stored.records.iter().filter_map(|record| record.exact.as_ref());
        let others = exact.digests.other_than(boots.map(|boot| &boot.inputs)).into_iter();
        differences.extend(others.map(|name| format!("{name}: not the file that it was")));
    }
    differences.extend(placement::lost(&stored.plan, &placement::this_host(environment)));
    if !differences.is_empty() {
        let failure = Failure::new(
            FailureClass::HostIo,
            format!("run {} cannot go on: this is not what it began with", folder.id()),
        )
        .hint("start a new run; the pairs of this one stay in its report");
        return Err(differences.into_iter().fold(failure, Failure::detail).into());
    }
    let lock = placement::hold(&stored.plan, environment, !options.no_wait, watcher)?;
    Ok(rig.prepared(stored.plan, folder, stored.records, lock))
}

/// What the user does not say anew stays as the run began.
fn as_begun(args: &RunArgs, then: &RunInfo) -> RunArgs {
    let accel = match (args.accel, then.accelerator) {
        (AccelArg::Auto, Accel::Kvm) => AccelArg::Kvm,
        (AccelArg::Auto, Accel::Tcg) => AccelArg::Tcg,
        (said, _) => said,
    };
    let qemu = args.qemu.clone().or_else(|| Some(then.qemu.as_ref()?.path.clone()));
    RunArgs { accel, qemu, ..args.clone() }
}

/// Which kernels a run is to have.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'a> {
    /// Those that its specs name now, pinned in `kernels.lock` beside the document if there is one.
    New { document: Option<&'a Path> },
    /// Those that it began with, if they are still there.
    Begun(&'a RunInfo),
}

/// What boots, with what.
struct Rig {
    kernels: BTreeMap<KernelSpec, Kernel>,
    accel: Accel,
    backend: Backend,
    exact: Option<ExactRig>,
}

impl Rig {
    fn find(
        args: &RunArgs,
        environment: &Environment,
        plan: &Plan,
        wanted: Wanted<'_>,
        watcher: &Arc<Watcher>,
    ) -> Result<Self, CliError> {
        if let Some(backend) = &args.backend {
            let Some(script) = backend.strip_prefix("fake:") else {
                let what = format!("--backend {}: not fake:SCRIPT", escape(backend));
                return Err(CliError::Unknown(what));
            };
            return Self::fake(Path::new(script), plan);
        }
        let qemu = Qemu::find(args.qemu.as_deref(), &environment.path)?;
        let exact = match plan.measure {
            Measure::Instructions => Some(exact_rig(args.accel, &qemu, environment)?),
            Measure::Time => None,
        };
        let kernels = kernels(plan, wanted, environment, watcher)?;
        if exact.is_some() {
            return Ok(Self { kernels, accel: Accel::Tcg, backend: Backend::Qemu(qemu), exact });
        }
        let first = kernels.values().next();
        let accel = choose_accel(args.accel, &qemu, first, environment, watcher)?;
        Ok(Self { kernels, accel, backend: Backend::Qemu(qemu), exact: None })
    }

    fn fake(script: &Path, plan: &Plan) -> Result<Self, CliError> {
        let script = Script::load(script)?;
        let nothing = |spec: &KernelSpec| (spec.clone(), Kernel::scripted());
        let specs = plan.experiments.iter().flat_map(|experiment| &experiment.sides);
        Ok(Self {
            kernels: specs.map(|side| nothing(&side.kernel)).collect(),
            accel: Accel::Tcg,
            backend: Backend::Fake(Arc::new(script)),
            exact: None,
        })
    }

    fn qemu_info(&self) -> Option<QemuInfo> {
        match &self.backend {
            Backend::Qemu(qemu) => {
                Some(QemuInfo { path: qemu.program.clone(), version: qemu.version.to_string() })
            }
            Backend::Fake(_) => None,
        }
    }

    fn prepared(
        self,
        plan: Plan,
        folder: RunFolder,
        records: Vec<BootRecord>,
        mut lock: Option<CpuLock>,
    ) -> Prepared {
        let Self { kernels, accel, backend, exact } = self;
        if let Some(lock) = &mut lock {
            lock.tell(&placement::holder(Some(&folder.id().0)));
        }
        Prepared { plan, kernels, accel, backend, exact, lock, folder, records }
    }
}

/// What exact runs need. They have one accelerator, whatever the host has.
pub(super) fn exact_rig(
    wanted: AccelArg,
    qemu: &Qemu,
    environment: &Environment,
) -> Result<ExactRig, Failure> {
    if wanted == AccelArg::Kvm {
        let title = "exact runs count in QEMU's translator, so --accel kvm is not for them";
        return Err(Failure::new(FailureClass::Usage, title)
            .hint("leave it out, or measure time with --measure time"));
    }
    let plugin = find_plugin(environment)?;
    Ok(ExactRig {
        digests: MachineDigests::read(qemu, &plugin)?,
        qemu: qemu.clone(),
        plugin,
        symbols: environment.symbols_dir(),
        known: KnownBoots::new(environment.known_dir()),
        use_known: true,
        // One more than there are processors: the short boot that repeats the first trial overlaps.
        at_once: std::thread::available_parallelism().map_or(1, usize::from) + 1,
    })
}

/// The counting plugin: `KDUEL_QEMU_PLUGIN`, or beside this program.
pub(super) fn find_plugin(environment: &Environment) -> Result<PathBuf, Failure> {
    let beside =
        std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(PLUGIN_FILE)));
    let found = environment.plugin.clone().or(beside).filter(|path| path.is_file());
    found.ok_or_else(|| {
        Failure::new(
            FailureClass::ToolMissing,
            format!("{PLUGIN_FILE}, which counts in exact runs, is not beside kduel"),
        )
        .hint("build it with `cargo xtask build`, or name it with KDUEL_QEMU_PLUGIN")
    })
}

/// Every kernel of the plan, fetched and checked.
pub(super) fn kernels(
    plan: &Plan,
    wanted: Wanted<'_>,
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<BTreeMap<KernelSpec, Kernel>, CliError> {
    plan_images::check(plan, environment, watcher)?;
    let provisioner =
        provisioner(environment, watcher)?.with_modules(plan_images::modules_for(plan));
    let mut lock = match wanted {
        Wanted::New { document: Some(document) } => {
            Some(KernelsLock::load(&document.with_file_name("kernels.lock"))?)
        }
        _ => None,
    };
    let mut kernels = BTreeMap::new();
    for side in plan.experiments.iter().flat_map(|experiment| &experiment.sides) {
        if kernels.contains_key(&side.kernel) {
            continue;
        }
        watcher.handle(&RunEvent::Provisioning {
            what: format!("checking kernel {}", side.kernel_name),
        });
        let kernel = match begun(&provisioner, side, wanted)? {
            Some(kernel) => kernel,
            None => provisioner.kernel(&side.kernel_name, &side.kernel, lock.as_mut())?,
        };
        kernels.insert(side.kernel.clone(), kernel);
    }
    if let Some(lock) = &mut lock {
        lock.save()?;
    }
    Ok(kernels)
}

/// The kernel that a run began with, where it comes from a suite, which moves on.
fn begun(
    provisioner: &Provisioner,
    side: &PlannedSide,
    wanted: Wanted<'_>,
) -> Result<Option<Kernel>, Failure> {
    match (wanted, &side.kernel) {
        (Wanted::Begun(info), KernelSpec::Debian(spec)) => {
            match info.kernels.get(&side.kernel_name) {
                Some(then) => provisioner.cached(spec, &then.image_sha256),
                None => Ok(None),
            }
        }
        _ => Ok(None),
    }
}

/// A provisioner that tells `watcher` what takes time.
pub(super) fn provisioner(
    environment: &Environment,
    watcher: &Arc<Watcher>,
) -> Result<Provisioner, Failure> {
    let watcher = watcher.clone();
    let tell = move |what| watcher.handle(&RunEvent::Provisioning { what });
    Ok(Provisioner::new(environment.cache_dir.clone(), find_agent(environment)?, Arc::new(tell)))
}

/// The agent's binary: `KDUEL_AGENT`, or beside this program.
pub(super) fn find_agent(environment: &Environment) -> Result<PathBuf, Failure> {
    let beside =
        std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join(AGENT_FILE)));
    let found = environment.agent.clone().or(beside).filter(|path| path.is_file());
    found.ok_or_else(|| {
        Failure::new(
            FailureClass::ToolMissing,
            format!("{AGENT_FILE}, which goes into every guest, is not beside kduel"),
        )
        .hint("build it with `cargo xtask build`, or name it with KDUEL_AGENT")
    })
}

/// A program in `PATH`.
pub(super) fn find_program(name: &str, environment: &Environment) -> Option<PathBuf> {
    tool::find(name, &environment.path)
}

pub(super) fn identities(
    plan: &Plan,
    kernels: &BTreeMap<KernelSpec, Kernel>,
) -> BTreeMap<String, KernelIdentity> {
    let sides = plan.experiments.iter().flat_map(|experiment| &experiment.sides);
    sides
        .filter_map(|side| {
            let kernel = kernels.get(&side.kernel)?;
            Some((side.kernel_name.clone(), KernelIdentity::from(kernel)))
        })
        .collect()
}

/// In what the configs of the kernels differ.
fn configs(plan: &Plan, kernels: &BTreeMap<KernelSpec, Kernel>) -> BTreeMap<String, Options> {
    let sides = plan.experiments.iter().flat_map(|experiment| &experiment.sides);
    let config = |path: &PathBuf| std::fs::read_to_string(path).ok();
    let known = sides.filter_map(|side| {
        let text = kernels.get(&side.kernel)?.config.as_ref().and_then(config)?;
        Some((side.kernel_name.clone(), analyse::options(&text)))
    });
    analyse::telling(known.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_with_what_it_began_with_unless_told() {
        let mut then = RunInfo::new(Accel::Tcg, Vec::new());
        then.qemu = Some(QemuInfo { path: "/opt/qemu".into(), version: "10.0.2".into() });
        let args = as_begun(&RunArgs::default(), &then);
        assert_eq!(args.accel, AccelArg::Tcg);
        assert_eq!(args.qemu.as_deref(), Some(Path::new("/opt/qemu")));
        let said = RunArgs { accel: AccelArg::Kvm, qemu: Some("q".into()), ..RunArgs::default() };
        let args = as_begun(&said, &then);
        assert_eq!((args.accel, args.qemu), (AccelArg::Kvm, Some("q".into())));
    }
}
