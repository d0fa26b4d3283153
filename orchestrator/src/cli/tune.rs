//! `kduel tune`: the settings of the host that `kduel doctor` complains about and that files change.

use std::path::{Path, PathBuf};

use super::args::AccelArg;
use super::talk::tell;
use super::{CliError, accelerator, report};
use crate::boot::Accel;
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::host::examine::{State, examine};
use crate::host::files::HostFiles;
use crate::host::tune::{self, Change, Pending, SETTINGS, Setting, Tuner, Undo, UndoFile};
use crate::text;

/// `kduel tune`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sudo kduel tune apply --dry-run    what `kduel doctor` calls worse and a file can change
  sudo kduel tune apply boost smt    these two
  sudo kduel tune undo               all as it was before

Old values are written to disk before anything is changed. A reboot of the host undoes all, too.")]
pub struct TuneArgs {
    #[command(subcommand)]
    action: Action,
    /// Change the host whose files are below this folder.
    #[arg(long, hide = true, global = true, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Change settings: those named, or those that are worse here.
    Apply {
        /// governor, boost, thp, ksm, numa-balancing, halt-poll, smt.
        #[arg(value_name = "WHAT")]
        what: Vec<String>,
        /// Only say what would be changed.
        #[arg(long)]
        dry_run: bool,
    },
    /// Restore what `apply` changed.
    Undo,
    /// Say what is changed, and what could be.
    Status,
}

/// Changes, restores or tells.
///
/// # Errors
///
/// A setting that is not there, no rights, or a file that cannot be changed.
pub fn run(args: &TuneArgs, environment: &Environment) -> Result<u8, CliError> {
    let files = HostFiles::new(&args.root);
    let tuner = Tuner::new(files.clone(), UndoFile::new(&environment.tune_file()));
    let text = match &args.action {
        Action::Apply { what, dry_run } => {
            let changes = wanted(what, &files, environment)?;
            if !dry_run && !changes.is_empty() {
                need_root(&args.root, "apply")?;
                discard_forgotten(&tuner)?;
                tuner.apply(&changes)?;
            }
            applied(&changes, *dry_run)
        }
        Action::Undo => {
            if let Pending::Changed(_) = tuner.pending()? {
                need_root(&args.root, "undo")?;
            }
            discard_forgotten(&tuner)?;
            undone(&tuner.undo()?)
        }
        Action::Status => status(&tuner, &files)?,
    };
    report::emit(&text)?;
    Ok(exit_code::DONE)
}

/// Says once, before a command that measures, what is changed; never in its way. What an `apply` that
/// was killed had begun is undone.
pub fn remind(environment: &Environment) {
    let tuner = Tuner::new(HostFiles::new(Path::new("/")), UndoFile::new(&environment.tune_file()));
    match tuner.pending() {
        Ok(Pending::Nothing) => {}
        Ok(Pending::Changed(undo)) if undo.unfinished && is_root() => undo_crashed(&tuner, &undo),
        Ok(Pending::Changed(undo)) => {
            let how = if undo.unfinished { "were about to be changed" } else { "are changed" };
            let names = names(&undo);
            tell(&format!(
                "settings of this host {how} ({names}): `kduel tune undo` restores them"
            ));
        }
        // Others cannot remove the file, and what it says is of no use to them.
        Ok(Pending::Forgotten(_)) if !is_root() => {}
        Ok(Pending::Forgotten(_)) => {
            if let Err(failure) = discard_forgotten(&tuner) {
                tell(&format!("kduel: {failure}"));
            }
        }
        Err(failure) => tell(&format!("kduel: {failure}")),
    }
}

/// Restores what an `apply` that never came to its end may have changed. One that is at it still
/// holds the lock.
fn undo_crashed(tuner: &Tuner, undo: &Undo) {
    let names = names(undo);
    tell(&match tuner.undo() {
        Ok(_) => format!(
            "kduel was stopped while it changed settings of this host ({names}): all are restored"
        ),
        Err(failure) => format!("kduel: {failure}"),
    });
}

fn discard_forgotten(tuner: &Tuner) -> Result<(), Failure> {
    let Pending::Forgotten(undo) = tuner.pending()? else { return Ok(()) };
    tuner.forget()?;
    let names = names(&undo);
    tell(&format!("the host was booted again since its settings were changed ({names}): no undo"));
    Ok(())
}

fn names(undo: &Undo) -> String {
    text::escape(&undo.settings().join(", "))
}

/// The changes of the settings that are named, or of all that are worse here.
fn wanted(
    what: &[String],
    files: &HostFiles,
    environment: &Environment,
) -> Result<Vec<Change>, CliError> {
    if what.is_empty() {
        let accel = Qemu::find(None, &environment.path).map_or(Accel::Tcg, |qemu| {
            accelerator::likely_accel(AccelArg::Auto, &qemu, environment)
        });
        let findings = examine(files, accel);
        let worse = |setting: &&Setting| {
            findings.iter().any(|finding| {
                finding.what == setting.what && matches!(finding.state, State::Worse | State::Bad)
            })
        };
        let chosen = SETTINGS.iter().filter(worse);
        return Ok(chosen.filter_map(|setting| setting.changes(files)).flatten().collect());
    }
    let complaints: Vec<String> = what.iter().filter_map(|name| complaint(name, files)).collect();
    if !complaints.is_empty() {
        return Err(CliError::Unknown(complaints.join("\nkduel: ")));
    }
    // In the order of the settings, whatever the user's: CPUs that are off have no files.
    let chosen = SETTINGS.iter().filter(|setting| what.iter().any(|name| name == setting.what));
    Ok(chosen.filter_map(|setting| setting.changes(files)).flatten().collect())
}

fn complaint(name: &str, files: &HostFiles) -> Option<String> {
    match tune::find(name) {
        Some(setting) if setting.changes(files).is_some() => None,
        Some(_) => Some(format!("{name} cannot be changed on this host")),
        None => {
            let nearest = text::nearest(name, SETTINGS.iter().map(|setting| setting.what));
            let hint = nearest.map(|word| format!("\n  hint: did you mean {word}?"));
            let name = text::escape(name);
            Some(format!("there is no setting {name}{}", hint.unwrap_or_default()))
        }
    }
}

fn need_root(root: &Path, action: &str) -> Result<(), Failure> {
    if is_root() || root != Path::new("/") {
        return Ok(());
    }
    let title = "failed to change the host's settings: only root may";
    Err(Failure::new(FailureClass::HostIo, title).hint(format!("sudo kduel tune {action} …")))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn applied(changes: &[Change], dry_run: bool) -> String {
    if changes.is_empty() {
        return "nothing is to be changed\n".to_owned();
    }
    let verb = if dry_run { "would change" } else { "changed" };
    let mut text =
        lines(changes, |change| format!("{verb} {} -> {}", text::escape(&change.old), change.new));
    if !dry_run {
        text.push_str("`kduel tune undo` restores it, and so does a reboot\n");
    }
    text
}

fn undone(changes: &[Change]) -> String {
    match changes.is_empty() {
        true => "nothing is to be undone\n".to_owned(),
        false => lines(changes, |change| format!("is {} again", text::escape(&change.old))),
    }
}

/// One line for all files of a setting to which the same happens.
fn lines(changes: &[Change], say: impl Fn(&Change) -> String) -> String {
    let mut counted: Vec<(String, usize)> = Vec::new();
    for change in changes {
        let line = format!("{:<15} {}", text::escape(&change.what), say(change));
        match counted.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => counted.push((line, 1)),
        }
    }
    let show = |(line, count): (String, usize)| match count {
        1 => format!("{line}\n"),
        _ => format!("{line}, in {count} files\n"),
    };
    counted.into_iter().map(show).collect()
}

fn status(tuner: &Tuner, files: &HostFiles) -> Result<String, Failure> {
    let mut said = match tuner.pending()? {
        Pending::Nothing => "nothing is changed\n".to_owned(),
        Pending::Forgotten(_) => {
            "nothing is changed: the host was booted again since something was\n".to_owned()
        }
        Pending::Changed(undo) => {
            let changed = lines(&undo.changes, |change| {
                format!("changed, was {}", text::escape(&change.old))
            });
            let how = if undo.unfinished { ", which was cut short" } else { "" };
            format!(
                "{changed}`kduel tune undo` restores it{how}: {}\n",
                tuner.file().path().display()
            )
        }
    };
    for setting in SETTINGS {
        let line = match setting.changes(files) {
            None => format!("{:<15} not on this host\n", setting.what),
            Some(changes) if changes.is_empty() => {
                format!("{:<15} {}, as it is\n", setting.what, setting.does)
            }
            Some(changes) => lines(&changes, |change| {
                format!("can be changed: {} -> {}", text::escape(&change.old), change.new)
            }),
        };
        said.push_str(&line);
    }
    Ok(said)
}
