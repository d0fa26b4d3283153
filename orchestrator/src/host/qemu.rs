//! QEMU on this host.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::tool::{self, Tool};
use crate::boot::qemu_args::{Architecture, host_architecture};
use crate::fault::{Failure, FailureClass};

/// The oldest QEMU that guests are started with: what measurements were made with, and the first
/// that takes `/dev/kvm` as a descriptor and brings the whole plugin interface.
pub const OLDEST: Version = Version(10, 0, 0);

/// Major, minor, micro.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

/// A QEMU that was found and is new enough.
#[derive(Debug, Clone)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// What it says its version is.
    pub version: Version,
    /// The guests it runs.
    pub architecture: &'static Architecture,
}

impl Qemu {
    /// Finds the QEMU for this host's architecture: `given` by the user, or in the folders of
    /// `path`, the value of `PATH`.
    ///
    /// # Errors
    ///
    /// [`FailureClass::ToolMissing`] or [`FailureClass::QemuTooOld`], each with what to install.
    pub fn find(given: Option<&Path>, path: &OsStr) -> Result<Self, Failure> {
        let architecture = host_architecture().ok_or_else(|| {
            Failure::new(
                FailureClass::Unsupported,
                format!("guests of the architecture {} are not supported", std::env::consts::ARCH),
            )
        })?;
        let program = match given {
            Some(program) => program.to_owned(),
            None => tool::find(architecture.program, path).ok_or_else(|| {
                missing(architecture, &format!("{} is not in PATH", architecture.program))
            })?,
        };
        let output = Tool::new(&program).args(["--version"]).run(Duration::from_secs(20)).map_err(
            |failure| match failure.class {
                FailureClass::ToolMissing => missing(architecture, &failure.title),
                _ => failure,
            },
        )?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = parse_version(&said).ok_or_else(|| {
            let line = said.lines().next().unwrap_or_default();
            Failure::new(
                FailureClass::QemuFailed,
                format!("{} --version says no version: `{line}`", program.display()),
            )
        })?;
        if version < OLDEST {
            return Err(too_old(architecture, &program, version));
        }
        Ok(Self { program, version, architecture })
    }

    /// SHA-256 of the program, lower-case hex; reads the whole file.
    ///
    /// # Errors
    ///
    /// [`FailureClass::HostIo`].
    pub fn sha256(&self) -> Result<String, Failure> {
        let mut hash = Sha256::new();
        std::fs::File::open(&self.program)
            .and_then(|mut file| io::copy(&mut file, &mut HashWriter(&mut hash)))
            .map_err(|error| Failure::host_io("read", &self.program, &error))?;
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The version in `QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)`.
fn parse_version(said: &str) -> Option<Version> {
    let (_, rest) = said.lines().next()?.split_once("version ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
    Some(Version(numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)))
}

fn missing(architecture: &Architecture, title: &str) -> Failure {
    Failure::new(FailureClass::ToolMissing, title).hint(install(architecture))
}

fn too_old(architecture: &Architecture, program: &Path, version: Version) -> Failure {
    Failure::new(
        FailureClass::QemuTooOld,
        format!("{} is version {version}, at least {OLDEST} is needed", program.display()),
    )
    .hint(install(architecture))
}

fn install(architecture: &Architecture) -> String {
    let package = architecture.package;
    format!(
        "install it with `apt-get install {package}`, on Debian 12 with `apt-get install -t \
         bookworm-backports {package} qemu-utils` after adding bookworm-backports, or name another \
         QEMU with --qemu"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn versions_are_compared_as_a_whole() {
        for (said, version) in [
            ("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright", Version(10, 0, 2)),
            ("QEMU emulator version 7.2.17 (Debian 1:7.2+dfsg-7)", Version(7, 2, 17)),
            ("QEMU emulator version 9.2.50 (v9.2.0-123-gabc)", Version(9, 2, 50)),
            ("QEMU emulator version 11.1", Version(11, 1, 0)),
        ] {
            assert_eq!(parse_version(said), Some(version), "{said}");
        }
        assert_eq!(parse_version("no emulator"), None);
        assert!(Version(11, 0, 0) > Version(10, 9, 9));
    }

    #[test]
    fn a_missing_and_an_old_qemu_say_what_to_install() {
        let failure = Qemu::find(None, OsStr::new("/nonexistent")).unwrap_err();
        assert_eq!(failure.class, FailureClass::ToolMissing);
        assert!(failure.hint.unwrap().contains("apt-get install qemu-system-x86"));

        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("qemu");
        std::fs::write(&old, "#!/bin/sh\necho QEMU emulator version 7.2.17\n").unwrap();
        std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o755)).unwrap();
        let failure = Qemu::find(Some(&old), OsStr::new("")).unwrap_err();
        assert_eq!(failure.class, FailureClass::QemuTooOld);
        assert!(failure.title.ends_with("is version 7.2.17, at least 10.0.0 is needed"));
    }
}
