//! `kduel add`: one more side for a stored exact run. What was booted stays.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::Path;

use kduel_protocol::Knobs;

use super::args::{AccelArg, RunOptions};
use super::prepare::{self, Prepared, Wanted};
use super::run::{carry_out, conclude};
use super::watch::{WatchOptions, Watcher};
use super::{CliError, logging};
use crate::boot::Accel;
use crate::collect::{HostInfo, KernelIdentity, QemuInfo, RunFolder, RunInfo, RunRef, StoredRun};
use crate::config::{self, Environment};
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::plan::{Measure, Plan, PlannedSide};
use crate::run::Backend;
use crate::run::exact::ExactRig;

/// `kduel add`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  kduel add last newer=debian:sid     the same workloads on one more kernel, against the same base")]
pub struct AddArgs {
    /// The run: `@0` is the newest; an id or the start of one, a label, a folder.
    #[arg(value_name = "RUN")]
    run: RunRef,
    /// The new side's name and its kernel.
    #[arg(value_name = "NAME=SPEC")]
    side: String,
    /// Use this QEMU.
    #[arg(long, value_name = "PATH")]
    qemu: Option<std::path::PathBuf>,
    /// If QEMU is not what it was then: boot all sides anew in this one, into a new run.
    #[arg(long)]
    allow_different_qemu: bool,
    /// Show every boot's command line and log.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// Boots the new side, adds it to the run, and prints the whole report again.
///
/// # Errors
///
/// The run is no exact one, the side cannot be had, or the rig fails.
pub fn run(args: &AddArgs, environment: &Environment) -> Result<u8, CliError> {
    let (name, spec) = args
        .side
        .split_once('=')
        .ok_or_else(|| usage("the side must be NAME=SPEC", "for example newer=debian:sid"))?;
    let kernel = config::parse_spec(spec, environment).map_err(CliError::Unknown)?;
    let (folder, mut stored) = RunFolder::resume(&environment.runs_dir(), &args.run)?;
    if stored.plan.measure != Measure::Instructions {
        let hint = "boots of timed runs are pairs of one time: start a new run with all sides";
        return Err(usage("it is a timed run", hint).into());
    }
    let side = PlannedSide {
        name: name.to_owned(),
        kernel_name: spec.to_owned(),
        kernel,
        knobs: Knobs::default(),
    };
    extend(&mut stored.plan, &side)?;
    let verbose = args.verbose > 0;
    let watcher =
        Watcher::new(std::io::stderr().is_terminal(), WatchOptions { console: None, verbose });
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path)?;
    let exact = prepare::exact_rig(AccelArg::Auto, &qemu, environment)?;
    let anew = !other_machine(&stored, &exact, args.allow_different_qemu)?.is_empty();
    let kernels =
        prepare::kernels(&stored.plan, Wanted::Begun(&stored.info), environment, &watcher)?;
    for (name, now) in prepare::identities(&stored.plan, &kernels) {
        if let Some(then) = stored.info.kernels.get(&name) {
            same_kernel(&name, then, &now)?;
        }
        stored.info.kernels.entry(name).or_insert(now);
    }
    let folder = if anew {
        watcher.say("QEMU is not what it was: all sides are booted anew, into a run of their own");
        stored.records.clear();
        let runs = stored.info.out.clone().unwrap_or_else(|| environment.runs_dir());
        RunFolder::create(&runs, &stored.plan, info_anew(&stored.info, &qemu))?
    } else {
        folder.extend(&stored.plan, &stored.info)?;
        folder
    };
    watcher.say(&format!("run {}", folder.id()));
    logging::start(
        &folder.path().join("log.jsonl"),
        environment.log.as_deref(),
        super::colour(environment),
    )?;
    let mut prepared = Prepared {
        plan: stored.plan,
        kernels,
        accel: Accel::Tcg,
        backend: Backend::Qemu(qemu),
        exact: Some(exact),
        lock: None,
        folder,
        records: stored.records,
    };
    let end = carry_out(&mut prepared, None, &watcher);
    watcher.finish();
    let options = RunOptions { json: args.json, ..RunOptions::default() };
    conclude(&options, &prepared, end?, environment)
}

/// What of the machine is not what it was; refused unless that is `allowed`.
fn other_machine(
    stored: &StoredRun,
    rig: &ExactRig,
    allowed: bool,
) -> Result<BTreeSet<String>, Failure> {
    let boots = stored.records.iter().filter_map(|record| record.exact.as_ref());
    let different = rig.digests.other_than(boots.map(|boot| &boot.inputs));
    if different.is_empty() || allowed {
        return Ok(different);
    }
    let names = Vec::from_iter(different).join(", ");
    let title = format!("this is not the QEMU that the run was made with: {names} not what it was");
    let hint = "name that one with --qemu, or boot all sides anew with --allow-different-qemu";
    Err(usage(&title, hint))
}

/// What was booted stays, so that what is booted now must be of the same make.
fn same_kernel(name: &str, then: &KernelIdentity, now: &KernelIdentity) -> Result<(), Failure> {
    let hint = "start a new run with all sides";
    if then.image_sha256 != now.image_sha256 {
        let title = format!("kernel {name} was {} then and is {} now", then.origin, now.origin);
        return Err(usage(&title, hint));
    }
    if then.initramfs_sha256 != now.initramfs_sha256 {
        let title =
            format!("agent, programs or modules for kernel {name} are not what they were then");
        return Err(usage(&title, hint));
    }
    Ok(())
}

/// Of a run with the same kernels in another QEMU.
fn info_anew(then: &RunInfo, qemu: &Qemu) -> RunInfo {
    let mut info = RunInfo::new(Accel::Tcg, std::env::args().collect());
    info.out.clone_from(&then.out);
    info.host = HostInfo::read(Path::new("/"));
    info.qemu = Some(QemuInfo { path: qemu.program.clone(), version: qemu.version.to_string() });
    info.kernels.clone_from(&then.kernels);
    info
}

/// Puts `side` behind the others of every experiment.
fn extend(plan: &mut Plan, side: &PlannedSide) -> Result<(), Failure> {
    for experiment in &mut plan.experiments {
        if experiment.sides.iter().any(|known| known.name == side.name) {
            let title = format!("the run has a side {} already", side.name);
            return Err(usage(&title, "give the new one another name"));
        }
        let place = experiment.sides.len();
        experiment.sides.push(side.clone());
        for block in &mut experiment.blocks {
            block.order.push(place);
        }
    }
    Ok(())
}

fn usage(title: &str, hint: &str) -> Failure {
    Failure::new(FailureClass::Usage, title).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::plan;

    #[test]
    fn a_side_is_added_once_to_every_block() {
        let mut plan = plan(&["base", "patched"], 2);
        let side = PlannedSide { name: "newer".into(), ..plan.experiments[0].sides[1].clone() };
        extend(&mut plan, &side).unwrap();
        assert!(plan.experiments[0].blocks.iter().all(|block| block.order[2..] == [2]));
        assert_eq!(extend(&mut plan, &side).unwrap_err().class, FailureClass::Usage);
    }
}
