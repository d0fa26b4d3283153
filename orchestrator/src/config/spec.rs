use super::check::{choice_hint, nearest};
use super::files::{Files, string};
use super::source_words;
use super::{DebianSpec, KernelSpec};

/// What can be written where a kernel is meant, for messages.
pub const SPEC_HELP: &str = "\
a kernel is debian:SUITE[/FLAVOUR][=VERSION], deb:FILE, a path to a bzImage, a path to a built tree, or host
or built here: a git revision, `.` (this working tree as it is), source:PACKAGE@SUITE[=VERSION],
a path to a tarball or a source tree; patches on top: SPEC+FILE.mbx, SPEC+FILE.patch, SPEC+series
for example debian:bookworm, debian:sid/amd64=7.2, ./bzImage, v6.12, .+fix.mbx";

/// The flavour if none is written.
pub const DEFAULT_FLAVOUR: &str = "cloud-amd64";

/// Flavours of Debian's kernels.
pub const FLAVOURS: &[&str] = &["cloud-amd64", "amd64", "rt-amd64"];

const RELEASES: &[&str] = &["bullseye", "bookworm", "trixie", "forky"];
const POCKETS: &[&str] = &["", "-security", "-updates", "-backports", "-proposed-updates"];
const ROLLING: &[&str] = &["sid", "unstable", "experimental", "testing", "stable", "oldstable"];

/// Why a SPEC cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// First character that is meant, from 0, and how many.
    pub part: (usize, usize),
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// Matters only to who uses it: the file is missing, the feature is not there yet.
    pub deferred: bool,
}

impl SpecError {
    /// About `part` of `spec`.
    pub fn new(
        spec: &str,
        part: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let at = spec.find(part).unwrap_or(0);
        let part = (spec[..at].chars().count(), part.chars().count().max(1));
        Self { part, message: message.into(), hint: hint.into(), deferred: false }
    }

    /// That matters only to who uses it.
    #[must_use]
    pub fn deferred(mut self) -> Self {
        self.deferred = true;
        self
    }
}

/// Reads a SPEC. `names` are kernels of the document, offered where the SPEC is none.
///
/// # Errors
///
/// What is wrong with it, or why it cannot be used now.
pub fn parse(spec: &str, files: &Files<'_>, names: &[&str]) -> Result<KernelSpec, SpecError> {
    if let Some((kernel, patches)) = source_words::with_patches(spec) {
        return source_words::patched(spec, parse(kernel, files, names), &patches, files);
    }
    if let Some(rest) = spec.strip_prefix("debian:") {
        return debian(spec, rest).map(KernelSpec::Debian);
    }
    if let Some(file) = spec.strip_prefix("deb:") {
        return deb(spec, file, files);
    }
    if let Some(rest) = spec.strip_prefix("source:") {
        return source_words::source(spec, rest, files);
    }
    if spec == "host" {
        return Ok(KernelSpec::Host);
    }
    if source_words::is_working_tree(spec) {
        return source_words::working_tree(spec, files);
    }
    let plain = spec.starts_with(['.', '/', '~']);
    if plain || files.is_file(spec) || files.is_built_tree(spec) || files.is_source(spec) {
        return path(spec, files);
    }
    if let Some(kernel) = source_words::revision(spec, files)? {
        return Ok(kernel);
    }
    if looks_like_path(spec) {
        return path(spec, files);
    }
    Err(no_spec(spec, files, names))
}

fn debian(spec: &str, rest: &str) -> Result<DebianSpec, SpecError> {
    let (rest, version) = match rest.split_once('=') {
        Some((rest, version)) => (rest, Some(version)),
        None => (rest, None),
    };
    let (suite, flavour) = rest.split_once('/').unwrap_or((rest, DEFAULT_FLAVOUR));
    check_suite(suite).map_err(|(message, hint)| SpecError::new(spec, suite, message, hint))?;
    check_flavour(flavour)
        .map_err(|(message, hint)| SpecError::new(spec, flavour, message, hint))?;
    if let Some(version) = version {
        check_version(version)
            .map_err(|(message, hint)| SpecError::new(spec, version, message, hint))?;
    }
    Ok(DebianSpec {
        suite: suite.to_owned(),
        flavour: flavour.to_owned(),
        version: version.map(str::to_owned),
    })
}

/// Complains about a suite that is a slip; one that is not known at all is left to the mirror.
///
/// # Errors
///
/// Message and hint.
pub fn check_suite(suite: &str) -> Result<(), (String, String)> {
    let known: Vec<String> = RELEASES
        .iter()
        .flat_map(|release| POCKETS.iter().map(move |pocket| format!("{release}{pocket}")))
        .chain(ROLLING.iter().map(|&suite| suite.to_owned()))
        .collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if known.contains(&suite) {
        return Ok(());
    }
    let shape = !suite.is_empty()
        && suite.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    match nearest(suite, known.iter().copied()) {
        None if shape => Ok(()),
        Some(near) => Err((format!("unknown suite `{suite}`"), format!("did you mean `{near}`?"))),
        None => Err((
            format!("`{suite}` is no name of a Debian suite"),
            "for example bookworm, bookworm-backports, trixie, sid".to_owned(),
        )),
    }
}

/// Complains about an unknown flavour.
///
/// # Errors
///
/// Message and hint.
pub fn check_flavour(flavour: &str) -> Result<(), (String, String)> {
    if FLAVOURS.contains(&flavour) {
        return Ok(());
    }
    let hint = choice_hint(flavour, FLAVOURS).unwrap_or_default();
    Err((format!("unknown flavour `{flavour}`"), hint))
}

/// Complains about what cannot be a package version or the start of one.
///
/// # Errors
///
/// Message and hint.
pub fn check_version(version: &str) -> Result<(), (String, String)> {
    let good = version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+~:-".contains(c));
    if good {
        return Ok(());
    }
    let hint = "write a package version or the start of one, for example 6.12 or 6.1.176-1";
    Err((format!("`{version}` is no package version"), hint.to_owned()))
}

fn deb(spec: &str, file: &str, files: &Files<'_>) -> Result<KernelSpec, SpecError> {
    if file.is_empty() {
        return Err(SpecError::new(spec, spec, "deb: names no file", SPEC_HELP));
    }
    if !files.is_file(file) {
        return Err(missing(spec, file, files));
    }
    Ok(KernelSpec::Deb { file: string(&files.absolute(file)), also: Vec::new() })
}

fn path(spec: &str, files: &Files<'_>) -> Result<KernelSpec, SpecError> {
    let absolute = string(&files.absolute(spec));
    if files.is_built_tree(spec) {
        return Ok(KernelSpec::Tree { path: absolute });
    }
    if source_words::is_tarball(spec) && files.is_file(spec) {
        return Ok(source_words::tarball(spec, files));
    }
    if files.is_file(spec) {
        let is_package = spec.ends_with(".deb");
        return Ok(if is_package {
            KernelSpec::Deb { file: absolute, also: Vec::new() }
        } else {
            KernelSpec::Image { image: absolute, modules: None, config: None }
        });
    }
    if files.is_source(spec) {
        return source_words::folder(spec, spec, files);
    }
    if files.is_folder(spec) {
        let message = format!("folder {absolute} is no kernel tree");
        let hint =
            "there is neither a built arch/x86/boot/bzImage in it nor a Makefile and Kconfig";
        return Err(SpecError::new(spec, spec, message, hint).deferred());
    }
    Err(missing(spec, spec, files))
}

/// A file that is not there.
pub fn missing(spec: &str, file: &str, files: &Files<'_>) -> SpecError {
    let message = format!("file {} does not exist", string(&files.absolute(file)));
    SpecError::new(spec, file, message, SPEC_HELP).deferred()
}

fn no_spec(spec: &str, files: &Files<'_>, names: &[&str]) -> SpecError {
    let message = format!("unknown kernel `{spec}`");
    let (scheme, rest) = spec.split_once(':').unwrap_or(("", spec));
    if !scheme.is_empty()
        && let Some(near) = nearest(scheme, ["debian", "deb", "source"])
    {
        return SpecError::new(spec, scheme, message, format!("did you mean `{near}:{rest}`?"));
    }
    let suite = spec.split(['/', '=']).next().unwrap_or_default();
    if RELEASES.iter().chain(ROLLING).any(|known| suite.starts_with(known)) {
        return SpecError::new(spec, spec, message, format!("did you mean `debian:{spec}`?"));
    }
    if let Some(near) = nearest(spec, names.iter().copied().chain(["host"])) {
        return SpecError::new(spec, spec, message, format!("did you mean `{near}`?"));
    }
    source_words::unknown_revision(spec, message, files)
}

fn looks_like_path(spec: &str) -> bool {
    spec.starts_with(['.', '/', '~']) || (spec.contains('/') && !spec.contains(':'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(spec: &str) -> Result<KernelSpec, SpecError> {
        let (folder, store) = (Path::new("/nowhere"), Path::new("/nowhere/store"));
        parse(spec, &Files { folder, home: None, store }, &["debian-6.1", "mine"])
    }

    fn debian(suite: &str, flavour: &str, version: Option<&str>) -> Result<KernelSpec, SpecError> {
        Ok(KernelSpec::Debian(DebianSpec {
            suite: suite.to_owned(),
            flavour: flavour.to_owned(),
            version: version.map(str::to_owned),
        }))
    }

    #[test]
    fn reads_what_the_help_promises() {
        assert_eq!(read("debian:bookworm"), debian("bookworm", "cloud-amd64", None));
        assert_eq!(
            read("debian:bookworm-backports/amd64=6.12"),
            debian("bookworm-backports", "amd64", Some("6.12"))
        );
        assert_eq!(read("host"), Ok(KernelSpec::Host));
    }

    #[test]
    fn offers_the_nearest_and_points_at_the_part() {
        let error = read("debian:bokworm/amd64").unwrap_err();
        assert_eq!((error.part, error.hint.as_str()), ((7, 7), "did you mean `bookworm`?"));
        assert_eq!(read("debain:sid").unwrap_err().hint, "did you mean `debian:sid`?");
        assert_eq!(read("bookworm").unwrap_err().hint, "did you mean `debian:bookworm`?");
        assert_eq!(read("debian-6.2").unwrap_err().hint, "did you mean `debian-6.1`?");
        assert!(read("debian:bookworm/clowd-amd64").unwrap_err().hint.contains("cloud-amd64"));
        assert!(read("debian:bookworm=new").unwrap_err().message.contains("no package version"));
        assert!(read("debian:").unwrap_err().hint.contains("trixie"));
    }

    #[test]
    fn says_what_is_missing() {
        assert!(read("./bzImage").unwrap_err().message.contains("/nowhere/bzImage does not exist"));
        assert!(read("deb:x.deb").unwrap_err().message.contains("/nowhere/x.deb"));
        assert!(read("origin/mster").unwrap_err().message.contains("/nowhere/origin/mster"));
    }
}
