//! `kduel run`: plan, provision, boot, run, collect, analyse, report.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::args::{FailOn, RUN_EXAMPLES, RunArgs, RunOptions};
use super::prepare::{Prepared, prepare};
use super::talk::tell;
use super::watch::{WatchOptions, Watcher};
use super::{CliError, calibrate, cases, logging, profile, report, signals};
use crate::analyse::profile::RunProfiles;
use crate::analyse::{Analysis, Verdict};
use crate::clock::Deadline;
use crate::collect::{BootOutcome, BootRecord, RunFolder, StoredRun, samples_jsonl};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;
use crate::report::Look;
use crate::run::exact::ExactDispatcher;
use crate::run::{Backend, CutShort, Dispatcher, Recorder, RunEnd};

/// `kduel run`.
#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunCommand {
    #[command(flatten)]
    args: RunArgs,
    #[command(flatten)]
    options: RunOptions,
}

/// Runs and reports; gives the exit code that the worst verdict asks for.
///
/// # Errors
///
/// Whatever kept the run from giving a report.
pub fn run(command: &RunCommand, environment: &Environment) -> Result<u8, CliError> {
    let RunCommand { args, options } = command;
    let watcher = Watcher::new(
        std::io::stderr().is_terminal(),
        WatchOptions { console: options.console.clone(), verbose: args.verbose > 0 },
    );
    let end = prepare(args, options, environment, &watcher).and_then(|mut prepared| {
        let log = prepared.folder.path().join("log.jsonl");
        logging::start(&log, environment.log.as_deref(), super::colour(environment))?;
        watcher.say(&format!("run {}", prepared.folder.id()));
        let budget = args.budget.map(|seconds| Duration::from_secs(seconds.into()));
        let end = carry_out(&mut prepared, budget, &watcher)?;
        // Nothing is measured any more.
        prepared.lock = None;
        Ok((prepared, end))
    });
    watcher.finish();
    let (prepared, end) = end?;
    conclude(options, &prepared, end, environment)
}

pub(super) fn carry_out(
    prepared: &mut Prepared,
    budget: Option<Duration>,
    watcher: &Arc<Watcher>,
) -> Result<RunEnd, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let records = std::mem::take(&mut prepared.records);
    let dispatcher = Dispatcher {
        plan: &prepared.plan,
        kernels: &prepared.kernels,
        accel: prepared.accel,
        backend: &prepared.backend,
        listener: watcher.listener(),
        stop: stop.clone(),
        budget: budget.map(Deadline::after),
    };
    let run = prepared.folder.id().0;
    let exact = prepared.exact.as_ref().map(|rig| ExactDispatcher {
        plan: &prepared.plan,
        kernels: &prepared.kernels,
        rig,
        run,
        listener: watcher.listener(),
        stop: stop.clone(),
    });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| internal("start the runtime", &error))?;
    let folder = &mut prepared.folder;
    runtime.block_on(async {
        signals::watch(stop, watcher.listener())
            .map_err(|error| internal("watch for signals", &error))?;
        Ok(match exact {
            // Blocks this thread; signals are watched in the runtime's own.
            Some(exact) => exact.run(records, folder),
            None => dispatcher.run(records, folder).await,
        })
    })
}

fn internal(doing: &str, error: &std::io::Error) -> Failure {
    Failure::new(FailureClass::Internal, format!("failed to {doing}: {error}"))
}

impl Recorder for RunFolder {
    fn record(&mut self, record: &BootRecord, console: &str) -> Result<(), Failure> {
        self.write_console(&record.boot, console)?;
        self.append(record)
    }

    fn ends_early(&mut self, why: &str) -> Result<(), Failure> {
        Self::ends_early(self, why)
    }

    fn counts(&mut self, boot: &BootId, counts: &[u8]) -> Result<(), Failure> {
        self.write_counts(boot, counts)
    }

    fn symbols(&mut self, digest: &str, path: &Path) -> Result<(), Failure> {
        self.write_symbols(digest, path)
    }
}

/// Stores and prints the report of whatever was finished.
pub(super) fn conclude(
    options: &RunOptions,
    prepared: &Prepared,
    end: RunEnd,
    environment: &Environment,
) -> Result<u8, CliError> {
    // From disk, as `kduel report` does: what is printed now can be printed again.
    let stored = StoredRun::read(prepared.folder.path())?;
    let analysis = report::analyse_stored(&stored);
    let profiles = if options.json {
        RunProfiles::default()
    } else {
        profile::after_run(&stored, environment.groups.as_deref())
    };
    let render = |format, look| report::render(&stored, &analysis, &profiles, format, look);
    if stored.records.is_empty() {
        tell("no boot was finished: there is nothing to report");
    } else if options.json {
        report::emit(&render(report::Format::Json, Look::default()))?;
    } else {
        report::emit(&render(report::Format::Text, report::look()))?;
        if stored.plan.calibrate && end.cut_short.is_none() {
            report::emit(&calibrate::conclude(&stored, environment)?)?;
        }
    }
    if matches!(prepared.backend, Backend::Qemu(_)) {
        untold(&stored.records).iter().for_each(|line| tell(line));
    }
    // Told only where nothing else is: what stopped the run may have stopped this too.
    let derived = write_derived(prepared, &stored, &render(report::Format::Json, Look::default()));
    match end.cut_short {
        Some(CutShort::Failed(failure)) => Err(failure.into()),
        Some(CutShort::BootFailed(side, failure)) => Err(CliError::BootFailed(side, failure)),
        Some(CutShort::Interrupted) => {
            let run = stored.info.reference();
            tell(&format!("interrupted; `kduel run --resume {run}` goes on"));
            Ok(exit_code::INTERRUPTED)
        }
        None => {
            derived?;
            let usual = exit_code_of(&analysis, options);
            let held = cases::conclude(&stored, &analysis, options.json, environment)?;
            Ok(held.map_or(usual, |held| of_case(held, usual)))
        }
    }
}

/// What of the host's noise the host does not tell, by the first boot that was watched.
fn untold(records: &[BootRecord]) -> Option<String> {
    let noise = records.iter().find_map(|record| match &record.outcome {
        BootOutcome::Completed(result) => result.noise.first(),
        BootOutcome::Failed(_) => None,
    });
    let untold = noise?.host.untold();
    (!untold.is_empty()).then(|| {
        let untold = untold.join(", ");
        format!("this host does not tell, so nothing was dropped for it: {untold}")
    })
}

/// What others may read instead of the journal.
fn write_derived(prepared: &Prepared, stored: &StoredRun, json: &str) -> Result<(), Failure> {
    let samples = samples_jsonl(&stored.plan, &stored.records);
    prepared.folder.write_derived("samples.jsonl", &samples)?;
    prepared.folder.write_derived("report.json", json)
}

/// A case asks whether what must come out did, and a regression may be just that.
fn of_case(held: bool, usual: u8) -> u8 {
    match (held, usual) {
        (true, _) => exit_code::DONE,
        (false, exit_code::KERNEL_FAILED | exit_code::RIG) => usual,
        (false, _) => exit_code::REGRESSION,
    }
}

fn exit_code_of(analysis: &Analysis, options: &RunOptions) -> u8 {
    let any = || {
        analysis.comparisons.iter().any(|comparison| {
            let worse = match comparison.better {
                kduel_protocol::Better::Lower => comparison.low.is_some_and(|low| low > 0.0),
                kduel_protocol::Better::Higher => comparison.high.is_some_and(|high| high < 0.0),
            };
            let more = comparison.exact.is_some() && comparison.change.is_some_and(|c| c > 0.0);
            comparison.primary && (worse || more)
        })
    };
    match (options.fail_on, analysis.worst) {
        (FailOn::Never, Verdict::Regression) => exit_code::DONE,
        (FailOn::Any, Verdict::Inconclusive | Verdict::Improvement | Verdict::NoChange)
            if any() =>
        {
            exit_code::REGRESSION
        }
        _ => analysis.exit_code(options.strict),
    }
}
