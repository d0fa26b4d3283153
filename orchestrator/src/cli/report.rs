//! `kduel report`: what a stored run says.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::Path;

use clap::{Args, ValueEnum};

use crate::analyse::{Analysis, analyse};
use crate::collect::{RunRef, StoredRun};
use crate::fault::Failure;
use crate::report::{Look, Report, json, text};
use crate::text::count;

/// Show what a stored run says.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    pub run: RunRef,
    /// As what
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Inconclusive is no success: exit code 3
    #[arg(long)]
    pub strict: bool,
}

/// As what a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal
    Text,
    /// For programs: kduel-report/1
    Json,
}

/// Writes the report of a stored run to standard output.
///
/// # Errors
///
/// The run is not there or cannot be read, or standard output is broken.
pub fn run(args: &ReportArgs, runs_dir: &Path) -> Result<u8, Failure> {
    let stored = StoredRun::open(runs_dir, &args.run)?;
    let analysis = analyse_stored(&stored);
    emit(&render(&stored, &analysis, args.format, look()))?;
    Ok(analysis.exit_code(args.strict))
}

/// The analysis of a stored run, with a warning if its journal is damaged.
pub fn analyse_stored(stored: &StoredRun) -> Analysis {
    let mut analysis = analyse(&stored.plan, &stored.records);
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
pub fn render(stored: &StoredRun, analysis: &Analysis, format: Format, look: Look) -> String {
    let report = Report { info: &stored.info, plan: &stored.plan, analysis };
    match format {
        Format::Text => text(&report, look),
        Format::Json => json(&report),
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
        let text = render(&stored, &analysis, Format::Text, Look { width: 120, colour: false });
        // The planned look at eight pairs was not reached.
        assert!(text.starts_with("verdict: inconclusive\n"), "{text}");
        assert!(text.contains("+20.0 %"), "{text}");
        assert!(text.contains("note: 7 of 8 planned pairs of boots are complete"), "{text}");
        assert!(text.contains("note: journal.jsonl is used up to line 15"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&render(&stored, &analysis, Format::Json, look())).unwrap();
        assert_eq!(json["comparisons"][0]["pairs"], 7);
        assert_eq!(analysis.exit_code(true), 3);
    }
}
