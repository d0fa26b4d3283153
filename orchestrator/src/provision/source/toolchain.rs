//! The compiler and the other programs that a build needs, found before it begins.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::cache::{sha256_of, sha256_of_file};
use crate::config::{Compiler, Toolchain};
use crate::fault::{Failure, FailureClass};
use crate::host::tool::Tool;

const LONGEST: Duration = Duration::from_secs(30);

/// Programs that every build starts, and Debian's packages of them.
const PROGRAMS: [(&str, &str); 9] = [
    ("make", "make"),
    ("bc", "bc"),
    ("bison", "bison"),
    ("flex", "flex"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("perl", "perl"),
    ("xz", "xz-utils"),
    ("lz4", "lz4"),
];

/// Headers that the kernel's own tools are built with, and Debian's packages of them.
const HEADERS: [(&str, &str); 2] =
    [("/usr/include/gelf.h", "libelf-dev"), ("/usr/include/openssl/opensslv.h", "libssl-dev")];

/// A compiler that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What it says of itself: `gcc (Debian 12.2.0-14) 12.2.0`.
    pub version: String,
    /// SHA-256 over all that decides what it makes of a source.
    pub identity: String,
    /// `make`'s arguments that choose it.
    pub arguments: Vec<String>,
}

/// Looks for the compiler, and for all else that a build needs.
///
/// # Errors
/// What is missing, all of it, with the packages it is in.
pub fn find(toolchain: &Toolchain) -> Result<Found, Failure> {
    let (compiler, linker) = names(toolchain);
    let package = if linker == "ld" {
        compiler.clone()
    } else {
        format!("{compiler} {}", package_of_lld(toolchain))
    };
    let own = [(compiler.as_str(), package.as_str()), (linker.as_str(), package.as_str())];
    let programs = own.iter().chain(PROGRAMS.iter()).filter(|(name, _)| path(name).is_none());
    let headers = HEADERS.iter().filter(|(file, _)| !Path::new(file).exists());
    let mut missing: Vec<(&str, &str)> = programs.chain(headers).copied().collect();
    missing.dedup();
    if let Some(failure) = complain(&missing) {
        return Err(failure);
    }
    let version = first_line(&compiler)?;
    let mut identity = version.clone();
    for program in [&compiler, &linker] {
        let file = path(program).unwrap_or_default();
        let digest =
            sha256_of_file(&file).map_err(|error| Failure::host_io("read", &file, &error))?;
        identity += &format!("\n{}\n{digest}", first_line(program)?);
    }
    let arguments = arguments(toolchain, &compiler);
    Ok(Found { version, identity: sha256_of(identity.as_bytes()), arguments })
}

/// Compiler and linker.
fn names(toolchain: &Toolchain) -> (String, String) {
    let suffix = toolchain.version.map(|version| format!("-{version}")).unwrap_or_default();
    match toolchain.compiler {
        Compiler::Gcc => (format!("gcc{suffix}"), "ld".to_owned()),
        Compiler::Clang => (format!("clang{suffix}"), format!("ld.lld{suffix}")),
    }
}

fn package_of_lld(toolchain: &Toolchain) -> String {
    let suffix = toolchain.version.map(|version| format!("-{version}")).unwrap_or_default();
    format!("lld{suffix} llvm{suffix}")
}

fn arguments(toolchain: &Toolchain, compiler: &str) -> Vec<String> {
    match (toolchain.compiler, toolchain.version) {
        (Compiler::Gcc, _) => vec![format!("CC={compiler}")],
        (Compiler::Clang, None) => vec!["LLVM=1".to_owned()],
        (Compiler::Clang, Some(version)) => vec![format!("LLVM=-{version}")],
    }
}

fn complain(missing: &[(&str, &str)]) -> Option<Failure> {
    if missing.is_empty() {
        return None;
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> =
        missing.iter().flat_map(|(_, packages)| packages.split(' ')).collect();
    packages.sort_unstable();
    packages.dedup();
    let title = format!("to build a kernel, {} must be there", names.join(", "));
    let hint = format!("install it on Debian by: apt-get install {}", packages.join(" "));
    Some(Failure::new(FailureClass::ToolMissing, title).hint(hint))
}

/// Where a program is, links resolved.
fn path(program: &str) -> Option<PathBuf> {
    let output = Tool::new("/bin/sh")
        .args(["-c", "command -v -- \"$1\"", "sh", program])
        .run(LONGEST)
        .ok()
        .filter(|output| output.status.success())?;
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()).canonicalize().ok()
}

fn first_line(program: &str) -> Result<String, Failure> {
    let output = Tool::new(program).args(["--version"]).run(LONGEST)?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_names_the_program_and_its_package() {
        let clang = Toolchain { compiler: Compiler::Clang, version: Some(15) };
        assert_eq!(names(&clang), ("clang-15".to_owned(), "ld.lld-15".to_owned()));
        assert_eq!(arguments(&clang, "clang-15"), ["LLVM=-15"]);
        let gcc = Toolchain { compiler: Compiler::Gcc, version: Some(3) };
        let failure = find(&gcc).unwrap_err();
        assert_eq!(failure.class, FailureClass::ToolMissing);
        assert!(failure.title.contains("gcc-3"), "{failure}");
        assert!(failure.hint.unwrap().contains("gcc-3"));
    }

    #[test]
    fn all_that_is_missing_is_told_at_once() {
        let failure = complain(&[("bc", "bc"), ("lld", "lld llvm")]).unwrap();
        assert_eq!(failure.title, "to build a kernel, bc, lld must be there");
        assert!(failure.hint.unwrap().ends_with("apt-get install bc lld llvm"));
    }
}
