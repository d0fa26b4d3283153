//! SPECs of kernels that are built here.

use super::files::{Files, is_kernel, string};
use super::patches::{self, PATCH_ENDS};
use super::spec::{self, SPEC_HELP, SpecError};
use super::{ConfigPart, KernelSpec, Origin, SourceSpec, Toolchain};
use crate::fault::Failure;
use crate::host::git::Repository;

/// The revision that stands for a working tree as it is.
pub const WORKING_TREE: &str = ".";

/// A kernel of this source with nothing else said about it.
pub fn built(origin: Origin) -> KernelSpec {
    KernelSpec::Source(Box::new(SourceSpec {
        origin,
        patches: Vec::new(),
        config: vec![ConfigPart::Minimal],
        toolchain: Toolchain::default(),
        cflags: Vec::new(),
        over: None,
    }))
}

/// `SPEC+FILE.mbx+series`: the SPEC and the files behind it, if there are any.
pub fn with_patches(spec: &str) -> Option<(&str, Vec<&str>)> {
    let mut kernel = spec;
    let mut files = Vec::new();
    while let Some((before, file)) = kernel.rsplit_once('+') {
        if !PATCH_ENDS.iter().any(|end| file.ends_with(end)) {
            break;
        }
        files.insert(0, file);
        kernel = before;
    }
    (!files.is_empty()).then_some((kernel, files))
}

/// The kernel of `with_patches`, once it is read.
///
/// # Errors
/// What is wrong with it, or that it is no kernel which can be patched.
pub fn patched(
    spec: &str,
    kernel: Result<KernelSpec, SpecError>,
    files: &[&str],
    at: &Files<'_>,
) -> Result<KernelSpec, SpecError> {
    let KernelSpec::Source(mut source) = kernel? else {
        let message = "patches need a kernel that is built here";
        let hint = "name its source, for example source:linux-source-6.1@bookworm+fix.patch";
        return Err(SpecError::new(spec, spec, message, hint));
    };
    for file in files {
        let found = patches::expand(file, at)
            .map_err(|(message, hint)| SpecError::new(spec, file, message, hint).deferred())?;
        source.patches.extend(found);
    }
    Ok(KernelSpec::Source(source))
}

/// `source:PACKAGE@SUITE[=VERSION]`, or a tarball or folder.
///
/// # Errors
/// What is wrong with it.
pub fn source(spec: &str, rest: &str, files: &Files<'_>) -> Result<KernelSpec, SpecError> {
    if files.is_source(rest) {
        return folder(spec, rest, files);
    }
    if files.is_file(rest) {
        return Ok(tarball(rest, files));
    }
    let Some((package, rest)) = rest.split_once('@') else {
        let hint = "write source:PACKAGE@SUITE, for example source:linux-source-6.1@bookworm; or a path to a tarball or a source tree";
        let message = format!("`{rest}` is no source of a kernel");
        return Err(SpecError::new(spec, rest, message, hint).deferred());
    };
    let (suite, version) = match rest.split_once('=') {
        Some((suite, version)) => (suite, Some(version)),
        None => (rest, None),
    };
    let wrong = |part: &str| {
        let part = part.to_owned();
        move |(message, hint): (String, String)| SpecError::new(spec, &part, message, hint)
    };
    check_package(package).map_err(wrong(package))?;
    spec::check_suite(suite).map_err(wrong(suite))?;
    if let Some(version) = version {
        spec::check_version(version).map_err(wrong(version))?;
    }
    Ok(built(Origin::Debian {
        package: package.to_owned(),
        suite: suite.to_owned(),
        version: version.map(str::to_owned),
    }))
}

/// Complains about what cannot be a package with a kernel's source.
///
/// # Errors
/// Message and hint.
pub fn check_package(package: &str) -> Result<(), (String, String)> {
    let good = package.strip_prefix("linux-source-").is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+-~".contains(c))
    });
    if good {
        return Ok(());
    }
    let message = format!("`{package}` is no package with a kernel's source");
    Err((message, "for example linux-source-6.1, linux-source-6.12".to_owned()))
}

/// Whether a name is that of a tarball.
pub fn is_tarball(name: &str) -> bool {
    [".tar", ".tar.xz", ".tar.gz", ".tar.zst"].iter().any(|end| name.ends_with(end))
}

/// A tarball, which is there.
pub fn tarball(written: &str, files: &Files<'_>) -> KernelSpec {
    built(Origin::Tarball { path: string(&files.absolute(written)) })
}

/// A source folder, which is there: as it is, without what git ignores if it is under git.
///
/// # Errors
/// If git refuses it.
pub fn folder(spec: &str, written: &str, files: &Files<'_>) -> Result<KernelSpec, SpecError> {
    let said = |failure| refused(spec, written, failure);
    origin_of_folder(written, files).map(built).map_err(said)
}

/// As [`folder`], without what is said about it.
///
/// # Errors
/// If git refuses it.
pub fn origin_of_folder(written: &str, files: &Files<'_>) -> Result<Origin, Failure> {
    let path = files.absolute(written);
    let plain = Origin::Folder { path: string(&path) };
    let Ok(Some(repository)) = files.repository(written) else { return Ok(plain) };
    let is_top = path.canonicalize().is_ok_and(|path| path == repository.top);
    if is_top { snapshot(&repository) } else { Ok(plain) }
}

/// Whether a SPEC means the working tree of the current folder.
pub fn is_working_tree(spec: &str) -> bool {
    matches!(spec, "." | "./")
}

/// The working tree that the folder is in, as it is.
///
/// # Errors
/// If it is in none, or git refuses it.
pub fn working_tree(spec: &str, files: &Files<'_>) -> Result<KernelSpec, SpecError> {
    match kernel_repository(spec, files)? {
        Some(repository) => {
            snapshot(&repository).map(built).map_err(|failure| refused(spec, spec, failure))
        }
        None => {
            let folder = string(files.folder);
            let message = format!("`.` is a kernel's working tree under git, and {folder} is none");
            let hint = if files.is_built_tree(spec) {
                "name the image of this built tree: ./arch/x86/boot/bzImage"
            } else if files.is_source(spec) {
                "for a source tree without git write source:."
            } else {
                "go to the tree, or write its path"
            };
            Err(SpecError::new(spec, spec, message, hint).deferred())
        }
    }
}

fn snapshot(repository: &Repository) -> Result<Origin, Failure> {
    let commit = repository.snapshot()?.commit;
    Ok(Origin::Git { repository: string(&repository.top), revision: WORKING_TREE.into(), commit })
}

/// A revision of the git tree that the folder is in; none if it means none there.
///
/// # Errors
/// If git refuses the tree.
pub fn revision(spec: &str, files: &Files<'_>) -> Result<Option<KernelSpec>, SpecError> {
    // Names of kernels that nobody defined are asked for too; git is no place to look for them.
    if spec.is_empty() || spec.starts_with('-') || spec.contains([' ', ':', '\n', '\0']) {
        return Ok(None);
    }
    let Some(repository) = kernel_repository(spec, files)? else { return Ok(None) };
    let commit = repository.commit(spec).map_err(|failure| refused(spec, spec, failure))?;
    Ok(commit.map(|commit| {
        let repository = string(&repository.top);
        built(Origin::Git { repository, revision: spec.to_owned(), commit })
    }))
}

/// Why a word that is no kernel is no revision either.
pub fn unknown_revision(spec: &str, message: String, files: &Files<'_>) -> SpecError {
    if let Ok(Some(repository)) = kernel_repository(spec, files) {
        let near = repository.near(spec).unwrap_or_default();
        let what = format!("`{spec}` is no kernel and no revision in {}", string(&repository.top));
        let hint = match near.as_slice() {
            [] => SPEC_HELP.to_owned(),
            near => format!("did you mean {}?", one_of(near)),
        };
        return SpecError::new(spec, spec, what, hint).deferred();
    }
    if looks_like_revision(spec) {
        let folder = string(files.folder);
        let message = format!(
            "`{spec}` looks like a git revision, and {folder} is in no git tree of a kernel"
        );
        let hint = "go to the tree; or name it in a document: source: { git: PATH, rev: REVISION }";
        return SpecError::new(spec, spec, message, hint).deferred();
    }
    SpecError::new(spec, spec, message, SPEC_HELP)
}

/// `a`, `b` or `c`, quoted.
pub fn one_of(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} or {last}", first.join(", ")),
        None => String::new(),
    }
}

/// The repository that the folder is in, if it holds a kernel.
fn kernel_repository(spec: &str, files: &Files<'_>) -> Result<Option<Repository>, SpecError> {
    if !files.folder.is_dir() {
        return Ok(None);
    }
    let found = files.repository(".").map_err(|failure| refused(spec, spec, failure))?;
    Ok(found.filter(|repository| is_kernel(&repository.top)))
}

fn refused(spec: &str, part: &str, failure: Failure) -> SpecError {
    let message = std::iter::once(failure.title).chain(failure.details).collect::<Vec<_>>();
    let hint = failure.hint.unwrap_or_else(|| "git must work in this folder".to_owned());
    SpecError::new(spec, part, message.join("; "), hint).deferred()
}

/// `v6.12`, `6f1e2a3b`, `HEAD~2`.
fn looks_like_revision(spec: &str) -> bool {
    let tag =
        spec.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let hash = spec.len() >= 7 && spec.chars().all(|c| c.is_ascii_hexdigit());
    let relative = spec.starts_with("HEAD") || spec.contains(['~', '^', '@']);
    tag || hash || relative
}
