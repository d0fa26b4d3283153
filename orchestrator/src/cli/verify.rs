//! `kduel verify`: does a stored exact run again and compares every sample and every count.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::args::AccelArg;
use super::prepare::{self, Wanted};
use super::watch::{WatchOptions, Watcher};
use super::{CliError, report, signals};
use crate::analyse::record_difference;
use crate::collect::{BootOutcome, BootRecord, ExactBoot, KnownBoots, RunRef, StoredRun};
use crate::config::{Environment, KernelSpec};
use crate::exit_code;
use crate::fault::{Failure, FailureClass, Fault};
use crate::host::Qemu;
use crate::id::BootId;
use crate::plan::{Measure, Plan};
use crate::provision::{Kernel, sha256_of_file};
use crate::run::exact::{ExactDispatcher, ExactRig, different_inputs, is_machine};
use crate::run::{CutShort, Recorder};
use crate::text::{count, escape};

/// `kduel verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The answer is one line: `bit-identical`, `differs at …` (exit code 1) or `cannot: …` (exit code 69).
Nothing of the stored run is changed, and nothing that is known is used instead of a boot.
Another QEMU need not count the same, so what it counts is compared with itself only.")]
pub struct VerifyArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder.
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    run: RunRef,
    /// Use this QEMU.
    #[arg(long, value_name = "PATH")]
    qemu: Option<std::path::PathBuf>,
    /// If QEMU is not what it was then: do the run twice in this one and compare those two.
    #[arg(long)]
    allow_different_qemu: bool,
    /// Show every boot's command line and log.
    #[arg(short, long, action = clap::ArgAction::Count)]
    verbose: u8,
}

/// Boots all sides again and says whether they are the same.
///
/// # Errors
///
/// The run is not there, or cannot be read.
pub fn run(args: &VerifyArgs, environment: &Environment) -> Result<u8, CliError> {
    let stored = StoredRun::open(&environment.runs_dir(), &args.run)?;
    let watcher = Watcher::new(
        std::io::stderr().is_terminal(),
        WatchOptions { console: None, verbose: args.verbose > 0 },
    );
    let answer = answer(args, environment, &stored, &watcher);
    watcher.finish();
    let (line, code) = match answer {
        Ok(Answer::Same(what)) => (format!("bit-identical: {what}"), exit_code::DONE),
        Ok(Answer::Differs(place)) => (format!("differs at {place}"), exit_code::REGRESSION),
        Err(Obstacle::Interrupted) => return Ok(exit_code::INTERRUPTED),
        Err(Obstacle::Cannot(why)) => (format!("cannot: {why}"), exit_code::RIG),
    };
    let lines: Vec<String> = line.lines().map(escape).collect();
    report::emit(&format!("{}\n", lines.join("\n")))?;
    Ok(code)
}

enum Answer {
    Same(String),
    Differs(String),
}

enum Obstacle {
    Interrupted,
    Cannot(String),
}

impl From<Failure> for Obstacle {
    fn from(failure: Failure) -> Self {
        match failure.class {
            FailureClass::Interrupted => Self::Interrupted,
            _ => Self::Cannot(failure.to_string()),
        }
    }
}

impl From<CliError> for Obstacle {
    fn from(error: CliError) -> Self {
        match error {
            CliError::Failed(failure) => failure.into(),
            other => Self::Cannot(other.to_string()),
        }
    }
}

impl From<CutShort> for Obstacle {
    fn from(cut: CutShort) -> Self {
        match cut {
            CutShort::Interrupted => Self::Interrupted,
            CutShort::Failed(failure) => failure.into(),
            CutShort::BootFailed(_, failure) => (*failure).into(),
        }
    }
}

fn answer(
    args: &VerifyArgs,
    environment: &Environment,
    stored: &StoredRun,
    watcher: &Arc<Watcher>,
) -> Result<Answer, Obstacle> {
    if stored.plan.measure != Measure::Instructions {
        let why = "it is a timed run, and those never repeat to the bit";
        return Err(Obstacle::Cannot(why.to_owned()));
    }
    let wanted = finished(&stored.records);
    if wanted.is_empty() {
        return Err(Obstacle::Cannot("no boot of it was finished".to_owned()));
    }
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path)?;
    let nothing_known = tempfile::tempdir()
        .map_err(|error| Obstacle::Cannot(format!("failed to make a folder: {error}")))?;
    let rig = ExactRig {
        known: KnownBoots::new(nothing_known.path().to_owned()),
        use_known: false,
        ..prepare::exact_rig(AccelArg::Auto, &qemu, environment)?
    };
    let inputs = wanted.iter().filter_map(|record| Some(&record.exact.as_ref()?.inputs));
    let different = Vec::from_iter(rig.digests.other_than(inputs)).join(", ");
    if !different.is_empty() && !args.allow_different_qemu {
        return Err(Obstacle::Cannot(format!(
            "this is not the QEMU that it was made with: {different} not what it was\n  \
             hint: name that one with --qemu, or do the run twice in this one with \
             --allow-different-qemu"
        )));
    }
    let kernels = match exported_kernels(stored)? {
        Some(kernels) => kernels,
        None => prepare::kernels(&stored.plan, Wanted::Begun(&stored.info), environment, watcher)?,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let mut plan = stored.plan.clone();
    plan.aa = true;
    let dispatcher = ExactDispatcher {
        plan: &plan,
        kernels: &kernels,
        rig: &rig,
        run: stored.info.id.0.clone(),
        listener: watcher.listener(),
        stop: stop.clone(),
    };
    let done_again = || {
        let mut again = Again::default();
        match dispatcher.run(Vec::new(), &mut again).cut_short {
            Some(cut) => Err(Obstacle::from(cut)),
            None => Ok(again),
        }
    };
    in_runtime(stop, watcher, || {
        dispatcher.read_symbols()?;
        let now = dispatcher.identities()?;
        for record in &wanted {
            same_guest(record, &now)?;
        }
        if different.is_empty() {
            return compare(&stored.plan, &Then::stored(stored, &wanted)?, &done_again()?);
        }
        let (first, second) = (done_again()?, done_again()?);
        let within = format!(
            "done twice in QEMU {} as it is now; the stored numbers are of another one ({different} \
             not what it was) and were not compared",
            qemu.version
        );
        Ok(match compare(&stored.plan, &Then::again(&first, &wanted), &second)? {
            Answer::Same(what) => Answer::Same(format!("{what}, {within}")),
            Answer::Differs(place) => Answer::Differs(format!("{place}, {within}")),
        })
    })
}

/// The kernels that came with an exported run, if all of them did.
fn exported_kernels(stored: &StoredRun) -> Result<Option<BTreeMap<KernelSpec, Kernel>>, Failure> {
    let mut kernels = BTreeMap::new();
    for side in stored.plan.experiments.iter().flat_map(|experiment| &experiment.sides) {
        let Some(then) = stored.info.kernels.get(&side.kernel_name) else { return Ok(None) };
        let file = |sum: &str| stored.file("kernels", sum);
        let (Some(image), Some(initramfs)) =
            (file(&then.image_sha256), file(&then.initramfs_sha256))
        else {
            return Ok(None);
        };
        for (path, sum) in [(&image, &then.image_sha256), (&initramfs, &then.initramfs_sha256)] {
            let found =
                sha256_of_file(path).map_err(|error| Failure::host_io("read", path, &error))?;
            if found != *sum {
                let title = format!("kernel {} is not the run's", side.kernel_name);
                return Err(Failure::new(FailureClass::HostIo, title));
            }
        }
        let kernel = Kernel {
            image,
            image_sha256: then.image_sha256.clone(),
            release: then.release.clone(),
            modules: None,
            config: None,
            origin: then.origin.clone(),
            initramfs,
            initramfs_sha256: then.initramfs_sha256.clone(),
        };
        kernels.insert(side.kernel.clone(), kernel);
    }
    Ok(Some(kernels))
}

/// Signals are watched beside `work`.
fn in_runtime<T>(
    stop: Arc<AtomicBool>,
    watcher: &Arc<Watcher>,
    work: impl FnOnce() -> Result<T, Obstacle>,
) -> Result<T, Obstacle> {
    let cannot = |error: std::io::Error| Obstacle::Cannot(format!("no runtime: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(cannot)?;
    runtime.block_on(async {
        signals::watch(stop, watcher.listener()).map_err(cannot)?;
        work()
    })
}

/// What each boot came to, but for those that the rig spoiled.
fn finished(records: &[BootRecord]) -> Vec<&BootRecord> {
    let latest: BTreeMap<&BootId, &BootRecord> =
        records.iter().map(|record| (&record.boot, record)).collect();
    let counts = |record: &&BootRecord| match &record.outcome {
        BootOutcome::Completed(_) => !record.is_again(),
        BootOutcome::Failed(failure) => !record.is_again() && failure.fault() != Fault::Rig,
    };
    latest.into_values().filter(counts).collect()
}

/// What goes in now must be what went in then, whatever the machine is.
fn same_guest(record: &BootRecord, now: &BTreeMap<BootId, ExactBoot>) -> Result<(), Obstacle> {
    let (Some(then), Some(now)) = (&record.exact, now.get(&record.boot)) else {
        return Err(Obstacle::Cannot(format!("{} does not say what went into it", record.boot)));
    };
    let mut other = different_inputs(&then.inputs, &now.inputs);
    other.retain(|name| !is_machine(name));
    if other.is_empty() {
        return Ok(());
    }
    Err(Obstacle::Cannot(format!(
        "{} would be another guest now: {} not what it was\n  hint: run it anew",
        record.side,
        Vec::from_iter(other).join(", ")
    )))
}

/// What a boot done again is compared with.
struct Then<'a> {
    records: Vec<&'a BootRecord>,
    counts: BTreeMap<BootId, Vec<u8>>,
}

impl<'a> Then<'a> {
    fn stored(stored: &StoredRun, wanted: &[&'a BootRecord]) -> Result<Self, Obstacle> {
        let mut counts = BTreeMap::new();
        for record in wanted {
            if let Some(counted) = stored.counts(&record.boot)? {
                counts.insert(record.boot.clone(), counted);
            }
        }
        Ok(Self { records: wanted.to_vec(), counts })
    }

    fn again(again: &'a Again, wanted: &[&BootRecord]) -> Self {
        let is_wanted = |boot: &BootId| wanted.iter().any(|record| record.boot == *boot);
        let records = again.records.iter().filter(|record| is_wanted(&record.boot));
        Self { records: records.collect(), counts: again.counts.clone() }
    }
}

fn compare(plan: &Plan, then: &Then<'_>, now: &Again) -> Result<Answer, Obstacle> {
    let (mut samples, mut counted) = (0, 0);
    for record in &then.records {
        let boot = &record.boot;
        let same = |other: &&BootRecord| other.boot == *boot && !other.is_again();
        let Some(other) = now.records.iter().find(same) else {
            return Ok(Answer::Differs(format!("{boot}: it gave nothing")));
        };
        if let Some(place) = record_difference(plan, record, other) {
            return Ok(Answer::Differs(format!("{boot}: {place}")));
        }
        let BootOutcome::Completed(result) = &record.outcome else { continue };
        samples += result.samples.len();
        let counts = (then.counts.get(boot), now.counts.get(boot));
        let (Some(counts), Some(again)) = counts else {
            return Err(Obstacle::Cannot(format!("{boot}: its counts are missing")));
        };
        if counts != again {
            return Ok(Answer::Differs(format!("{boot}: the counts block by block")));
        }
        counted += counts.len();
    }
    Ok(Answer::Same(format!(
        "{}, {}, {} of counts",
        count(then.records.len(), "boot"),
        count(samples, "sample"),
        count(counted, "byte")
    )))
}

/// Keeps what was done for a moment, and writes nothing.
#[derive(Default)]
struct Again {
    records: Vec<BootRecord>,
    counts: BTreeMap<BootId, Vec<u8>>,
}

impl Recorder for Again {
    /// Exact runs have no budget.
    fn ends_early(&mut self, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn record(&mut self, record: &BootRecord, _: &str) -> Result<(), Failure> {
        self.records.push(record.clone());
        Ok(())
    }

    fn counts(&mut self, boot: &BootId, counts: &[u8]) -> Result<(), Failure> {
        self.counts.insert(boot.clone(), counts.to_vec());
        Ok(())
    }

    fn symbols(&mut self, _: &str, _: &Path) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::{completed, failed, plan};

    fn again(value: f64, counts: &[u8]) -> Again {
        let mut again = Again::default();
        let mut record = completed("fork", "base", 0, &[("instructions", value)]);
        record.exact = Some(Box::default());
        again.counts(&record.boot, counts).unwrap();
        again.record(&record, "").unwrap();
        again
    }

    fn answer(one: &Again, other: &Again) -> String {
        let wanted: Vec<&BootRecord> = one.records.iter().collect();
        match compare(&plan(&["base"], 1), &Then::again(one, &wanted), other) {
            Ok(Answer::Same(what)) => format!("same: {what}"),
            Ok(Answer::Differs(place)) => format!("differs: {place}"),
            Err(Obstacle::Cannot(why)) => format!("cannot: {why}"),
            Err(Obstacle::Interrupted) => "interrupted".to_owned(),
        }
    }

    #[test]
    fn every_sample_and_every_count_is_compared() {
        let first = again(0.1 + 0.2, b"abc");
        let same = answer(&first, &again(0.1 + 0.2, b"abc"));
        assert!(
            same.starts_with("same: 1 boot, ") && same.ends_with("3 bytes of counts"),
            "{same}"
        );
        assert!(answer(&first, &again(0.3, b"abc")).contains("0.30000000000000004 and 0.3"));
        assert!(answer(&first, &again(0.1 + 0.2, b"abd")).contains("block by block"));
        assert!(answer(&first, &Again::default()).contains("gave nothing"));
        let uncounted = Again { counts: BTreeMap::new(), ..again(0.1 + 0.2, b"") };
        assert!(answer(&first, &uncounted).starts_with("cannot: "));
    }

    #[test]
    fn what_the_rig_spoiled_is_nothing_to_compare_with() {
        let killed = failed("fork", "base", 0, FailureClass::QemuKilled, "killed");
        let panicked = failed("fork", "base", 0, FailureClass::Panic, "x");
        let done = completed("fork", "base", 0, &[("instructions", 1.0)]);
        assert_eq!(finished(&[killed.clone(), done.clone()]), [&done]);
        assert_eq!(finished(std::slice::from_ref(&panicked)), [&panicked]);
        assert!(finished(&[killed]).is_empty());
    }

    #[test]
    fn another_machine_is_no_other_guest_and_another_kernel_is() {
        let record = &again(1.0, b"").records[0];
        let now = |name: &str| {
            let inputs = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
            BTreeMap::from([(record.boot.clone(), ExactBoot { inputs, ..ExactBoot::default() })])
        };
        assert!(same_guest(record, &now("qemu")).is_ok());
        let Err(Obstacle::Cannot(why)) = same_guest(record, &now("kernel")) else {
            panic!("another kernel is the same guest")
        };
        assert!(why.starts_with("base would be another guest now: kernel not what"), "{why}");
    }
}
