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
use crate::provision::DebugInfo;
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
often it was executed per operation. Bytes that were not executed are left out and counted.")]
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
    let mut annotation = find(args, &stored)?;
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
fn find(args: &AnnotateArgs, stored: &StoredRun) -> Result<Annotation, CliError> {
    let wanted = Wanted::parse(&args.function);
    let scope = if args.all { Scope::All } else { Scope::Own };
    let mut answer = None;
    for (experiment, trials) in trials(&stored.plan, args.workload.as_deref())? {
        let cpu = cpu(experiment, args.cpu.as_deref())?;
        let inputs = sides(experiment, &args.side)?
            .into_iter()
            .map(|side| input(stored, experiment, side, cpu))
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
///
/// # Errors
///
/// It has no completed boot, or a file of one cannot be read.
pub fn input<'a>(
    stored: &'a StoredRun,
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
    let names = Rc::new(Names::new(&symbols(stored, side, first)?));
    let boots = records
        .into_iter()
        .map(|record| Ok((record, counts(stored, record)?)))
        .collect::<Result<_, Failure>>()?;
    let kernel = stored.info.kernels.get(&side.kernel_name);
    let release = kernel.map_or(side.kernel_name.as_str(), |kernel| kernel.release.as_str());
    Ok(SideInput { name: &side.name, release, names, boots })
}

fn counts(stored: &StoredRun, record: &BootRecord) -> Result<Counts, Failure> {
    let broken = |why: &str| {
        let title = format!("failed to read the profile of boot {}: {why}", record.boot);
        Failure::new(FailureClass::HostIo, title)
            .hint("run it again: `kduel run` with the arguments in the run's run.json")
    };
    let bytes = stored.counts(&record.boot)?.ok_or_else(|| broken("it is not there"))?;
    kduel_counts::read(&bytes).map_err(|error| broken(&error.to_string()))
}

/// The symbols that the side's kernel was counted by. They must be the very ones: what is said of
/// addresses is nothing without them.
fn symbols(
    stored: &StoredRun,
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
    let text = stored.symbols(expected)?.ok_or_else(|| broken("are not in the run's folder"))?;
    Symbols::parse(&text).map_err(|error| broken(&format!("cannot be read: {error}")))
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::analyse::annotate::testing::{fixture, read};
    use crate::boot::Accel;
    use crate::collect::testing::plan;
    use crate::collect::{ExactBoot, KernelIdentity, RunFolder, RunInfo};
    use crate::plan::{Measure, series_label};
    use crate::provision::sha256_of;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: AnnotateArgs,
    }

    /// A stored run with the fixture's counts, and an environment with its symbols.
    struct Stored {
        folder: tempfile::TempDir,
        environment: Environment,
    }

    impl Stored {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let environment = Environment::below(folder.path());
            let mut plan = plan(&["a", "b"], 1);
            plan.measure = Measure::Instructions;
            plan.experiments[0].blocks[0].cpu = Some("Westmere-v1".into());
            let mut info = RunInfo::new(Accel::Tcg, vec!["kduel".into()]);
            for side in &mut plan.experiments[0].sides {
                side.kernel_name = format!("kernel-{}", side.name);
                let kernel = KernelIdentity {
                    release: format!("release-{}", side.name),
                    origin: String::new(),
                    image_sha256: side.name.clone(),
                    initramfs_sha256: String::new(),
                    source: None,
                };
                info.kernels.insert(side.kernel_name.clone(), kernel);
            }
            std::fs::create_dir_all(environment.runs_dir()).unwrap();
            let mut run = RunFolder::create(&environment.runs_dir(), &plan, info).unwrap();
            for mut record in fixture().records {
                let text = read(&format!("{}.kallsyms", record.side));
                let symbols = sha256_of(&text);
                let file = folder.path().join(&symbols);
                std::fs::write(&file, text).unwrap();
                run.write_symbols(&symbols, &file).unwrap();
                let inputs = [("symbols".to_owned(), symbols)].into();
                let cpu = "Westmere-v1".to_owned();
                record.exact = Some(Box::new(ExactBoot { inputs, cpu, ..ExactBoot::default() }));
                let counts = read(&format!("{}.counts", record.side));
                run.write_counts(&record.boot, &counts).unwrap();
                run.append(&record).unwrap();
            }
            Self { folder, environment }
        }

        fn find(&self, words: &[&str]) -> Result<Annotation, CliError> {
            let args = Line::parse_from([&["annotate"], words].concat()).args;
            let stored = StoredRun::open(&self.environment.runs_dir(), &args.run)?;
            let mut annotation = find(&args, &stored)?;
            for path in &args.vmlinux {
                add_sources(&mut annotation, path)?;
            }
            Ok(annotation)
        }

        fn refuses(&self, words: &[&str], code: u8, parts: &[&str]) {
            let error = self.find(words).err().unwrap();
            let text = error.to_string();
            assert_eq!(error.exit_code(), code, "{text}");
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
        }

        /// Changes every file below the folder with that ending.
        fn change(&self, ending: &str, change: impl Fn(&Path)) {
            let mut folders = vec![self.folder.path().to_owned()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() && !path.is_symlink() {
                        folders.push(path);
                    } else if path.to_string_lossy().ends_with(ending) {
                        change(&path);
                    }
                }
            }
        }
    }

    #[test]
    fn a_stored_run_is_read_and_asked() {
        let stored = Stored::new();
        let annotation = stored.find(&["pgd_alloc"]).unwrap();
        let sides: Vec<_> = annotation.sides.iter().map(|s| s.release.as_str()).collect();
        assert_eq!(sides, ["release-a", "release-b"]);
        assert_eq!(
            annotation.workload,
            series_label(&crate::collect::testing::trial(0, "fork-exit"))
        );
        assert_eq!(stored.find(&["pgd_alloc", "--side", "b"]).unwrap().sides.len(), 1);
        let calls =
            |words: &[&str]| stored.find(words).unwrap().sides[0].listing.as_ref().unwrap().calls;
        assert!(calls(&["kmem_cache_free", "--all"]) > calls(&["kmem_cache_free"]));
    }

    #[test]
    fn wrong_questions_are_refused_with_what_would_be_right() {
        let stored = Stored::new();
        stored.refuses(
            &["pgd_aloc"],
            exit_code::USAGE,
            &["has a function `pgd_aloc`", "there is `pgd_alloc`"],
        );
        stored.refuses(&["x\u{1b}[2J"], exit_code::USAGE, &["`x\\x1b[2J`", "only functions that"]);
        stored.refuses(&["_raw_spin_lock"], exit_code::NOTHING_SELECTED, &["was never executed"]);
        stored.refuses(&["pgd_alloc", "--side", "c"], exit_code::USAGE, &["no side `c`"]);
        stored.refuses(
            &["pgd_alloc", "-w", "forkexit"],
            exit_code::USAGE,
            &["did you mean `fork-exit`?"],
        );
        stored.refuses(&["pgd_alloc", "--cpu", "max"], exit_code::USAGE, &["no CPU model `max`"]);
        let own = std::env::current_exe().unwrap();
        let words = ["pgd_alloc", "--vmlinux", own.to_str().unwrap()];
        stored.refuses(&words, exit_code::USAGE, &["is of none of the kernels", "side a has 1000"]);
    }

    #[test]
    fn damaged_stores_are_told() {
        let stored = Stored::new();
        stored.change(".kallsyms.zst", |path| {
            std::fs::write(path, zstd::encode_all(&b"ffff T x\n"[..], 1).unwrap()).unwrap();
        });
        stored.refuses(&["pgd_alloc"], exit_code::RIG, &["have changed since the run"]);
        stored.change(".kallsyms.zst", |path| std::fs::remove_file(path).unwrap());
        stored.refuses(&["pgd_alloc"], exit_code::RIG, &["symbols of side a are not in the run"]);
        let stored = Stored::new();
        // The first record is the header: tag, length, then the version's major number.
        stored.change(".counts.zst", |path| {
            let packed = std::fs::read(path).unwrap();
            let mut bytes = zstd::decode_all(&packed[..]).unwrap();
            bytes[13] = 0;
            let end = 13 + usize::from(bytes[9]);
            let sum = crc32c::crc32c(&bytes[8..end]);
            bytes[end..end + 4].copy_from_slice(&sum.to_le_bytes());
            std::fs::write(path, zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
        });
        stored.refuses(&["pgd_alloc"], exit_code::RIG, &["have format 0", "run it again"]);
        stored.change(".counts.zst", |path| std::fs::remove_file(path).unwrap());
        stored.refuses(&["pgd_alloc"], exit_code::RIG, &["failed to read", "is not there"]);
    }
}
