//! `kduel runs`: what is stored, and what to do with it.

use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::analyse::count_pairs;
use crate::analyse::profile::RunProfiles;
use crate::collect::{
    KnownBoots, KnownSize, ListedRun, RunRef, StoredRun, find_run, list_runs, remove_run, set_label,
};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::Failure;
use crate::report::worst_word;
use crate::text::{count, escape};
use crate::units;

use super::report::{analyse_stored, emit};

/// List stored runs, newest first, or tidy them up.
#[derive(Debug, Clone, Args)]
pub struct RunsArgs {
    /// Lists if absent
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// What to do with stored runs.
#[derive(Debug, Clone, Subcommand)]
pub enum RunsCommand {
    /// Delete runs
    Rm {
        /// `@1`, an id or the start of one, a label, a folder
        #[arg(value_name = "RUN", required = true)]
        runs: Vec<RunRef>,
    },
    /// Delete old runs, but none that is going on or has a label, and the oldest results of exact boots
    /// that are kept so that the same boot need not be done again
    Gc {
        /// Keep this many of the newest [default without --older-than: 20]
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
        /// Delete only what is older: 12h, 30d, 4w
        #[arg(long, value_name = "AGE", value_parser = age)]
        older_than: Option<Duration>,
        /// Keep at most so much of the results of exact boots
        #[arg(long, value_name = "SIZE", value_parser = units::parse_size, default_value = "1G")]
        known: u64,
    },
    /// Give a run a name; an empty one takes it away
    Label {
        /// `@1`, an id or the start of one, a label, a folder
        #[arg(value_name = "RUN")]
        run: RunRef,
        /// The name
        text: String,
    },
}

/// Runs kept by `gc` if nothing is said.
const KEEP: usize = 20;

/// Lists the stored runs, or does what `args` say.
///
/// # Errors
///
/// A reference fits no run or several, a run is going on, or the files do not cooperate.
pub fn run(args: &RunsArgs, environment: &Environment) -> Result<u8, Failure> {
    let runs_dir = &environment.runs_dir();
    let known = KnownBoots::new(environment.known_dir());
    let said = match &args.command {
        None => table(&list_runs(runs_dir)?, crate::clock::now()) + &known_line(&known)?,
        Some(RunsCommand::Rm { runs }) => remove(runs_dir, runs)?,
        Some(RunsCommand::Gc { keep, older_than, known: most }) => {
            let runs = gc(runs_dir, *keep, *older_than)?;
            runs + &forget(&known, *most)?
        }
        Some(RunsCommand::Label { run, text }) => {
            set_label(&find_run(runs_dir, run)?, text)?;
            String::new()
        }
    };
    emit(&said)?;
    Ok(exit_code::DONE)
}

/// Nothing where nothing is kept.
fn known_line(known: &KnownBoots) -> Result<String, Failure> {
    let KnownSize { boots, bytes: size } = known.size()?;
    let line = format!(
        "\nkept of exact boots, so that none is done twice: {}, {}\n",
        count(boots, "boot"),
        bytes(size)
    );
    Ok(if boots == 0 { String::new() } else { line })
}

fn forget(known: &KnownBoots, most: u64) -> Result<String, Failure> {
    let gone = known.shrink(most)?;
    let left = known.size()?;
    Ok(format!(
        "removed results of {}, {}; kept {}, {}\n",
        count(gone.boots, "exact boot"),
        bytes(gone.bytes),
        count(left.boots, "exact boot"),
        bytes(left.bytes)
    ))
}

/// All references are looked up before the first run is deleted.
fn remove(runs_dir: &Path, references: &[RunRef]) -> Result<String, Failure> {
    let mut paths = Vec::new();
    for reference in references {
        let path = find_run(runs_dir, reference)?;
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let mut said = String::new();
    for path in &paths {
        let run = ListedRun::at(path);
        remove_run(&run)?;
        said.push_str(&format!("removed {}, {}\n", run.id, bytes(run.bytes)));
    }
    Ok(said)
}

fn gc(
    runs_dir: &Path,
    keep: Option<usize>,
    older_than: Option<Duration>,
) -> Result<String, Failure> {
    let keep = keep.unwrap_or_else(|| if older_than.is_some() { 0 } else { KEEP });
    let now = crate::clock::now();
    let (mut removed, mut freed) = (0, 0);
    for run in list_runs(runs_dir)?.iter().skip(keep) {
        let old = older_than.is_none_or(|age| run.age(now).is_some_and(|found| found > age));
        if old && !run.running && run.label().is_none() {
            remove_run(run)?;
            removed += 1;
            freed += run.bytes;
        }
    }
    Ok(format!("removed {}, {}\n", count(removed, "run"), bytes(freed)))
}

const COLUMNS: [&str; 8] =
    ["AGE", "RUN", "LABEL", "EXPERIMENTS", "SIDES", "WORST", "PAIRS", "SIZE"];

fn table(runs: &[ListedRun], now: jiff::Timestamp) -> String {
    if runs.is_empty() {
        return "no runs yet; `kduel run` makes one\n".to_owned();
    }
    let mut rows = vec![COLUMNS.map(str::to_owned)];
    rows.extend(runs.iter().map(|run| row(run, now)));
    let mut widths = [0; COLUMNS.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(run: &ListedRun, now: jiff::Timestamp) -> [String; COLUMNS.len()] {
    let since = run.age(now).map_or_else(|| "?".into(), short);
    let label = run.label().map(escape).unwrap_or_default();
    let size = bytes(run.bytes);
    let Ok(stored) = StoredRun::read(&run.path) else {
        let why = if run.running { "starting" } else { "unreadable" };
        return [
            since,
            run.id.0.clone(),
            label,
            "-".into(),
            "-".into(),
            why.into(),
            "-".into(),
            size,
        ];
    };
    let list = |names: Vec<&str>| shorten(&escape(&names.join(",")));
    let experiments = list(stored.plan.experiments.iter().map(|e| e.name.as_str()).collect());
    let mut sides: Vec<&str> = Vec::new();
    for side in stored.plan.experiments.iter().flat_map(|experiment| &experiment.sides) {
        if !sides.contains(&side.name.as_str()) {
            sides.push(&side.name);
        }
    }
    let analysis = analyse_stored(&stored);
    let pairs = count_pairs(&stored.plan, &stored.records, &analysis.comparisons);
    let worst = match run.running {
        true => "running".to_owned(),
        false => worst_word(&analysis, &RunProfiles::default()),
    };
    let pairs = format!("{}/{}", pairs.done, pairs.planned);
    [since, run.id.0.clone(), label, experiments, list(sides), worst, pairs, size]
}

fn shorten(text: &str) -> String {
    const LONGEST: usize = 24;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(LONGEST - 1).collect();
    format!("{kept}…")
}

const AGES: [(u64, &str); 5] = [(7 * 86_400, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")];

/// `3d`, `12m`.
fn short(age: Duration) -> String {
    let seconds = age.as_secs();
    // Weeks only where days become long numbers.
    let fitting = AGES.iter().skip(usize::from(seconds < 8 * 7 * 86_400));
    let fitting = fitting.clone().find(|(scale, _)| seconds >= *scale);
    fitting.map_or_else(|| "0s".into(), |(scale, unit)| format!("{}{unit}", seconds / scale))
}

fn age(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = AGES.iter().find(|(_, unit)| *unit == &text[digits.len()..]);
    let seconds =
        digits.parse::<u64>().ok().zip(scale).and_then(|(n, (scale, _))| n.checked_mul(*scale));
    seconds.map(Duration::from_secs).ok_or_else(|| "write an age as 12h, 30d or 4w".into())
}

fn bytes(size: u64) -> String {
    let steps = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fitting = steps.iter().find(|(scale, _)| size >= *scale);
    match fitting {
        Some((scale, unit)) => format!("{:.1} {unit}", size as f64 / *scale as f64),
        None => format!("{size} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Accel;
    use crate::collect::testing::{pairs, plan};
    use crate::collect::{RunFolder, RunInfo};
    use crate::fault::FailureClass;

    fn stored(runs_dir: &Path, label: Option<&str>) -> String {
        let mut info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
        info.label = label.map(str::to_owned);
        let mut folder = RunFolder::create(runs_dir, &plan(&["base", "patched"], 8), info).unwrap();
        for record in pairs("patched", &[1.2; 8]) {
            folder.append(&record).unwrap();
        }
        folder.id().0
    }

    #[test]
    fn the_list_says_what_there_is() {
        let runs = tempfile::tempdir().unwrap();
        assert!(
            table(&list_runs(runs.path()).unwrap(), crate::clock::now()).starts_with("no runs")
        );
        stored(runs.path(), Some("a\u{1b}[2Jb"));
        std::fs::create_dir(runs.path().join("20200101-000000-0000")).unwrap();
        let listed = list_runs(runs.path()).unwrap();
        let now = listed[0].info.as_ref().unwrap().started + jiff::SignedDuration::from_mins(125);
        let text = table(&listed, now);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], COLUMNS);
        let id = listed[0].id.0.as_str();
        assert_eq!(
            lines[1][..7],
            ["2h", id, "a\\x1b[2Jb", "fork", "base,patched", "regression", "8/8"]
        );
        assert_eq!(lines[2][4], "unreadable");
    }

    #[test]
    fn exact_runs_are_listed_in_words_of_work() {
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/profile/fork-exit");
        let runs = tempfile::tempdir().unwrap();
        let folder = runs.path().join("20261130-201959-0000");
        std::fs::create_dir(&folder).unwrap();
        for name in ["run.json", "plan.json", "journal.jsonl"] {
            std::fs::copy(fixture.join(name), folder.join(name)).unwrap();
        }
        let text = table(&list_runs(runs.path()).unwrap(), crate::clock::now());
        assert!(text.contains("more instructions"), "{text}");
    }

    #[test]
    fn gc_keeps_the_newest_the_labelled_and_the_running() {
        let runs = tempfile::tempdir().unwrap();
        let labelled = stored(runs.path(), Some("keep me"));
        stored(runs.path(), None);
        let info = RunInfo::new(Accel::Tcg, Vec::new());
        let running = RunFolder::create(runs.path(), &plan(&["base", "x"], 1), info).unwrap();
        let newest = stored(runs.path(), None);
        let said = gc(runs.path(), Some(1), None).unwrap();
        assert!(said.starts_with("removed 1 run, "), "{said}");
        let left: Vec<String> =
            list_runs(runs.path()).unwrap().into_iter().map(|run| run.id.0).collect();
        assert_eq!(left, [newest, running.id().0, labelled]);
        let young = gc(runs.path(), None, Some(Duration::from_secs(3600))).unwrap();
        assert_eq!(young, "removed 0 runs, 0 B\n");
    }

    #[test]
    fn what_is_kept_of_exact_boots_is_told_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let known = KnownBoots::new(folder.path().to_owned());
        assert_eq!(known_line(&known).unwrap(), "");
        std::fs::write(folder.path().join("ab.json"), [0; 1024]).unwrap();
        std::fs::write(folder.path().join("ab.counts"), [0; 1024]).unwrap();
        assert!(known_line(&known).unwrap().ends_with("twice: 1 boot, 2.0 KiB\n"));
        let kept = "removed results of 0 exact boots, 0 B; kept 1 exact boot, 2.0 KiB\n";
        assert_eq!(forget(&known, 2048).unwrap(), kept);
        let gone = "removed results of 1 exact boot, 2.0 KiB; kept 0 exact boots, 0 B\n";
        assert_eq!(forget(&known, 2047).unwrap(), gone);
    }

    #[test]
    fn rm_takes_nothing_away_if_one_name_is_wrong() {
        let runs = tempfile::tempdir().unwrap();
        let id = stored(runs.path(), None);
        let wrong = [RunRef::Named(id.clone()), RunRef::Named("nothing".into())];
        assert_eq!(remove(runs.path(), &wrong).unwrap_err().class, FailureClass::Usage);
        assert_eq!(list_runs(runs.path()).unwrap().len(), 1);
        let said = remove(runs.path(), &[RunRef::default()]).unwrap();
        assert!(said.starts_with(&format!("removed {id}, ")), "{said}");
        assert!(list_runs(runs.path()).unwrap().is_empty());
    }

    #[test]
    fn ages_and_sizes() {
        assert_eq!(age("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert!(age("30").is_err() && age("d").is_err() && age("99999999999999w").is_err());
        assert_eq!(short(Duration::from_secs(90)), "1m");
        assert_eq!(short(Duration::from_secs(20 * 86_400)), "20d");
        assert_eq!(bytes(1536), "1.5 KiB");
    }
}
