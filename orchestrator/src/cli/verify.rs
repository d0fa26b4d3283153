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
use crate::collect::{BootRecord, KnownBoots, RunRef, StoredRun};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::id::BootId;
use crate::plan::Measure;
use crate::run::exact::{ExactDispatcher, ExactRig};
use crate::run::{CutShort, Recorder};
use crate::text::{count, escape};

/// `kduel verify`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The answer is one line: `bit-identical`, `differs at …` (exit code 1) or `cannot: …` (exit code 69).
Nothing of the stored run is changed, and nothing that is known is used instead of a boot.")]
pub struct VerifyArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder.
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    run: RunRef,
    /// Use this QEMU.
    #[arg(long, value_name = "PATH")]
    qemu: Option<std::path::PathBuf>,
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
    let wanted: Vec<&BootRecord> = stored.records.iter().filter(|r| !r.is_again()).collect();
    if wanted.is_empty() {
        return Err(Obstacle::Cannot("no boot of it was finished".to_owned()));
    }
    let qemu = Qemu::find(args.qemu.as_deref(), &environment.path)?;
    let kernels =
        prepare::kernels(&stored.plan, Wanted::Begun(&stored.info), environment, watcher)?;
    let nothing_known = tempfile::tempdir()
        .map_err(|error| Obstacle::Cannot(format!("failed to make a folder: {error}")))?;
    let rig = ExactRig {
        known: KnownBoots::new(nothing_known.path().to_owned()),
        use_known: false,
        ..prepare::exact_rig(AccelArg::Auto, &qemu, environment)?
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
    let (records, again) = in_runtime(stop, watcher, || {
        dispatcher.read_symbols()?;
        let now = dispatcher.identities()?;
        for record in &wanted {
            same_inputs(record, &now)?;
        }
        let mut again = Again::default();
        let end = dispatcher.run(Vec::new(), &mut again);
        match end.cut_short {
            Some(cut) => Err(Obstacle::from(cut)),
            None => Ok((end.records, again)),
        }
    })?;
    Ok(compare(stored, &wanted, &records, &again))
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

/// What goes in now must be what went in then.
fn same_inputs(
    record: &BootRecord,
    now: &BTreeMap<BootId, crate::collect::ExactBoot>,
) -> Result<(), Obstacle> {
    let (Some(then), Some(now)) = (&record.exact, now.get(&record.boot)) else {
        return Err(Obstacle::Cannot(format!("{} does not say what went into it", record.boot)));
    };
    if then.identity == now.identity {
        return Ok(());
    }
    let names = then.inputs.keys().chain(now.inputs.keys());
    let mut other: Vec<&str> = names
        .filter(|name| then.inputs.get(*name) != now.inputs.get(*name))
        .map(String::as_str)
        .collect();
    other.dedup();
    Err(Obstacle::Cannot(format!(
        "{} would be another guest now: {} not what it was\n  hint: run it anew",
        record.side,
        other.join(", ")
    )))
}

fn compare(
    stored: &StoredRun,
    wanted: &[&BootRecord],
    records: &[BootRecord],
    again: &Again,
) -> Answer {
    let (mut samples, mut counts) = (0, 0);
    for record in wanted {
        let same = |other: &&BootRecord| other.boot == record.boot && !other.is_again();
        let Some(other) = records.iter().find(same) else {
            return Answer::Differs(format!("{}: it gave nothing", record.boot));
        };
        if let Some(place) = record_difference(&stored.plan, record, other) {
            return Answer::Differs(format!("{}: {place}", record.boot));
        }
        if let crate::collect::BootOutcome::Completed(result) = &record.outcome {
            samples += result.samples.len();
        }
        if let (Ok(Some(then)), Some(now)) =
            (stored.counts(&record.boot), again.0.get(&record.boot))
        {
            if then != *now {
                return Answer::Differs(format!("{}: the counts block by block", record.boot));
            }
            counts += then.len();
        }
    }
    Answer::Same(format!(
        "{}, {}, {} of counts",
        count(wanted.len(), "boot"),
        count(samples, "sample"),
        count(counts, "byte")
    ))
}

/// Keeps counts for a moment, and writes nothing.
#[derive(Default)]
struct Again(BTreeMap<BootId, Vec<u8>>);

impl Recorder for Again {
    fn record(&mut self, _: &BootRecord, _: &str) -> Result<(), Failure> {
        Ok(())
    }

    fn counts(&mut self, boot: &BootId, counts: &[u8]) -> Result<(), Failure> {
        self.0.insert(boot.clone(), counts.to_vec());
        Ok(())
    }

    fn symbols(&mut self, _: &str, _: &Path) -> Result<(), Failure> {
        Ok(())
    }
}
