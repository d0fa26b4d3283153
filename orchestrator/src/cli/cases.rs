//! `kduel cases`, and what a run of a case says behind its report.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::report::{analyse_stored, emit, look};
use super::talk::tell;
use super::{CliError, profile};
use crate::analyse::profile::RunProfiles;
use crate::analyse::{Analysis, Judged, asked, judge};
use crate::collect::{StoredRun, list_runs};
use crate::config::{self, Case, DEFAULT_DOCUMENT, Environment};
use crate::exit_code;
use crate::fault::Failure;
use crate::plan::{Claim, Measure, Subject};
use crate::report::{Look, expectation_json, expectations};
use crate::text::{count, escape};

/// The format of `kduel cases --json`.
const CASES_FORMAT: &str = "kduel-cases/1";

/// Where cases are looked for.
const CASES_FOLDER: &str = "cases";

/// `kduel cases`.
#[derive(Debug, Args)]
#[command(after_help = "\
A case is a folder: kernels.yaml (what to run), patches/, claim.yaml (what a report claimed) and
expect.yaml (what must come out here). `kduel run FOLDER` runs it, says which expectations came out,
and exits with 0 if all did, else with 1. What is shown as found is that of the newest stored run of
each measure.

Examples:
  kduel cases
  kduel cases cases/task-classes
  kduel run cases/task-classes
  kduel run cases/task-classes --measure time --quick")]
pub struct CasesArgs {
    /// Only these folders; all in ./cases if none is named
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Print it for programs: kduel-cases/1
    #[arg(long)]
    json: bool,
}

/// Lists cases with their claims, expectations and what was found.
///
/// # Errors
///
/// A folder is no case, or something in it is wrong.
pub fn run(args: &CasesArgs, environment: &Environment) -> Result<u8, CliError> {
    let folders = match args.folders.is_empty() {
        true => all(environment)?,
        false => args.folders.iter().map(|named| environment.current_dir.join(named)).collect(),
    };
    let runs = stored(environment)?;
    let mut text = Vec::new();
    let mut values = Vec::new();
    for folder in &folders {
        let shown = folder.strip_prefix(&environment.current_dir).unwrap_or(folder);
        let shown = escape(&shown.to_string_lossy());
        if !folder.join(DEFAULT_DOCUMENT).is_file() {
            let title = format!("{shown} is no case: it has no {DEFAULT_DOCUMENT}");
            return Err(CliError::Unknown(title));
        }
        let case = config::load_case(folder, environment)?;
        let measured = MEASURES.map(|measure| Measured::of(measure, folder, &runs));
        text.push(described(&shown, &case, &measured));
        values.push(as_json(&shown, &case, &measured));
    }
    let json = || {
        let whole = json!({ "format": CASES_FORMAT, "cases": values });
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    };
    emit(&if args.json { json() } else { text.join("\n") })?;
    Ok(exit_code::DONE)
}

const MEASURES: [Measure; 2] = [Measure::Instructions, Measure::Time];

/// The folders in `cases/` that have a document, by name.
fn all(environment: &Environment) -> Result<Vec<PathBuf>, CliError> {
    let folder = environment.current_dir.join(CASES_FOLDER);
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join(DEFAULT_DOCUMENT).is_file())
        .collect();
    folders.sort();
    if folders.is_empty() {
        let title = format!(
            "there are no cases here: no folder in ./{CASES_FOLDER} has a {DEFAULT_DOCUMENT}"
        );
        return Err(CliError::NothingSelected(title));
    }
    Ok(folders)
}

/// The stored runs of cases, newest first.
fn stored(environment: &Environment) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let runs = list_runs(&environment.runs_dir())?.into_iter();
    Ok(runs.filter_map(|run| Some((run.info?.case?, run.path))).collect())
}

/// The newest run of a case by one measure.
struct Measured {
    measure: Measure,
    run: Option<(StoredRun, Analysis, RunProfiles)>,
}

impl Measured {
    fn of(measure: Measure, folder: &Path, runs: &[(PathBuf, PathBuf)]) -> Self {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let own = runs.iter().filter(|(case, _)| *case == folder);
        let newest = own
            .filter_map(|(_, path)| StoredRun::read(path).ok())
            .find(|run| run.plan.measure == measure && !run.records.is_empty());
        let run = newest.map(|run| {
            let analysis = analyse_stored(&run);
            let profiles = profile::after_run(&run, None);
            (run, analysis, profiles)
        });
        Self { measure, run }
    }

    fn word(&self) -> &'static str {
        match self.measure {
            Measure::Instructions => "exact",
            Measure::Time => "timed",
        }
    }

    fn judged<'c>(&self, case: &'c Case) -> Vec<Judged<'c>> {
        self.run.as_ref().map_or_else(Vec::new, |(run, analysis, profiles)| {
            judge(&run.plan, &case.expected, analysis, profiles)
        })
    }

    fn wanted(&self, case: &Case) -> usize {
        match self.measure {
            Measure::Instructions => case.expected.exact.len(),
            Measure::Time => case.expected.time.len(),
        }
    }
}

fn described(shown: &str, case: &Case, measured: &[Measured]) -> String {
    let report =
        case.report.as_deref().map_or_else(String::new, |text| format!(": {}", escape(text)));
    let mut out = format!("{shown}{report}\n");
    for (place, claim) in case.claims.values().flatten().enumerate() {
        let lead = if place == 0 { "claimed" } else { "" };
        out += &format!("  {lead:<8} {}\n", escape(&claimed(claim)));
    }
    for one in measured {
        let judged = one.judged(case);
        let (word, wanted) = (one.word(), one.wanted(case));
        let said = match &one.run {
            None if wanted == 0 => continue,
            None => format!("{}, not run yet", count(wanted, "expectation")),
            Some((run, ..)) => format!("{}, run {}", tally(&judged), run.info.reference()),
        };
        out += &format!("  {word:<8} {said}\n{}", expectations(&judged, "           ", look()));
    }
    out
}

fn claimed(claim: &Claim) -> String {
    format!("{} of {}: {:+.1} %", claim.metric, claim.side, claim.change * 100.0)
}

fn tally(judged: &[Judged<'_>]) -> String {
    let held = judged.iter().filter(|one| one.held).count();
    format!("{held} of {} came out", count(judged.len(), "expectation"))
}

fn as_json(shown: &str, case: &Case, measured: &[Measured]) -> Value {
    let claims = case.claims.iter().flat_map(|(experiment, claims)| {
        claims.iter().map(move |claim| {
            json!({
                "experiment": escape(experiment), "side": escape(&claim.side),
                "metric": escape(&claim.metric), "change": claim.change,
            })
        })
    });
    let mut value = json!({
        "folder": shown,
        "report": case.report.as_deref().map(escape),
        "claims": claims.collect::<Vec<_>>(),
    });
    for one in measured {
        let judged = one.judged(case);
        value[one.word()] = json!({
            "wanted": one.wanted(case),
            "run": one.run.as_ref().map(|(run, ..)| escape(&run.info.reference())),
            "found": judged.iter().map(expectation_json).collect::<Vec<_>>(),
        });
    }
    value
}

/// Says of a run of a case which expectations came out; gives the exit code that follows, or nothing
/// where nothing was expected. Talk goes to standard error where standard output is for programs.
///
/// # Errors
///
/// What the case expects cannot be read, or standard output not be written.
pub(super) fn conclude(
    stored: &StoredRun,
    analysis: &Analysis,
    json: bool,
    environment: &Environment,
) -> Result<Option<bool>, CliError> {
    let Some(folder) = &stored.info.case else { return Ok(None) };
    let case = config::load_case(folder, environment)?;
    let asked = asked(&stored.plan, &case.expected);
    if asked.is_empty() {
        return Ok(None);
    }
    let functions = asked.iter().any(|one| matches!(one.subject, Subject::Function(_)));
    let profiles = match functions {
        true => profile::after_run(stored, None),
        false => RunProfiles::default(),
    };
    let judged = judge(&stored.plan, &case.expected, analysis, &profiles);
    let name = folder.strip_prefix(&environment.current_dir).unwrap_or(folder);
    let head = format!("\n{}: {}\n", escape(&name.to_string_lossy()), tally(&judged));
    let text = |look: Look| format!("{head}{}", expectations(&judged, "  ", look));
    match json {
        true => tell(text(Look::default()).trim()),
        false => emit(&text(look()))?,
    }
    Ok(Some(judged.iter().all(|one| one.held)))
}
