//! `kduel report`: what a stored run says.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::talk::tell;
use super::{chains, page, profile};
use crate::analyse::profile::RunProfiles;
use crate::analyse::{Analysis, analyse, sampled};
use crate::collect::{RunRef, StoredRun};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::plan::Measure;
use crate::report::{
    Beside, Look, Report, changelog, csv, diffprofile, flame_graph, folded, html, json, junit,
    ktap, mail, regzbot, sampled_profile, text,
};
use crate::text::{count, escape};

/// Show what a stored run says.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  kduel report                                   the latest run, for a terminal
  kduel report @1 --format json                  the one before, for programs
  kduel report --format html --output fork       fork/index.html, and the executed code of the functions
                                                 that matter in fork/annotate/, linked from their rows
  kduel report --format html --output fork.html  one file that can be mailed; it has all but the code")]
pub struct ReportArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    pub run: RunRef,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Which side a flame graph compares with the base; the first if absent
    #[arg(long, value_name = "SIDE")]
    pub side: Option<String>,
    /// Write there instead of standard output. A page (html) is one file if the name ends in .html,
    /// else a folder with the executed code of functions beside it
    #[arg(short, long, value_name = "FILE or FOLDER")]
    pub output: Option<PathBuf>,
    /// Inconclusive is no success: exit code 3
    #[arg(long)]
    pub strict: bool,
    /// Let every function be a row of its own, however plainly two are the same
    #[arg(long)]
    pub no_fold: bool,
    /// Groups of functions to put before those that come along [default: groups.yaml in the
    /// configuration folder]
    #[arg(long, value_name = "FILE")]
    pub groups: Option<PathBuf>,
    /// With a mail: a line for the regression tracker, with the commits the change came between or the
    /// one it came with [example: v6.1..v6.12]
    #[arg(long, value_name = "RANGE", value_parser = commits)]
    pub regzbot: Option<String>,
}

/// What git takes for a commit or a range: one word of a line that a machine reads.
fn commits(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/^~".contains(c);
    if text.is_empty() || text.len() > 120 || !text.chars().all(plain) {
        return Err("not a commit or a range of commits, as v6.1..v6.12".to_owned());
    }
    Ok(text.to_owned())
}

/// As what a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Text,
    /// A page for a browser that needs no network and nothing else
    Html,
    /// For programs: kduel-report/1
    Json,
    /// For a commit message: at most 12 lines of 72 columns
    Changelog,
    /// For a mailing list: plain ASCII of 75 columns; sends nothing
    Mail,
    /// One row for each comparison
    Csv,
    /// For continuous integration: XML as of JUnit
    Junit,
    /// The kernel's test protocol
    Ktap,
    /// Every function, candidate minus base, worst first; of exact runs
    Diffprofile,
    /// Call chains of an exact run, one line for each chain and side: instructions per operation
    Folded,
    /// Call chains as a differential flame graph: SVG
    Flamegraph,
}

/// Writes the report of a stored run to standard output or to where it is wanted.
///
/// # Errors
///
/// The run is not there or cannot be read, or the report cannot be written.
pub fn run(args: &ReportArgs, environment: &Environment) -> Result<u8, Failure> {
    if args.regzbot.is_some() && args.format != Format::Mail {
        let title = "--regzbot goes with a mail only";
        return Err(Failure::new(FailureClass::Usage, title).hint("add --format mail"));
    }
    let stored = StoredRun::open(&environment.runs_dir(), &args.run)?;
    if matches!(args.format, Format::Folded | Format::Flamegraph) {
        return show_chains(args, &stored);
    }
    let analysis = analyse_stored(&stored);
    let file = args.groups.as_deref().or(environment.groups.as_deref());
    let terms = profile::terms(file, args.groups.is_some(), !args.no_fold)?;
    let profiles = match args.format {
        Format::Json | Format::Csv | Format::Folded | Format::Flamegraph => RunProfiles::default(),
        Format::Text
        | Format::Html
        | Format::Changelog
        | Format::Mail
        | Format::Junit
        | Format::Ktap => profile::profiles_or_note(&stored, &terms),
        Format::Diffprofile => profile::profiles(&stored, &terms)?,
    };
    if args.format == Format::Html {
        show_page(args, &stored, &analysis, &profiles)?;
    } else {
        let look = if args.output.is_some() { Look::default() } else { look() };
        let mut page = render(&stored, &analysis, &profiles, args.format, look);
        page.extend(args.regzbot.as_deref().map(regzbot));
        deliver(args.output.as_deref(), &page)?;
    }
    Ok(analysis.exit_code(args.strict))
}

/// One file, or a folder with the code of functions.
fn show_page(
    args: &ReportArgs,
    stored: &StoredRun,
    analysis: &Analysis,
    profiles: &RunProfiles,
) -> Result<(), Failure> {
    let is_file =
        |path: &Path| path.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    let folder = args.output.as_deref().filter(|path| !is_file(path));
    let (index, pages) = page::page(stored, analysis, profiles, folder.is_none())?;
    let Some(folder) = folder else { return deliver(args.output.as_deref(), &index) };
    page::write(folder, &index, &pages)?;
    let code = count(pages.len(), "function");
    tell(&format!("{} and the code of {code}", folder.join("index.html").display()));
    Ok(())
}

/// To the file that is wanted, else to standard output.
pub(super) fn deliver(output: Option<&Path>, text: &str) -> Result<(), Failure> {
    output.map_or_else(|| emit(text), |path| page::file(path, text))
}

/// What is not a chain is told on standard error, so that what reads chains reads nothing else.
fn show_chains(args: &ReportArgs, stored: &StoredRun) -> Result<u8, Failure> {
    let workloads = chains::of_run(stored)?;
    for each in &workloads {
        // Samples have their chains from the kernel itself.
        for (side, sums) in each.sides.iter().filter(|_| each.counted == "instructions") {
            tell(&format!("{}, {side}: {}", each.workload, sums.followed()));
        }
    }
    let output = if args.format == Format::Folded {
        let counted = workloads.first().map_or("instructions", |each| each.counted);
        tell(&format!(
            "{counted} per operation, in the function itself; own work and all beside it"
        ));
        folded(&workloads)
    } else {
        let sides = workloads.iter().flat_map(|each| each.sides.iter().skip(1));
        let mut names = sides.map(|(side, _)| side.as_str());
        let compared = match &args.side {
            Some(wanted) => names.find(|side| side == wanted),
            None => names.next(),
        };
        let compared = compared.ok_or_else(|| {
            Failure::new(FailureClass::Usage, "the run has no such side to compare with the base")
        })?;
        let graph = flame_graph(&workloads, compared).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("failed to draw a flame graph: {error}"))
        })?;
        graph.svg
    };
    deliver(args.output.as_deref(), &escape_lines(&output))?;
    Ok(exit_code::DONE)
}

fn escape_lines(text: &str) -> String {
    text.lines().flat_map(|line| [escape(line), "\n".to_owned()]).collect()
}

/// The analysis of a stored run, with a warning if its journal is damaged.
pub fn analyse_stored(stored: &StoredRun) -> Analysis {
    let mut analysis = analyse(&stored.plan, &stored.records);
    analysis.warnings.extend(stored.info.ended.iter().cloned());
    analysis.warnings.extend(crate::report::spoilt(&stored.info, &stored.plan));
    if let Some(cut) = &stored.cut {
        let (line, bytes) =
            (cut.line, count(usize::try_from(cut.bytes).unwrap_or(usize::MAX), "byte"));
        analysis.warnings.push(format!(
            "journal.jsonl is used up to line {}, {bytes} behind it are not: {}",
            line - 1,
            cut.reason
        ));
    }
    analysis
}

/// The report as one string, with a newline at its end.
pub fn render(
    stored: &StoredRun,
    analysis: &Analysis,
    profiles: &RunProfiles,
    format: Format,
    look: Look,
) -> String {
    let report = Report { info: &stored.info, plan: &stored.plan, analysis, profiles };
    match format {
        Format::Diffprofile if stored.plan.measure == Measure::Time => {
            sampled_profile(&sampled(&stored.plan, &stored.records))
        }
        Format::Diffprofile => diffprofile(&report),
        Format::Text => text(&report, look),
        Format::Html => html(&report, &Beside::default()),
        Format::Changelog => changelog(&report),
        Format::Mail => mail(&report, &stored.records),
        Format::Csv => csv(&report),
        Format::Junit => junit(&report),
        Format::Ktap => ktap(&report),
        // The other formats are made of counts, not of the analysis.
        Format::Json | Format::Folded | Format::Flamegraph => json(&report),
    }
}

/// What standard output can show. `NO_COLOR` is obeyed.
pub fn look() -> Look {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return Look::default();
    }
    #[expect(clippy::disallowed_methods, reason = "the command line may read the environment")]
    let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = rustix::termios::tcgetwinsize(&output).map_or(0, |size| size.ws_col);
    let width = if columns == 0 { 80 } else { usize::from(columns).clamp(60, 160) };
    Look { width, colour: !no_colour }
}

/// Writes to standard output. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
///
/// Standard output cannot be written for another reason.
pub fn emit(text: &str) -> Result<(), Failure> {
    let mut output = std::io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::host_io("write", Path::new("standard output"), &error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::Accel;
    use crate::collect::testing::{pairs, plan};
    use crate::collect::{RunFolder, RunInfo};

    #[test]
    fn a_damaged_journal_is_reported_up_to_the_damage() {
        let runs = tempfile::tempdir().unwrap();
        let info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
        let mut folder =
            RunFolder::create(runs.path(), &plan(&["base", "patched"], 8), info).unwrap();
        for record in pairs("patched", &[1.2; 8]) {
            folder.append(&record).unwrap();
        }
        let journal = folder.path().join("journal.jsonl");
        drop(folder);
        let bytes = std::fs::read(&journal).unwrap();
        std::fs::write(&journal, &bytes[..bytes.len() - 3]).unwrap();
        let stored = StoredRun::open(runs.path(), &RunRef::default()).unwrap();
        let analysis = analyse_stored(&stored);
        let none = RunProfiles::default();
        let render = |format, look| render(&stored, &analysis, &none, format, look);
        let text = render(Format::Text, Look { width: 120, colour: false });
        // The planned look at eight pairs was not reached.
        assert!(text.starts_with("verdict: inconclusive\n"), "{text}");
        assert!(text.contains("+20.0 %"), "{text}");
        assert!(text.contains("note: 7 of 8 planned pairs of boots are complete"), "{text}");
        assert!(text.contains("note: journal.jsonl is used up to line 15"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&render(Format::Json, look())).unwrap();
        assert_eq!(json["comparisons"][0]["pairs"], 7);
        assert_eq!(analysis.exit_code(true), 3);
    }

    #[test]
    fn a_real_exact_run_as_a_mail_and_as_a_changelog() {
        let fixture =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/profile/fork-exit");
        let stored = StoredRun::read(&fixture).unwrap();
        let terms = profile::terms(None, false, true).unwrap();
        let profiles = profile::profiles(&stored, &terms).unwrap();
        let analysis = analyse_stored(&stored);
        let formats = [Format::Changelog, Format::Mail, Format::Csv, Format::Junit, Format::Ktap];
        let parts = formats.map(|f| render(&stored, &analysis, &profiles, f, Look::default()));
        assert!(parts[0].lines().count() <= 12 && parts[0].lines().all(|line| line.len() <= 72));
        assert!(parts[1].lines().all(|line| line.len() <= 75));
        insta::assert_snapshot!(parts.join("\n==== next\n"));
    }

    #[test]
    fn a_range_of_commits_is_one_word() {
        assert_eq!(commits("v6.1..v6.12").as_deref(), Ok("v6.1..v6.12"));
        for odd in ["", "v6.1 v6.2", "a\n#regzbot fix: b", "\u{1b}[2J"] {
            assert!(commits(odd).is_err(), "{odd:?}");
        }
    }
}
