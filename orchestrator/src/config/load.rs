use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kduel_stats::FEWEST_PAIRS;

use super::adhoc::{self, CommandLine};
use super::case;
use super::check::Check;
use super::default_sides::{self, Filled};
use super::diagnostic::{COMMAND_LINE, Diagnostic, Diagnostics, Source, Spot};
use super::document;
use super::environment::Environment;
use super::exact;
use super::experiment::{Experiment, Overrides};
use super::files::{Files, string};
use super::kernel_spec::KernelSpec;
use super::node::Node;
use super::resolve::{self, Resolved};
use super::spec;
use crate::boot::Grants;
use crate::cli::args::{HugePagesArg, MeasureArg, PairingArg, RunArgs};
use crate::fault::Failure;
use crate::plan::{MarginTerms, Measure, PlannedSide, Statistic, parse_margin};

/// The document if none is named.
pub const DEFAULT_DOCUMENT: &str = "kernels.yaml";

/// The experiments of a run, checked.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// In the order of the document. May be empty: then nothing was selected.
    pub experiments: Vec<Experiment>,
    /// The document that was read; absent for an ad-hoc comparison.
    pub document: Option<PathBuf>,
    /// The folder of the case that was asked for, absolute.
    pub case: Option<PathBuf>,
    /// The `kernels:` of the document, used or not.
    pub kernels: BTreeMap<String, KernelSpec>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--calibrate`.
    pub calibrate: bool,
    /// What `--save` writes, and where.
    pub save: Option<(PathBuf, String)>,
    /// Which sides were taken that nobody named, in sentences.
    pub notes: Vec<String>,
}

impl Loaded {
    /// What is measured.
    pub fn measure(&self) -> Measure {
        self.experiments.first().map_or(Measure::Time, |first| first.terms.measure)
    }

    /// Few pairs and one look.
    pub fn quick(&self) -> bool {
        self.experiments.first().is_some_and(|first| first.terms.quick)
    }

    /// What a timed run is decided by.
    pub fn statistic(&self) -> Statistic {
        self.experiments.first().and_then(|first| first.terms.statistic).unwrap_or_default()
    }

    /// Whether sides may be the same.
    pub fn aa(&self) -> bool {
        self.experiments.iter().any(|experiment| experiment.terms.aa)
    }

    /// Writes the document that `--save` asks for, and says where.
    ///
    /// # Errors
    ///
    /// The file exists already, or cannot be written.
    pub fn save(&self) -> Result<Option<&Path>, Failure> {
        let Some((path, text)) = &self.save else { return Ok(None) };
        let written = std::fs::File::create_new(path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        written.map_err(|error| Failure::host_io("write", path, &error))?;
        Ok(Some(path))
    }
}

/// Reads what is to be compared: from the flags alone if they name sides, else from the document.
///
/// # Errors
///
/// Everything that is wrong with it.
pub fn load(args: &RunArgs, environment: &Environment) -> Result<Loaded, Diagnostics> {
    let Filled { args, notes } = default_sides::fill(args, &current_files(environment))?;
    let mut loaded = if adhoc::is_adhoc(&args) {
        from_flags(&args, environment)
    } else {
        from_document(&args, environment, true)
    }?;
    loaded.notes = notes;
    if args.calibrate {
        loaded.experiments.iter_mut().for_each(calibrating);
        can_calibrate(&loaded.experiments)?;
    }
    Ok(loaded)
}

/// Two sides that are the base, and as many pairs as a calibration needs.
fn calibrating(experiment: &mut Experiment) {
    experiment.sides.truncate(1);
    experiment.sides.extend(
        experiment.sides.first().cloned().map(|base| PlannedSide { name: AGAIN.into(), ..base }),
    );
    experiment.terms.pairs.get_or_insert(FEWEST_PAIRS);
}

fn can_calibrate(experiments: &[Experiment]) -> Result<(), Diagnostics> {
    let complain =
        |message: String, hint: &str| Diagnostic::whole(COMMAND_LINE, message).hint(hint);
    let mut found = Vec::new();
    for Experiment { name, terms, .. } in experiments {
        if terms.measure == Measure::Instructions {
            let message = format!("--calibrate measures time, and `{name}` counts instructions");
            found.push(complain(message, "add --measure time"));
        } else if let Some(pairs) = terms.pairs.filter(|pairs| *pairs < FEWEST_PAIRS) {
            let message =
                format!("--calibrate needs {FEWEST_PAIRS} pairs, and `{name}` has {pairs}");
            found.push(complain(message, "leave out --pairs"));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
}

/// What the base is called where it is compared with itself.
const AGAIN: &str = "again";

/// Reads the kernels that a document names, `./kernels.yaml` if none is given. Its experiments need
/// not go into one run.
///
/// # Errors
///
/// Everything that is wrong with the document.
pub fn load_kernels(
    file: Option<&Path>,
    environment: &Environment,
) -> Result<BTreeMap<String, KernelSpec>, Diagnostics> {
    let args = RunArgs { file: file.map(Path::to_owned), ..RunArgs::default() };
    Ok(from_document(&args, environment, false)?.kernels)
}

/// Reads one SPEC in the current folder.
///
/// # Errors
///
/// What is wrong with it, and a hint on a second line.
pub fn parse_spec(word: &str, environment: &Environment) -> Result<KernelSpec, String> {
    spec::parse(word, &current_files(environment), &[])
        .map_err(|error| format!("{}\n  hint: {}", error.message, error.hint))
}

fn from_document(
    args: &RunArgs,
    environment: &Environment,
    one_run: bool,
) -> Result<Loaded, Diagnostics> {
    let current = current_files(environment);
    let case_folder = args.experiments.iter().find(|word| case::is_folder(word));
    let name = match (&args.file, case_folder) {
        (Some(file), _) => string(file),
        (None, Some(folder)) => string(&Path::new(folder).join(DEFAULT_DOCUMENT)),
        (None, None) => DEFAULT_DOCUMENT.to_owned(),
    };
    let path = current.absolute(&name);
    let hint = match case_folder {
        Some(_) => "a word with a slash is a folder with a kernels.yaml in it",
        None => {
            "compare without a document: kduel run -a debian:bookworm -b debian:trixie -w fork-exit"
        }
    };
    let bytes = read(&path, &name, args.file.is_none().then_some(hint))?;
    let (source, root, complaints) = document::parse(0, &name, &bytes)?;
    let folder = path.parent().unwrap_or(&path).to_owned();
    let mut check = Check::new(Files { folder: &folder, ..current });
    let mut words = CommandLine::new(1);
    let selected: Vec<(String, Spot)> =
        args.experiments.iter().map(|word| (word.clone(), words.word("", word))).collect();
    for flag in adhoc::stray_flags(args) {
        let spot = words.word("", flag);
        check.sources = vec![source.clone(), words.source().clone()];
        let hint = "give both -a SPEC and -b SPEC, or write it into the document";
        check.advise(spot, format!("`{flag}` belongs to a comparison without a document"), hint);
    }
    check.sources = vec![source, words.source().clone()];
    check.found.extend(complaints);
    let selected = without_folders(&mut check, selected, args.file.is_some());
    let Resolved { mut experiments, kernels } =
        resolve::resolve(&mut check, &root, &selected, &overrides(args));
    if one_run {
        resolve::together(&mut check, &root, &experiments);
    }
    if let Some(shown) = case_folder {
        case::read_into(&mut check, shown, &root, &mut experiments);
    }
    finish(check.found, &name)?;
    let case = case_folder.map(|_| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
    Ok(Loaded {
        experiments,
        document: Some(path),
        case,
        kernels,
        seed: args.seed,
        calibrate: args.calibrate,
        save: None,
        notes: Vec::new(),
    })
}

/// The words that name experiments, not a folder; that has a document of its own.
fn without_folders(
    check: &mut Check<'_>,
    selected: Vec<(String, Spot)>,
    named: bool,
) -> Vec<(String, Spot)> {
    let (folders, names): (Vec<_>, Vec<_>) =
        selected.into_iter().partition(|(word, _)| case::is_folder(word));
    for (place, (_, spot)) in folders.iter().enumerate() {
        if named {
            let hint = "leave out either the folder or -f";
            check.advise(*spot, "a folder has a document of its own", hint);
        } else if place > 0 {
            check.advise(*spot, "one run has one folder", "run them one after the other");
        }
    }
    names
}

fn read(path: &Path, name: &str, hint: Option<&str>) -> Result<Vec<u8>, Diagnostics> {
    let read = read_bytes(path);
    read.map_err(|error| {
        let complaint = Diagnostic::whole(name, format!("failed to read the document: {error}"));
        Diagnostics::one(match hint {
            Some(hint) => complaint.hint(hint),
            None => complaint,
        })
    })
}

/// A file, cut off where it is longer than any document.
pub(super) fn read_bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let limit = document::MAX_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn from_flags(args: &RunArgs, environment: &Environment) -> Result<Loaded, Diagnostics> {
    let current = current_files(environment);
    let save = args.save.as_ref().map(|path| current.absolute(&string(path)));
    let folder = save.as_deref().and_then(Path::parent).unwrap_or(current.folder);
    // Without `..`, from which no way leads back by names alone.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mut check = Check::new(Files { folder: &folder, ..current });
    check.sources = vec![Source { name: COMMAND_LINE.to_owned(), lines: Vec::new() }];
    let mut words = CommandLine::new(0);
    usage(&mut check, args);
    // A calibration compares the base with itself.
    let itself = RunArgs { candidates: args.base.iter().cloned().collect(), ..args.clone() };
    let args = if args.calibrate { &itself } else { args };
    let root = adhoc::tree(&mut check, &mut words, args, &current);
    check.sources = vec![words.source().clone()];
    let work = !args.workloads.is_empty() || !args.command.is_empty();
    let usable = args.base.is_some() && !args.candidates.is_empty() && work;
    let experiments = if usable {
        resolve::resolve(&mut check, &root, &[], &overrides(args)).experiments
    } else {
        Vec::new()
    };
    if let Some(path) = save.as_ref().filter(|path| path.exists()) {
        let message = format!("--save: {} exists already", path.display());
        check.found.push(Diagnostic::whole(COMMAND_LINE, message).hint("name another file"));
    }
    finish(check.found, COMMAND_LINE)?;
    let save = match save {
        Some(path) => Some((path, write(&root)?)),
        None => None,
    };
    Ok(Loaded {
        experiments,
        document: None,
        case: None,
        kernels: BTreeMap::new(),
        seed: args.seed,
        calibrate: args.calibrate,
        save,
        notes: Vec::new(),
    })
}

/// Flags that are missing or do not go together.
fn usage(check: &mut Check<'_>, args: &RunArgs) {
    let mut complain = |message: &str, hint: &str| {
        check.found.push(Diagnostic::whole(COMMAND_LINE, message).hint(hint));
    };
    if args.base.is_none() {
        complain("the base is missing", "add -a SPEC, for example -a debian:bookworm");
    }
    if args.candidates.is_empty() && !args.calibrate {
        complain(
            "there is nothing to compare the base against",
            "add -b SPEC, for example -b debian:trixie",
        );
    }
    if args.candidates.len() > 25 {
        complain("more than 25 sides", "write a document with `matrix`");
    }
    if args.workloads.is_empty() && args.command.is_empty() {
        let hint = "add -w WORKLOAD, for example -w fork-exit,syscall, or -- ./bench";
        complain("there is nothing to run", hint);
    }
    if !args.experiments.is_empty() || args.file.is_some() {
        let hint = "leave out either -a and -b, or the experiment and -f";
        complain("-a and -b compare without a document", hint);
    }
    if args.command.is_empty() && !(args.metrics.is_empty() && args.with_files.is_empty()) {
        complain("--metric and --with-file need a command", "add -- ./bench");
    }
}

fn write(root: &Node) -> Result<String, Diagnostics> {
    let text = serde_yaml::to_string(root).map_err(|error| {
        Diagnostics::one(Diagnostic::whole(
            COMMAND_LINE,
            format!("failed to write the document: {error}"),
        ))
    })?;
    Ok(format!("# written by kduel --save\n{text}"))
}

fn overrides(args: &RunArgs) -> Overrides {
    Overrides {
        measure: args.measure.map(|measure| match measure {
            MeasureArg::Time => Measure::Time,
            MeasureArg::Instructions => Measure::Instructions,
        }),
        pairs: args.pairs.map(|pairs| pairs as usize),
        iterations: args.iterations,
        boot_deadline_s: args.boot_deadline,
        progress_deadline_s: args.progress_deadline,
        quick: args.quick,
        statistic: args.statistic(),
        pairing: args.pairing.map(PairingArg::pairing),
        grants: Grants {
            cpu_pm: args.cpu_pm,
            huge_pages: args.huge_pages.map(HugePagesArg::pages),
        },
        margin: margin(args),
        aa: args.aa || args.calibrate,
        monitors: args.monitors.clone(),
        exact: exact::Terms {
            seeds: args.seeds,
            cpu: args.cpu.clone(),
            shift: args.shift,
            chains: args.chains,
        },
    }
}

fn margin(args: &RunArgs) -> MarginTerms {
    let mut terms = MarginTerms::default();
    args.margin.iter().filter_map(|text| parse_margin(text).ok()).for_each(|one| {
        terms.overridden_by(&one);
    });
    terms
}

pub(super) fn current_files(environment: &Environment) -> Files<'_> {
    Files {
        folder: &environment.current_dir,
        home: environment.home.as_deref(),
        store: &environment.git_store,
    }
}

/// Complaints in order of position, the document's first, each once.
pub(super) fn finish(mut found: Vec<Diagnostic>, first: &str) -> Result<(), Diagnostics> {
    const MOST: usize = 1000;
    found.sort_by(|a, b| {
        let place = |d: &Diagnostic| (d.file != first, d.line, d.column);
        let file = |d: &Diagnostic| (d.file != first, d.file == COMMAND_LINE);
        (file(a), &a.file, place(a)).cmp(&(file(b), &b.file, place(b)))
    });
    found.truncate(MOST);
    let mut ordered: Vec<Diagnostic> = Vec::new();
    for diagnostic in found {
        if !ordered.contains(&diagnostic) {
            ordered.push(diagnostic);
        }
    }
    if ordered.is_empty() { Ok(()) } else { Err(Diagnostics(ordered)) }
}
