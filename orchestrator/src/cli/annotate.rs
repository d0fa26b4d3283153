//! `kduel annotate`: the executed code of a function with exact counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::ValueEnum;
use kduel_counts::{Counts, Symbols};

use super::CliError;
use super::report::{emit, look};
use crate::analyse::annotate::{
    Annotation, Names, Question, Scope, SideInput, Unanswered, Wanted, annotate, boots, cpu, sides,
    trials,
};
use crate::collect::{BootRecord, RunRef, StoredRun};
use crate::config::Environment;
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::plan::{PlannedExperiment, PlannedSide};
use crate::provision::{DebugInfo, sha256_of};
use crate::report::{annotation_html, annotation_text};
use crate::text::escape;

/// `kduel annotate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kduel annotate copy_process                    the latest run: base and the side behind it
  kduel annotate do_exit @1 -w fork-exit         another run, one of its workloads
  kduel annotate copy_process --side base        one side only
  kduel annotate init@ffffffff81001230           one of several functions of that name
  kduel annotate do_exit --format html > do_exit.html

Shown is what was executed, as it was in memory then; the number before an instruction says how
often it was executed per operation. Bytes that were never executed are left out and counted.")]
pub struct AnnotateArgs {
    /// A function of the kernel or a module; NAME@ADDRESS where there are several of one name.
    #[arg(value_name = "FUNCTION")]
    function: String,
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder.
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    run: RunRef,
    /// Only this side; given twice, these two. The base and the side behind it if absent.
    #[arg(long, value_name = "NAME")]
    side: Vec<String>,
    /// In this workload; the first that executed the function if absent.
    #[arg(short, long, value_name = "WORKLOAD")]
    workload: Option<String>,
    /// On this CPU model, where the run has several.
    #[arg(long, value_name = "MODEL")]
    cpu: Option<String>,
    /// Count what others than the workload's own tasks executed, too.
    #[arg(long)]
    all: bool,
    /// Name the lines of the source by this file's debug information; may be given for each kernel.
    #[arg(long, value_name = "FILE")]
    vmlinux: Vec<PathBuf>,
    /// As what.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// As what code is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a terminal
    Text,
    /// A page that needs nothing else
    Html,
}

/// Writes the annotated code to standard output.
///
/// # Errors
///
/// The run has no profile, or the function is not in it; says what is near.
pub fn run(args: &AnnotateArgs, environment: &Environment) -> Result<u8, CliError> {
    let stored = StoredRun::open(&environment.runs_dir(), &args.run)?;
    let mut annotation = find(args, &stored, environment)?;
    for path in &args.vmlinux {
        add_sources(&mut annotation, path)?;
    }
    emit(&match args.format {
        Format::Text => annotation_text(&annotation, look()),
        Format::Html => annotation_html(&annotation),
    })?;
    Ok(exit_code::DONE)
}

/// Looks through the run's experiments for the first whose sides executed the function.
fn find(
    args: &AnnotateArgs,
    stored: &StoredRun,
    environment: &Environment,
) -> Result<Annotation, CliError> {
    let wanted = Wanted::parse(&args.function);
    let scope = if args.all { Scope::All } else { Scope::Own };
    let mut answer = None;
    for (experiment, trials) in trials(&stored.plan, args.workload.as_deref())? {
        let cpu = cpu(experiment, args.cpu.as_deref())?;
        let inputs = sides(experiment, &args.side)?
            .into_iter()
            .map(|side| input(stored, environment, experiment, side, cpu))
            .collect::<Result<Vec<_>, Failure>>()?;
        match annotate(Question { wanted: &wanted, scope, cpu }, &trials, &inputs) {
            Ok(annotation) => return Ok(annotation),
            Err(why) => answer = answer.or(Some(why)),
        }
    }
    let why = answer.unwrap_or_else(|| Unanswered::Unknown(Vec::new()));
    Err(unanswered(&args.function, &stored.info.reference(), why))
}

/// Reads everything that was counted on a side.
fn input<'a>(
    stored: &'a StoredRun,
    environment: &Environment,
    experiment: &PlannedExperiment,
    side: &'a PlannedSide,
    cpu: &str,
) -> Result<SideInput<'a>, Failure> {
    let records = boots(&stored.records, experiment, side, cpu);
    let Some(first) = records.first() else {
        let title = format!("side {} has no completed boot in this run", side.name);
        return Err(Failure::new(FailureClass::Usage, title)
            .hint("`kduel report` says what became of it; --side shows another one"));
    };
    let names = Rc::new(Names::new(&symbols(stored, environment, side, first)?));
    let boots = records
        .into_iter()
        .map(|record| Ok((record, counts(stored, record)?)))
        .collect::<Result<_, Failure>>()?;
    let kernel = stored.info.kernels.get(&side.kernel_name);
    let release = kernel.map_or(side.kernel_name.as_str(), |kernel| kernel.release.as_str());
    Ok(SideInput { name: &side.name, release, names, boots })
}

fn counts(stored: &StoredRun, record: &BootRecord) -> Result<Counts, Failure> {
    kduel_counts::read(&stored.counts(&record.boot)?).map_err(|error| {
        let title = format!("failed to read the profile of boot {}: {error}", record.boot);
        Failure::new(FailureClass::HostIo, title)
            .hint("run it again: `kduel run` with the arguments in the run's run.json")
    })
}

/// The symbols that the side's kernel was counted by. They must be the very ones: what is said of
/// addresses is nothing without them.
fn symbols(
    stored: &StoredRun,
    environment: &Environment,
    side: &PlannedSide,
    record: &BootRecord,
) -> Result<Symbols, Failure> {
    let broken = |why: &str| {
        let title = format!("the symbols of side {} {why}", side.name);
        Failure::new(FailureClass::HostIo, title)
            .hint("`kduel run` with the same arguments reads them again")
    };
    let inputs = record.exact.as_ref().map(|exact| &exact.inputs);
    let expected = inputs.and_then(|inputs| inputs.get("symbols"));
    let Some(expected) = expected else {
        return Err(broken("are not known: its kernel has none that can be used")
            .hint("a kernel with CONFIG_KALLSYMS has"));
    };
    let kernel = stored.info.kernels.get(&side.kernel_name);
    let path = kernel
        .map(|kernel| symbols_file(environment, &kernel.image_sha256, &kernel.initramfs_sha256));
    let path = path.ok_or_else(|| broken("cannot be found: run.json does not name its kernel"))?;
    let text = std::fs::read(&path)
        .map_err(|error| broken(&format!("are gone: {}: {error}", path.display())))?;
    if sha256_of(&text) != *expected {
        return Err(broken("have changed since the run"));
    }
    Symbols::parse(&String::from_utf8_lossy(&text))
        .map_err(|error| broken(&format!("cannot be read: {error}")))
}

/// Where the symbols of a kernel with these digests are kept.
fn symbols_file(environment: &Environment, image: &str, initramfs: &str) -> PathBuf {
    let key = sha256_of(format!("{image} {initramfs}").as_bytes());
    environment.symbols_dir().join(format!("{key}.kallsyms"))
}

/// Names the lines of the source on every side whose kernel has the build id of the file.
fn add_sources(annotation: &mut Annotation, path: &Path) -> Result<(), Failure> {
    let info = DebugInfo::read(path)?;
    let mut fits = false;
    for side in &mut annotation.sides {
        if side.build_id.as_ref() == Some(&info.build_id) {
            fits = true;
            if let Some(listing) = &mut side.listing {
                listing.find_sources(|address| info.line(address));
            }
        }
    }
    if fits {
        return Ok(());
    }
    let title =
        format!("{} is of none of the kernels: its build id is {}", path.display(), info.build_id);
    let of = annotation.sides.iter().map(|side| {
        format!("side {} has {}", side.name, side.build_id.as_deref().unwrap_or("none"))
    });
    Err(of
        .fold(Failure::new(FailureClass::Usage, title), Failure::detail)
        .hint("wanted is the vmlinux that the side's kernel was made from"))
}

fn unanswered(function: &str, run: &str, why: Unanswered) -> CliError {
    let (function, run) = (escape(function), escape(run));
    match why {
        Unanswered::Unknown(like) if like.is_empty() => {
            let hint = "only functions that the kernel's symbols name can be shown";
            CliError::Unknown(format!(
                "no side of run {run} has a function `{function}`\n  hint: {hint}"
            ))
        }
        Unanswered::Unknown(like) => {
            let like: Vec<String> = like.iter().map(|name| format!("`{}`", escape(name))).collect();
            CliError::Unknown(format!(
                "no side of run {run} has a function `{function}`\n  hint: there is {}",
                like.join(", ")
            ))
        }
        Unanswered::NeverExecuted(elsewhere) => {
            let (by, hint) = if elsewhere {
                (" by the workload's own tasks", "others did: --all counts them, too")
            } else {
                (
                    "",
                    "`kduel report` shows what was executed; an inlined function has no code of its own",
                )
            };
            CliError::NothingSelected(format!(
                "`{function}` was never executed{by} in a window of run {run}\n  hint: {hint}"
            ))
        }
        Unanswered::Several(places) => {
            let mut sides = BTreeMap::<String, Vec<String>>::new();
            for (side, address, calls) in places {
                let place = format!("\n    {function}@{address:x}  {calls} calls in all windows");
                sides.entry(side).or_default().push(place);
            }
            let list: Vec<String> = sides
                .into_iter()
                .map(|(side, places)| format!("\n  {}:{}", escape(&side), places.concat()))
                .collect();
            CliError::Unknown(format!(
                "there are several functions `{function}`:{}\n  hint: name one, or one of each side as {function}@ADDRESS@ADDRESS",
                list.concat()
            ))
        }
    }
}
