//! `kduel compare`: sides of stored runs against each other.

use std::convert::Infallible;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use super::profile;
use super::report::{Format, deliver, look, render};
use crate::analyse::across::{
    Asked, Difference, Merged, Obstacle, analyse_across, differences, matches, merge,
};
use crate::analyse::profile::{RunProfiles, Terms};
use crate::collect::{RunRef, StoredRun};
use crate::config::Environment;
use crate::fault::{Failure, FailureClass};
use crate::report::Look;
use crate::text::{escape, nearest};

/// Compare sides of stored runs.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The first run's side is the base, the others are compared with it. Without a name it is the last side
of the first run, and of the others the one called alike, else their last. Their own bases, if they
are the same kernel with the same knobs in every run, are the control: where they moved, too, nothing
is decided. Boots of different runs are no pairs, so timed runs need more boots for the same answer
than one run with both sides.

Runs that differ in more than kernel and knobs are refused with everything that differs.

Examples:
  kduel compare @1 @0                  is today's patched better than yesterday's?
  kduel compare v1:patched v2:patched  sides of runs with these labels
  kduel compare @0:patched @0:dynmods  two candidates of one run
  kduel compare @1 @0 --despite host --format mail")]
pub struct CompareArgs {
    /// As for `report`, or the file of an exported run; with `:SIDE` behind it one side of it
    #[arg(value_name = "RUN[:SIDE]", required = true, num_args = 2..)]
    runs: Vec<RunSide>,
    /// The side of the first run
    #[arg(long, value_name = "NAME")]
    side: Option<String>,
    /// The side of the other runs
    #[arg(long, value_name = "NAME")]
    with: Option<String>,
    /// Go on although this differs, and say so in the report: host, accelerator, qemu, cpu, topology,
    /// parameters, kduel
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = waived)]
    despite: Vec<Obstacle>,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print the report as JSON
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write there instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Inconclusive is no success: exit code 3
    #[arg(long)]
    strict: bool,
}

/// A run and perhaps one of its sides, as the user wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunSide(String);

impl FromStr for RunSide {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl RunSide {
    /// Names of runs may have colons, too, so the whole is looked for first.
    fn open(&self, environment: &Environment) -> Result<Asked, Failure> {
        let open = |text: &str| {
            let Ok(reference) = text.parse::<RunRef>();
            StoredRun::open(&environment.runs_dir(), &reference)
        };
        match (open(&self.0), self.0.rsplit_once(':')) {
            (Err(error), Some((run, side))) if error.class == FailureClass::Usage => {
                Ok(Asked { run: open(run)?, side: Some(side.to_owned()) })
            }
            (opened, _) => Ok(Asked { run: opened?, side: None }),
        }
    }
}

fn waived(word: &str) -> Result<Obstacle, String> {
    let found = Obstacle::WAIVABLE.into_iter().find(|one| one.word() == word.trim());
    found.ok_or_else(|| {
        let words = Obstacle::WAIVABLE.map(Obstacle::word);
        let near = nearest(word, words).map(|near| format!("; did you mean {near}?"));
        format!("not one of {}{}", words.join(", "), near.unwrap_or_default())
    })
}

/// Writes what the sides of the runs come to.
///
/// # Errors
///
/// A run is not there, the runs must not be compared, or the report cannot be written.
pub fn run(args: &CompareArgs, environment: &Environment) -> Result<u8, Failure> {
    let format = if args.json { Format::Json } else { args.format };
    if matches!(format, Format::Folded | Format::Flamegraph) {
        let title = "call chains are of one run";
        return Err(Failure::new(FailureClass::Usage, title)
            .hint("`kduel report RUN --format folded` writes them"));
    }
    let mut asked = Vec::new();
    for (place, run) in args.runs.iter().enumerate() {
        let mut one = run.open(environment)?;
        let named = if place == 0 { &args.side } else { &args.with };
        one.side = one.side.or_else(|| named.clone());
        asked.push(one);
    }
    let mut merged = merged(&mut asked, &args.despite)?;
    let analysis = analyse_across(&merged);
    let terms = profile::terms(environment.groups.as_deref(), false, true)?;
    let profiles = profiles(&merged, &asked, &terms, format);
    let stored = StoredRun {
        path: PathBuf::new(),
        info: merged.info,
        plan: merged.plan,
        records: std::mem::take(&mut merged.records),
        cut: None,
        unpacked: None,
    };
    let look = if args.output.is_some() { Look::default() } else { look() };
    deliver(args.output.as_deref(), &render(&stored, &analysis, &profiles, format, look))?;
    Ok(analysis.exit_code(args.strict))
}

/// The runs as one, unless they differ in what the user did not allow.
fn merged(asked: &mut [Asked], despite: &[Obstacle]) -> Result<Merged, Failure> {
    let first = asked.first().map(|one| one.run.plan.measure);
    let alike = asked.iter().all(|one| Some(one.run.plan.measure) == first);
    let (found, notes) = match matches(asked) {
        // The workloads of a timed and an exact run need not fit, which then is not the point.
        Err(_) if !alike => (Vec::new(), Vec::new()),
        found => found?,
    };
    let differences = differences(asked, &found);
    if differences.iter().any(|one| !despite.contains(&one.obstacle)) {
        return Err(refused(asked, &differences, despite));
    }
    let mut used: Vec<Obstacle> = differences.iter().map(|one| one.obstacle).collect();
    used.dedup();
    let mut merged = merge(asked, &found, &used);
    merged.notes.extend(notes);
    let despite = differences.iter().map(|one| format!("despite {}: {one}", one.obstacle.word()));
    merged.notes.extend(despite);
    Ok(merged)
}

/// Everything that differs, as a table.
fn refused(asked: &[Asked], differences: &[Difference], despite: &[Obstacle]) -> Failure {
    let ids: Vec<&str> = asked.iter().map(|one| one.run.info.id.0.as_str()).collect();
    let title = format!("runs {} must not be compared", ids.join(" and "));
    let heads = ["", "differs", "wanted (first run)", "found"].map(str::to_owned);
    let rows = differences.iter().map(|one| {
        let allowed = despite.contains(&one.obstacle);
        let word = format!("{}{}", one.obstacle.word(), if allowed { " (allowed)" } else { "" });
        [word, one.what.clone(), one.wanted.clone(), one.found.clone()]
    });
    let rows: Vec<[String; 4]> =
        std::iter::once(heads).chain(rows).map(|row| row.map(|cell| escape(&cell))).collect();
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).filter(|n| *n <= 48).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    let failure =
        rows.iter().fold(Failure::new(FailureClass::Usage, title), |failure, [a, b, c, d]| {
            let [w, x, y] = widths;
            failure.detail(format!("{a:w$}  {b:x$}  {c:y$}  {d}"))
        });
    if differences.iter().any(|one| one.obstacle == Obstacle::Measure) {
        return failure.hint("instructions are no times: run one of them again with the other's");
    }
    let mut words: Vec<&str> = differences.iter().map(|one| one.obstacle.word()).collect();
    words.dedup();
    failure.hint(format!(
        "--despite {} compares them all the same, and the report says so",
        words.join(",")
    ))
}

fn profiles(merged: &Merged, asked: &[Asked], terms: &Terms, format: Format) -> RunProfiles {
    if matches!(format, Format::Json | Format::Csv) {
        return RunProfiles::default();
    }
    let origin = |record: &crate::collect::BootRecord| {
        let (run, boot) = merged.origin(record)?;
        Some((&asked[run].run, boot))
    };
    profile::profiles_from(&merged.plan, &merged.records, terms, &origin)
        .unwrap_or_else(|failure| profile::noted(&failure))
}
