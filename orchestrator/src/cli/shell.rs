//! `kduel shell`: boots one guest of a side, as a run would, and logs in.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::args::{AccelArg, RunArgs};
use super::talk::tell;
use super::watch::{WatchOptions, Watcher};
use super::{CliError, accelerator, plan_images, prepare, signals};
use crate::boot::{Machine, QemuMachine, Watch};
use crate::config::Environment;
use crate::event::RunEvent;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::host::qemu::Qemu;
use crate::plan::{Block, Plan};
use crate::run::GuestRecipe;
use crate::text;

/// `kduel shell`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kduel shell patched                 a side of the first experiment of ./kernels.yaml that has it
  kduel shell fork/patched            the side `patched` of the experiment `fork`
  kduel shell debian:bookworm         any SPEC, without a document

The guest is the one that a run boots: kernel, topology, command line, files and set-up of the side.
Its knobs are set by `/kduel/agent run`, which also runs its trials. It is gone when the shell ends.")]
pub struct ShellArgs {
    /// A side, EXPERIMENT/SIDE, or a SPEC.
    #[arg(value_name = "SIDE")]
    side: String,
    /// Read this document instead of ./kernels.yaml.
    #[arg(short, long, value_name = "FILE")]
    file: Option<std::path::PathBuf>,
    /// What executes the guest's instructions.
    #[arg(long, value_enum, default_value_t)]
    accel: AccelArg,
    /// Use this QEMU.
    #[arg(long, value_name = "PATH")]
    qemu: Option<std::path::PathBuf>,
    /// Show the guest's console while it boots.
    #[arg(long)]
    console: bool,
}

/// Boots, logs in, and switches the guest off when the shell ends.
///
/// # Errors
///
/// No such side, or the guest does not come up.
pub fn run(args: &ShellArgs, environment: &Environment) -> Result<u8, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::new(FailureClass::HostIo, "standard input is no terminal")
            .hint("to run commands without a person: kduel run -a SPEC -b SPEC -- COMMAND")
            .into());
    }
    let (plan, experiment, side) = select(args, environment)?;
    let console = args.console.then(|| plan.experiments[experiment].sides[side].name.clone());
    let watcher = Watcher::new(true, WatchOptions { console, verbose: false });
    let outcome = boot_and_log_in(args, environment, &plan, (experiment, side), &watcher);
    watcher.finish();
    outcome?;
    Ok(exit_code::DONE)
}

fn boot_and_log_in(
    args: &ShellArgs,
    environment: &Environment,
    plan: &Plan,
    (experiment, side): (usize, usize),
    watcher: &Arc<Watcher>,
) -> Result<(), CliError> {
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path)?;
    let mut plan = plan.clone();
    plan_images::pin(&mut plan, None, environment, watcher)?;
    let experiment = Arc::new(plan.experiments[experiment].clone());
    let planned = &experiment.sides[side];
    let provisioner =
        prepare::provisioner(environment, watcher)?.with_modules(plan_images::modules_for(&plan));
    let kernel = provisioner.kernel(&planned.kernel_name, &planned.kernel, None)?;
    let accel = accelerator::choose_accel(args.accel, &qemu, Some(&kernel), environment, watcher)?;
    let architecture = qemu.architecture;
    let recipe = GuestRecipe { experiment: experiment.clone(), side, kernel, accel, architecture };
    let block =
        Block { index: 0, order: vec![side], layout_seed: plan.seed, cpu: None, sentinel: None };
    let (_, spec) = recipe.boot(&block, 0)?;
    let stop = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        Failure::new(FailureClass::Internal, format!("failed to start the runtime: {error}"))
    })?;
    let _entered = runtime.enter();
    // In raw mode Ctrl-C is a key for the guest; before and after it stops us.
    signals::watch(stop.clone(), watcher.listener()).map_err(CliError::Output)?;
    watcher.handle(&RunEvent::Provisioning { what: format!("booting {}", args.side) });
    let watch = Watch { listener: watcher.listener(), stop };
    let mut machine = QemuMachine::new(spec, qemu, watch);
    machine.boot()?;
    watcher.finish();
    tell(&format!("logged in to {}; `exit` switches the guest off", text::escape(&args.side)));
    let talked = machine.interact();
    machine.stop()?;
    Ok(talked?)
}

/// The plan, and which experiment and side in it.
fn select(args: &ShellArgs, environment: &Environment) -> Result<(Plan, usize, usize), CliError> {
    let looks_like_spec =
        args.side.contains(':') || args.side == "host" || args.side.starts_with(['.', '/', '~']);
    let run = if looks_like_spec && args.file.is_none() {
        RunArgs {
            base: Some(args.side.clone()),
            candidates: vec![args.side.clone()],
            workloads: vec!["syscall:call=getppid".to_owned()],
            aa: true,
            ..RunArgs::default()
        }
    } else {
        RunArgs { file: args.file.clone(), ..RunArgs::default() }
    };
    let (_, plan) = prepare::planned(&run, environment)?;
    if looks_like_spec && args.file.is_none() {
        return Ok((plan, 0, 0));
    }
    let (wanted, side) = match args.side.rsplit_once('/') {
        Some((experiment, side)) => (Some(experiment), side),
        None => (None, args.side.as_str()),
    };
    let place = plan.experiments.iter().enumerate().find_map(|(index, experiment)| {
        if wanted.is_some_and(|wanted| wanted != experiment.name) {
            return None;
        }
        Some((index, experiment.sides.iter().position(|known| known.name == side)?))
    });
    match place {
        Some((experiment, side)) => Ok((plan, experiment, side)),
        None => {
            let known: Vec<String> = plan
                .experiments
                .iter()
                .flat_map(|e| e.sides.iter().map(move |s| format!("{}/{}", e.name, s.name)))
                .collect();
            let near = text::nearest(side, known.iter().filter_map(|name| name.rsplit('/').next()));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", known.join(", ")),
            };
            Err(CliError::NothingSelected(format!("no side `{}`\n  hint: {hint}", args.side)))
        }
    }
}
