//! `kduel kernels`: what is in the cache, fetching, pinning.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::kernels_built;
use super::talk::tell;
use crate::config::{KernelSpec, Origin};
use crate::exit_code;
use crate::fault::{Failure, FailureClass};
use crate::provision::source::Built;
use crate::provision::{Kernel, KernelsLock, Provisioner, Unpacked, sha256_of_file};
use crate::text;

/// Arguments of `kduel kernels`.
#[derive(Debug, Args)]
pub struct KernelsArgs {
    #[command(subcommand)]
    command: KernelsCommand,
    /// Read this document instead of ./kernels.yaml
    #[arg(short, long, global = true, value_name = "FILE")]
    pub file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum KernelsCommand {
    /// What is in the cache
    List,
    /// Make kernels ready to boot: fetch, check, build the initramfs
    Fetch {
        /// Names of the document or SPECs: debian:bookworm, deb:FILE, ./bzImage, a built tree, v6.12
        #[arg(required = true, value_name = "NAME|SPEC")]
        specs: Vec<String>,
    },
    /// Build kernels from source, unless they are in the cache
    Build {
        /// Build nothing: say which are in the cache, with exit code 1 if one is not
        #[arg(long)]
        check: bool,
        /// Names of the document or SPECs of sources
        #[arg(required = true, value_name = "NAME|SPEC")]
        specs: Vec<String>,
    },
    /// In what two kernels differ: source, compiler, config, size
    Diff {
        /// A name of the document or a SPEC
        #[arg(value_name = "NAME|SPEC")]
        a: String,
        /// Another
        #[arg(value_name = "NAME|SPEC")]
        b: String,
    },
    /// Delete the objects that are kept to build patched kernels upon
    Drop {
        /// Also the kernels that were built
        #[arg(long)]
        kernels: bool,
    },
    /// Pin the document's Debian kernels and sources in kernels.lock
    Lock {
        /// Resolve these anew, even if they are pinned
        #[arg(long, value_name = "NAME")]
        update: Vec<String>,
    },
    /// Everything known of one kernel, fetched if it is not in the cache
    Show {
        /// A name of the document or a SPEC
        #[arg(value_name = "NAME|SPEC")]
        spec: String,
    },
}

/// What the command works on.
pub struct KernelsContext<'a> {
    /// Makes kernels ready.
    pub provisioner: &'a Provisioner,
    /// Reads a SPEC; the error says what is wrong with it.
    pub parse: &'a dyn Fn(&str) -> Result<KernelSpec, String>,
    /// The `kernels:` of the document; empty without one.
    pub kernels: &'a BTreeMap<String, KernelSpec>,
    /// `kernels.lock` beside the document; `None` without one.
    pub lock: Option<&'a Path>,
}

/// Runs the command: results to `out`, complaints to standard error. Returns the exit code.
pub fn run(args: &KernelsArgs, context: &KernelsContext<'_>, out: &mut dyn Write) -> u8 {
    let done = match &args.command {
        KernelsCommand::List => list(context, out),
        KernelsCommand::Fetch { specs } => fetch(specs, context, out),
        KernelsCommand::Build { specs, check: true } => {
            return ended(kernels_built::check(specs, context, out).map(|all| match all {
                true => exit_code::DONE,
                false => exit_code::NOT_SO,
            }));
        }
        KernelsCommand::Build { specs, .. } => kernels_built::build(specs, context, out),
        KernelsCommand::Diff { a, b } => kernels_built::diff([a, b], context, out),
        KernelsCommand::Drop { kernels } => kernels_built::discard(*kernels, context, out),
        KernelsCommand::Lock { update } => lock(update, context, out),
        KernelsCommand::Show { spec } => show(spec, context, out),
    };
    ended(done.map(|()| exit_code::DONE))
}

fn ended(done: Result<u8, Failure>) -> u8 {
    done.unwrap_or_else(|failure| {
        tell(&format!("kduel: {failure}"));
        failure.fault().exit_code()
    })
}

fn list(context: &KernelsContext<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let kernels = Unpacked::all(context.provisioner.cache())?;
    let built = Built::all(context.provisioner.cache())?;
    if kernels.is_empty() && built.is_empty() {
        return print(
            out,
            "no kernels in the cache; fetch one: kduel kernels fetch debian:bookworm\n",
        );
    }
    let mut rows = vec![
        ["RELEASE", "MODULES", "SIZE", "AGE", "SHA-256", "PACKAGE OR SOURCE"].map(str::to_owned),
    ];
    for kernel in &kernels {
        rows.push([
            kernel.about.release.clone(),
            kernel.about.modules.to_string(),
            format!("{} MiB", kernel.size_bytes()?.div_ceil(1 << 20)),
            kernel.age().map_or_else(|| "?".to_owned(), in_words),
            kernel.digest("vmlinuz").unwrap_or("?").chars().take(12).collect(),
            kernel.about.name(),
        ]);
    }
    for kernel in &built {
        rows.push([
            kernel.about.release.clone(),
            kernel.about.modules.to_string(),
            format!("{} MiB", kernel.size_bytes().div_ceil(1 << 20)),
            kernel.age().map_or_else(|| "?".to_owned(), in_words),
            kernel
                .about
                .digests
                .get("vmlinuz")
                .map_or("?", String::as_str)
                .chars()
                .take(12)
                .collect(),
            kernel.about.origin.clone(),
        ]);
    }
    print(out, &table(&rows))
}

fn fetch(
    specs: &[String],
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut lock = load_lock(context)?;
    for (name, spec) in parse_all(specs, context)? {
        // Only names of the document are pinned.
        let lock = if context.kernels.contains_key(name) { lock.as_mut() } else { None };
        let kernel = context.provisioner.kernel(name, &spec, lock)?;
        let digest: String = kernel.image_sha256.chars().take(12).collect();
        print(out, &format!("{}  {digest}  {}\n", kernel.release, text::escape(&kernel.origin)))?;
    }
    lock.map_or(Ok(()), |mut lock| lock.save())
}

fn lock(
    update: &[String],
    context: &KernelsContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(mut lock) = load_lock(context)? else {
        return Err(Failure::new(
            FailureClass::KernelUnusable,
            "there is no document whose kernels to pin",
        )
        .hint("run it beside a kernels.yaml, or name one: -f FILE"));
    };
    let is_debian = |name: &str| match context.kernels.get(name) {
        Some(KernelSpec::Debian(_)) => true,
        Some(KernelSpec::Source(spec)) => matches!(spec.origin, Origin::Debian { .. }),
        _ => false,
    };
    let unknown: Vec<&String> = update.iter().filter(|name| !is_debian(name)).collect();
    if let Some(first) = unknown.first() {
        let names = context.kernels.keys().map(String::as_str).filter(|name| is_debian(name));
        let near = text::nearest(first, names).map(|near| format!("did you mean {near}?"));
        let names: Vec<&str> = unknown.iter().map(|name| name.as_str()).collect();
        let title = format!("the document has no Debian kernel {}", names.join(", "));
        let hint = near.unwrap_or_else(|| "only Debian kernels are pinned".to_owned());
        return Err(Failure::new(FailureClass::KernelUnusable, title).hint(hint));
    }
    for name in update {
        lock.forget(name);
    }
    for (name, spec) in context.kernels.iter().filter(|(name, _)| is_debian(name)) {
        let origin = match spec {
            KernelSpec::Source(source) => {
                context.provisioner.pinned(name, source, Some(&mut lock))?;
                let packages = lock.get(name, spec).map(|kernel| kernel.packages.as_slice());
                let package = packages.unwrap_or_default().first();
                package.map(|package| format!("{} {}", package.name, package.version))
            }
            _ => Some(context.provisioner.kernel(name, spec, Some(&mut lock))?.origin),
        };
        print(out, &format!("{name}: {}\n", text::escape(&origin.unwrap_or_default())))?;
    }
    lock.save()
}

fn show(spec: &str, context: &KernelsContext<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut lock = load_lock(context)?;
    let spec = spec.to_owned();
    for (name, spec) in parse_all(std::slice::from_ref(&spec), context)? {
        let pinned = lock.as_ref().is_some_and(|lock| lock.get(name, &spec).is_some());
        // Showing pins nothing.
        let lock = if pinned { lock.as_mut() } else { None };
        let kernel = context.provisioner.kernel(name, &spec, lock)?;
        print(out, &describe(&kernel, pinned, context)?)?;
    }
    Ok(())
}

fn describe(
    kernel: &Kernel,
    pinned: bool,
    context: &KernelsContext<'_>,
) -> Result<String, Failure> {
    let digest_of =
        |path: &Path| sha256_of_file(path).map_err(|error| Failure::host_io("read", path, &error));
    let mut rows = vec![
        ["release".to_owned(), kernel.release.clone()],
        ["origin".to_owned(), kernel.origin.clone()],
        ["pinned".to_owned(), if pinned { "yes" } else { "no" }.to_owned()],
        ["image".to_owned(), kernel.image.display().to_string()],
        ["image SHA-256".to_owned(), kernel.image_sha256.clone()],
    ];
    if let Some(config) = &kernel.config {
        rows.push(["config".to_owned(), config.display().to_string()]);
        rows.push(["config SHA-256".to_owned(), digest_of(config)?]);
    }
    if let Some(modules) = &kernel.modules {
        rows.push(["modules".to_owned(), modules.display().to_string()]);
    }
    let all = Unpacked::all(context.provisioner.cache())?;
    if let Some(unpacked) = all.iter().find(|unpacked| kernel.image.starts_with(&unpacked.dir)) {
        rows.push(["modules, number".to_owned(), unpacked.about.modules.to_string()]);
        for package in &unpacked.about.packages {
            rows.push(["package".to_owned(), format!("{} {}", package.name, package.version)]);
            rows.push(["package SHA-256".to_owned(), package.sha256.clone()]);
        }
    }
    rows.extend(kernels_built::rows(kernel, context)?);
    rows.push(["initramfs".to_owned(), kernel.initramfs.display().to_string()]);
    rows.push(["initramfs SHA-256".to_owned(), kernel.initramfs_sha256.clone()]);
    Ok(table(&rows))
}

/// Names and specs; everything that is neither a name nor a SPEC is complained about at once.
pub(super) fn parse_all<'a>(
    specs: &'a [String],
    context: &KernelsContext<'_>,
) -> Result<Vec<(&'a str, KernelSpec)>, Failure> {
    let mut parsed = Vec::new();
    let mut wrong = Vec::new();
    for spec in specs {
        match context.kernels.get(spec).cloned().map_or_else(|| (context.parse)(spec), Ok) {
            Ok(kernel) => parsed.push((spec.as_str(), kernel)),
            Err(why) => wrong.push(format!("{spec}: {why}")),
        }
    }
    if wrong.is_empty() {
        return Ok(parsed);
    }
    let title = format!("failed to read {}", text::count(wrong.len(), "SPEC"));
    let failure = Failure::new(FailureClass::KernelUnusable, title);
    Err(wrong.into_iter().fold(failure, Failure::detail))
}

pub(super) fn load_lock(context: &KernelsContext<'_>) -> Result<Option<KernelsLock>, Failure> {
    context.lock.map(KernelsLock::load).transpose()
}

/// A reader that has gone away (`| head`) is no failure.
pub(super) fn print(out: &mut dyn Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(FailureClass::HostIo, format!("failed to write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Columns two spaces apart, the last one ragged. Names in packages are somebody else's words.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| text::escape(cell))).collect();
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// `3 days`, `5 hours`, `12 minutes`.
fn in_words(age: std::time::Duration) -> String {
    let minutes = age.as_secs() / 60;
    let (n, noun) = match minutes {
        0..60 => (minutes, "minute"),
        60..1440 => (minutes / 60, "hour"),
        _ => (minutes / 1440, "day"),
    };
    text::count(usize::try_from(n).unwrap_or(usize::MAX), noun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DebianSpec;
    use clap::Parser;
    use std::sync::Arc;
    use std::time::Duration;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: KernelsArgs,
    }

    fn run_in(dir: &Path, words: &[&str]) -> (u8, String) {
        let line = std::iter::once("kernels").chain(words.iter().copied());
        let args = Line::try_parse_from(line).unwrap_or_else(|error| panic!("{error}")).args;
        let provisioner = Provisioner::new(dir, PathBuf::from("agent"), Arc::new(|_| {}));
        let (suite, flavour) = ("bookworm".to_owned(), "cloud-amd64".to_owned());
        let debian = KernelSpec::Debian(DebianSpec { suite, flavour, version: None });
        let kernels = BTreeMap::from([("debian-6.1".to_owned(), debian)]);
        let lock = dir.join("kernels.lock");
        let context = KernelsContext {
            provisioner: &provisioner,
            parse: &|spec| Err(format!("{spec} is no SPEC")),
            kernels: &kernels,
            lock: Some(&lock),
        };
        let mut out = Vec::new();
        let code = run(&args, &context, &mut out);
        (code, String::from_utf8(out).unwrap())
    }

    #[test]
    fn an_empty_cache_says_how_to_fill_it() {
        let dir = tempfile::tempdir().unwrap();
        let (code, out) = run_in(dir.path(), &["list"]);
        assert_eq!(code, exit_code::DONE);
        assert!(out.contains("kduel kernels fetch"), "{out}");
    }

    #[test]
    fn what_the_user_got_wrong_is_a_usage_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(run_in(dir.path(), &["fetch", "nonsense"]).0, exit_code::USAGE);
        assert_eq!(run_in(dir.path(), &["lock", "--update", "debian-6.2"]).0, exit_code::USAGE);
        assert_eq!(run_in(dir.path(), &["show", "nonsense"]).0, exit_code::USAGE);
    }

    #[test]
    fn ages_are_told_in_one_unit() {
        let of = |seconds| in_words(Duration::from_secs(seconds));
        assert_eq!(
            [of(59), of(60), of(7200), of(200_000)],
            ["0 minutes", "1 minute", "2 hours", "2 days"]
        );
    }

    #[test]
    fn columns_line_up() {
        let rows = [["a", "bb"], ["\x1bc", "d"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "a      bb\n\\x1bc  d\n");
    }
}
