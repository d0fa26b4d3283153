//! `kduel export`: a run as one file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::report::{analyse_stored, emit};
use super::{page, profile, talk};
use crate::collect::export::{ENDING, Exported, pack};
use crate::collect::{ListedRun, RunRef, StoredRun, samples_jsonl};
use crate::config::{Environment, KernelSpec};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::plan::PlannedSide;
use crate::provision::{Cache, KernelsLock, LockedKernel, Unpacked, sha256_of_file};
use crate::report::{Report, json};

/// Write a run into one file.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
In it are the run's folder (plan, journal, samples, consoles, profile), the report as JSON and as a
page, the kernels' configs and a kernels.lock of their packages where the cache knows them, and which
QEMU it was. `report`, `compare`, `annotate`, `trace` and `verify` take the file where they take RUN;
`verify` needs the kernels in it, or in its cache.

Example:
  kduel export @0 -o fork.tar.zst --with-kernels && kduel report ./fork.tar.zst")]
pub struct ExportArgs {
    /// The newest if absent; `@1` is the one before; an id or the start of one, a label, a folder
    #[arg(value_name = "RUN", default_value = "@0", hide_default_value = true)]
    run: RunRef,
    /// Into this file [default: the run's id with .tar.zst, here]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The kernels, too, and the user's own files: what `verify` needs elsewhere
    #[arg(long)]
    with_kernels: bool,
}

/// Writes the file and prints its name.
///
/// # Errors
///
/// The run is not there or going on, a kernel is not in the cache any more, or a file does not
/// cooperate.
pub fn run(args: &ExportArgs, environment: &Environment) -> Result<u8, Failure> {
    let stored = StoredRun::open(&environment.runs_dir(), &args.run)?;
    if ListedRun::at(&stored.path).running {
        let title = format!("run {} is going on", stored.info.id);
        return Err(Failure::new(FailureClass::Usage, title).hint("export it when it is over"));
    }
    let path = args.output.clone().unwrap_or_else(|| format!("{}{ENDING}", stored.info.id).into());
    let mut files = folder(&stored.path)?;
    files.extend(reports(&stored)?);
    let kernels = Kernels { stored: &stored, cache: Cache::new(environment.cache_dir.clone()) };
    files.extend(kernels.about()?);
    if args.with_kernels {
        files.extend(kernels.files()?);
    }
    pack(&path, &stored.info, &files)?;
    talk::tell(&format!("{} files of run {}", files.len(), stored.info.id));
    emit(&format!("{}\n", path.display()))?;
    Ok(exit_code::DONE)
}

/// Everything in the run's folder but links and what is being written.
fn folder(run: &Path) -> Result<BTreeMap<String, Exported>, Failure> {
    let mut files = BTreeMap::new();
    let mut folders = vec![run.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |error: std::io::Error| Failure::host_io("read", &folder, &error);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            let Some(name) = path.strip_prefix(run).ok().and_then(Path::to_str) else { continue };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() && !name.ends_with(".new") {
                files.insert(name.to_owned(), Exported::File(path));
            }
        }
    }
    Ok(files)
}

/// What follows from the journal, as this kduel sees it.
fn reports(stored: &StoredRun) -> Result<BTreeMap<String, Exported>, Failure> {
    let analysis = analyse_stored(stored);
    let terms = profile::terms(None, false, true)?;
    let profiles = profile::profiles_or_note(stored, &terms);
    let (html, _) = page::page(stored, &analysis, &profiles, true)?;
    let report =
        Report { info: &stored.info, plan: &stored.plan, analysis: &analysis, profiles: &profiles };
    let inputs = stored.records.iter().filter_map(|record| record.exact.as_ref());
    let machine = inputs
        .flat_map(|exact| &exact.inputs)
        .filter(|(name, _)| crate::run::exact::is_machine(name));
    let qemu = json!({
        "qemu": stored.info.qemu,
        "digests": machine.collect::<BTreeMap<_, _>>(),
    });
    let files = [
        ("qemu.json", format!("{qemu:#}\n")),
        ("report.html", html),
        ("report.json", json(&report)),
        ("samples.jsonl", samples_jsonl(&stored.plan, &stored.records)),
    ];
    Ok(files.map(|(name, text)| (name.to_owned(), Exported::Content(text.into_bytes()))).into())
}

/// The kernels of a run, as far as the cache has them.
struct Kernels<'a> {
    stored: &'a StoredRun,
    cache: Cache,
}

impl Kernels<'_> {
    fn sides(&self) -> impl Iterator<Item = &PlannedSide> {
        self.stored.plan.experiments.iter().flat_map(|experiment| &experiment.sides)
    }

    /// Configs, and the packages as a lock.
    fn about(&self) -> Result<BTreeMap<String, Exported>, Failure> {
        let mut files = BTreeMap::new();
        let there = self.sides().any(|side| matches!(side.kernel, KernelSpec::Debian(_)));
        let unpacked = if there { Unpacked::all(&self.cache)? } else { Vec::new() };
        let scratch = tempfile::tempdir()
            .map_err(|error| Failure::host_io("make", Path::new("a folder"), &error))?;
        let lock_path = scratch.path().join("kernels.lock");
        let mut lock = KernelsLock::load(&lock_path)?;
        for side in self.sides() {
            let Some(kernel) = self.stored.info.kernels.get(&side.kernel_name) else { continue };
            let is_it = |one: &&Unpacked| one.digest("vmlinuz") == Some(&kernel.image_sha256);
            let found = unpacked.iter().find(is_it);
            let config = match found {
                Some(found) => {
                    let locked = LockedKernel {
                        release: found.about.release.clone(),
                        spec: side.kernel.clone(),
                        files: found.kernel_digests(),
                        packages: found.about.packages.clone(),
                    };
                    lock.set(&side.kernel_name, locked);
                    found.digest("config").map(|_| found.dir.join("config"))
                }
                None => own_config(&side.kernel, &kernel.image_sha256),
            };
            if let Some(config) = config.filter(|path| path.is_file()) {
                let name = format!("configs/{}.config", kernel.image_sha256);
                files.insert(name, Exported::File(config));
            }
        }
        lock.save()?;
        if let Ok(text) = std::fs::read(&lock_path) {
            files.insert("kernels.lock".to_owned(), Exported::Content(text));
        }
        Ok(files)
    }

    /// Images, initramfs and the user's own files, by their digests.
    fn files(&self) -> Result<BTreeMap<String, Exported>, Failure> {
        let unpacked = Unpacked::all(&self.cache)?;
        let mut files = BTreeMap::new();
        for side in self.sides() {
            let Some(kernel) = self.stored.info.kernels.get(&side.kernel_name) else { continue };
            let sum = &kernel.image_sha256;
            let is_it = |one: &&Unpacked| one.digest("vmlinuz") == Some(sum);
            let image = match unpacked.iter().find(is_it) {
                Some(found) => Some(found.dir.join("vmlinuz")),
                None => self.cache.get(sum)?,
            };
            let initramfs = self.cache.get(&kernel.initramfs_sha256)?;
            for (path, sum) in [(image, sum), (initramfs, &kernel.initramfs_sha256)] {
                let path = match (path, self.stored.file("kernels", sum)) {
                    (_, Some(path)) | (Some(path), None) => path,
                    (None, None) => return Err(gone(&side.kernel_name, &kernel.origin)),
                };
                unchanged(&path, sum)?;
                files.insert(format!("kernels/{sum}"), Exported::File(path));
            }
        }
        for file in self.stored.plan.experiments.iter().flat_map(|experiment| &experiment.files) {
            let Some(sum) = &file.sha256 else { continue };
            unchanged(Path::new(&file.host), sum)?;
            files.insert(format!("files/{sum}"), Exported::File(file.host.clone().into()));
        }
        Ok(files)
    }
}

/// The config beside an image that is still the run's.
fn own_config(spec: &KernelSpec, image_sha256: &str) -> Option<PathBuf> {
    let (image, config) = match spec {
        KernelSpec::Image { image, config: Some(config), .. } => (image.into(), config.into()),
        KernelSpec::Tree { path } => {
            let tree = Path::new(path);
            (tree.join("arch/x86/boot/bzImage"), tree.join(".config"))
        }
        _ => return None,
    };
    (sha256_of_file(&image).ok().as_deref() == Some(image_sha256)).then_some(config)
}

fn gone(name: &str, origin: &str) -> Failure {
    let title = format!("the files of kernel {name} ({origin}) are not in the cache any more");
    Failure::new(FailureClass::HostIo, title).hint(
        "without --with-kernels the rest is exported; `kduel verify` makes them again if it can",
    )
}

fn unchanged(path: &Path, sha256: &str) -> Result<(), Failure> {
    let found = sha256_of_file(path).map_err(|error| Failure::host_io("read", path, &error))?;
    if found == sha256 {
        return Ok(());
    }
    let title = format!("{} is not what it was when the run began", path.display());
    Err(Failure::new(FailureClass::HostIo, title).hint("without --with-kernels it is not needed"))
}
