//! What reading a large run, analysing it and writing every report takes. Arguments: `make FOLDER
//! SAMPLES` writes a run, always the same; `measure RUN` measures, and fails beyond the bounds.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "figures are what it is for")]

use std::path::Path;
use std::process::ExitCode;

use kduel::analyse::profile::RunProfiles;
use kduel::analyse::{Analysis, analyse, points};
use kduel::boot::Accel;
use kduel::clock::Stopwatch;
use kduel::collect::{BootOutcome, BootRecord, BootResult, RunFolder, RunInfo, StoredRun};
use kduel::fault::{Failure, FailureClass};
use kduel::id::BootId;
use kduel::plan::random::Random;
use kduel::plan::{Block, Measure, Plan};
use kduel::report::{
    Beside, Look, Report, changelog, charted, csv, html, json, junit, ktap, mail, text,
};
use kduel_protocol::{Better, Sample};

/// A plan of two sides and one workload, to be made larger.
const PLAN: &str = include_str!("../../orchestrator/tests/fixtures/profile/fork-exit/plan.json");

const PAIRS: usize = 30;
const SERIES: u32 = 20;

/// Seconds for all, and the most memory.
const SECONDS: f64 = 2.0;
const MEBIBYTES: f64 = 300.0;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["make", folder, samples] => match samples.parse() {
            Ok(samples) => make(Path::new(folder), samples).map(|()| true),
            Err(error) => Err(internal(&error)),
        },
        ["measure", run] => measure(Path::new(run)),
        _ => {
            eprintln!("usage: analysis make FOLDER SAMPLES | measure RUN");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn internal(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(FailureClass::Internal, error.to_string())
}

fn plan(iterations: u32) -> Result<Plan, Failure> {
    let mut plan: Plan = serde_json::from_str(PLAN).map_err(|error| internal(&error))?;
    plan.measure = Measure::Time;
    for experiment in &mut plan.experiments {
        experiment.exact = None;
        let first = experiment.trials[0].clone();
        let trial = |id: u32| {
            let mut trial = first.clone();
            (trial.id, trial.iterations) = (id, iterations);
            trial.workload = "pipe-roundtrip".to_owned();
            trial.params = [("bytes".to_owned(), (id + 2).into())].into();
            trial
        };
        experiment.trials = (0..SERIES).map(trial).collect();
        let block = |index: usize| Block {
            index,
            order: if index.is_multiple_of(2) { vec![0, 1] } else { vec![1, 0] },
            layout_seed: 1,
            cpu: None,
            sentinel: None,
        };
        experiment.blocks = (0..PAIRS).map(block).collect();
    }
    Ok(plan)
}

/// Boots differ by 2 %, iterations by 1 %, sides not at all.
fn make(folder: &Path, samples: usize) -> Result<(), Failure> {
    let boots = 2 * PAIRS * SERIES as usize;
    let iterations = u32::try_from(samples.div_ceil(boots)).map_err(|error| internal(&error))?;
    let plan = plan(iterations)?;
    let info = RunInfo::new(Accel::Tcg, vec!["kduel".to_owned()]);
    let mut run = RunFolder::create(folder, &plan, info)?;
    let mut random = Random::new(1, "analysis");
    let mut noise = |part: f64| {
        let uniform = |word: u64| (word >> 11) as f64 / (1_u64 << 53) as f64;
        1.0 + part * (uniform(random.draw()) + uniform(random.draw()) - 1.0)
    };
    for experiment in &plan.experiments {
        for block in &experiment.blocks {
            for (slot, side) in block.order.iter().map(|side| &experiment.sides[*side]).enumerate()
            {
                let mut result = BootResult { idle: true, ..BootResult::default() };
                result.facts.release.clone_from(&side.name);
                for trial in 0..SERIES {
                    let level = 10_000.0 * noise(0.05);
                    result.samples.extend((0..iterations).map(|iteration| Sample {
                        trial,
                        iteration,
                        metric: "time".into(),
                        unit: "ns".into(),
                        better: Better::Lower,
                        value: level * noise(0.02),
                        ops: 1000,
                    }));
                }
                run.append(&BootRecord {
                    boot: BootId::new(&experiment.name, block.index, &side.name, 0),
                    experiment: experiment.name.clone(),
                    side: side.name.clone(),
                    block: block.index,
                    attempt: 0,
                    slot,
                    sentinel: false,
                    started: Default::default(),
                    ready_ms: Some(1000),
                    first_sample_ms: Some(1200),
                    took_ms: 5000,
                    accel: Accel::Tcg,
                    exact: None,
                    placement: None,
                    outcome: BootOutcome::Completed(Box::new(result)),
                })?;
            }
        }
    }
    println!("{}", run.path().display());
    Ok(())
}

/// Whether it stays within the bounds.
fn measure(path: &Path) -> Result<bool, Failure> {
    let whole = Stopwatch::start();
    println!("{:<10} {:>8} {:>10} {:>9}", "", "seconds", "bytes", "peak MiB");
    let stored = timed("read", || StoredRun::read(path), |_| 0)?;
    let samples: usize = stored.records.iter().map(samples).sum();
    let analysis = timed("analyse", || Ok(analyse(&stored.plan, &stored.records)), |_| 0)?;
    let profiles = RunProfiles::default();
    let report =
        Report { info: &stored.info, plan: &stored.plan, analysis: &analysis, profiles: &profiles };
    type Format<'a> = (&'static str, &'a dyn Fn() -> String);
    let formats: [Format<'_>; 8] = [
        ("text", &|| text(&report, Look::default())),
        ("html", &|| html(&report, &beside(&stored, &analysis))),
        ("json", &|| json(&report)),
        ("csv", &|| csv(&report)),
        ("mail", &|| mail(&report, &stored.records)),
        ("changelog", &|| changelog(&report)),
        ("junit", &|| junit(&report)),
        ("ktap", &|| ktap(&report)),
    ];
    for (name, write) in formats {
        timed(name, || Ok(write()), String::len)?;
    }
    let (seconds, peak) = (whole.elapsed().as_secs_f64(), peak());
    println!("{:<10} {seconds:>8.3} {:>10} {peak:>9.0}", "all", "");
    println!("{samples} samples; at most {SECONDS} s and {MEBIBYTES} MiB");
    Ok(seconds <= SECONDS && peak <= MEBIBYTES)
}

/// The charts' points, as a page has them.
fn beside(stored: &StoredRun, analysis: &Analysis) -> Beside {
    let charted = charted(analysis).into_iter();
    let points = charted
        .map(|place| (place, points(&stored.plan, &stored.records, &analysis.comparisons[place])));
    Beside { points: points.collect(), ..Beside::default() }
}

fn samples(record: &BootRecord) -> usize {
    match &record.outcome {
        BootOutcome::Completed(result) => result.samples.len(),
        BootOutcome::Failed(_) => 0,
    }
}

fn timed<T>(
    name: &str,
    work: impl FnOnce() -> Result<T, Failure>,
    bytes: impl Fn(&T) -> usize,
) -> Result<T, Failure> {
    let watch = Stopwatch::start();
    let made = work()?;
    let seconds = watch.elapsed().as_secs_f64();
    println!("{name:<10} {seconds:>8.3} {:>10} {:>9.0}", bytes(&made), peak());
    Ok(made)
}

/// The most memory so far, in MiB; of a host that does not tell, nothing.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib / 1024.0)
}
