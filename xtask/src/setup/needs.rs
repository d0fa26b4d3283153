//! What kduel needs of the host, and how it is seen to be there.

use std::path::Path;

use crate::elf;
use crate::shell::{self, Tool};

/// The oldest QEMU that kduel works with, by its first number.
pub const QEMU_MAJOR: u32 = 10;

/// A Debian package that something of kduel stands on.
#[derive(Debug)]
pub struct Need {
    /// The package.
    pub package: &'static str,
    /// What for.
    pub why: &'static str,
    present: fn() -> bool,
}

impl Need {
    /// Whether what the package is wanted for is there, wherever it came from.
    pub fn is_met(&self) -> bool {
        (self.present)()
    }
}

/// The package that boots the guests; on Debian 12 it comes from another suite than the rest.
pub const QEMU: &str = "qemu-system-x86";

/// Everything, in the order in which it is told.
pub const NEEDS: [Need; 18] = [
    Need { package: QEMU, why: "boots the guests (version 10 or newer)", present: qemu },
    Need { package: "busybox-static", why: "is the guests' userland", present: busybox },
    Need {
        package: "dropbear-bin",
        why: "is the guests' SSH server",
        present: || shell::find_program("dropbear").is_some(),
    },
    Need { package: "gcc", why: "links kduel", present: || shell::find_program("cc").is_some() },
    Need { package: "libc6-dev", why: "links the agent statically", present: static_libc },
    Need {
        package: "pkg-config",
        why: "finds libraries when kduel is built",
        present: || shell::find_program("pkg-config").is_some(),
    },
    Need { package: "libssl-dev", why: "is what kduel's SSH client is built on", present: openssl },
    Need {
        package: "xz-utils",
        why: "unpacks kernel packages and modules",
        present: || shell::find_program("xz").is_some(),
    },
    Need {
        package: "make",
        why: "builds kernels",
        present: || shell::find_program("make").is_some(),
    },
    Need { package: "bc", why: "builds kernels", present: || shell::find_program("bc").is_some() },
    Need {
        package: "bison",
        why: "builds kernels",
        present: || shell::find_program("bison").is_some(),
    },
    Need {
        package: "flex",
        why: "builds kernels",
        present: || shell::find_program("flex").is_some(),
    },
    Need {
        package: "perl",
        why: "builds kernels",
        present: || shell::find_program("perl").is_some(),
    },
    Need {
        package: "lz4",
        why: "compresses kernels that are built",
        present: || shell::find_program("lz4").is_some(),
    },
    Need {
        package: "libelf-dev",
        why: "is what a kernel's own tools are built on",
        present: || Path::new("/usr/include/gelf.h").is_file(),
    },
    Need {
        package: "zstd",
        why: "unpacks kernel packages and modules",
        present: || shell::find_program("zstd").is_some(),
    },
    Need {
        package: "mmdebstrap",
        why: "makes images for guests",
        present: || shell::find_program("mmdebstrap").is_some(),
    },
    Need {
        package: "erofs-utils",
        why: "makes images for guests",
        present: || shell::find_program("mkfs.erofs").is_some(),
    },
];

/// What only the tests stand on.
pub const TEST_NEEDS: [Need; 1] = [Need {
    package: "chromium",
    why: "shows the tests what reports look like",
    present: || shell::find_program("chromium").is_some(),
}];

/// A cargo subcommand that the tests use.
#[derive(Debug)]
pub struct CargoTool {
    /// The crate that is installed.
    pub name: &'static str,
    /// What for.
    pub why: &'static str,
    /// Arguments of `cargo install` beside the name.
    pub arguments: &'static [&'static str],
    subcommand: &'static str,
}

impl CargoTool {
    /// Whether cargo finds it.
    pub fn is_met(&self) -> bool {
        Tool::cargo().args([self.subcommand, "--version"]).probe().is_some()
    }
}

/// Without what they would need to update themselves or to be pretty.
pub const CARGO_TOOLS: [CargoTool; 2] = [
    CargoTool {
        name: "cargo-nextest",
        why: "runs the tests",
        arguments: &["--no-default-features", "--features", "default-no-update"],
        subcommand: "nextest",
    },
    CargoTool {
        name: "cargo-deny",
        why: "checks licences and origins of the libraries",
        arguments: &["--no-default-features"],
        subcommand: "deny",
    },
];

fn qemu() -> bool {
    let version = Tool::new("qemu-system-x86_64").arg("--version").probe();
    version.as_deref().and_then(qemu_major).is_some_and(|major| major >= QEMU_MAJOR)
}

/// The first number of `QEMU emulator version 10.0.2 (…)`.
fn qemu_major(version: &str) -> Option<u32> {
    let (_, number) = version.split_once("version ")?;
    number.split('.').next()?.parse().ok()
}

/// The package `busybox` is of the same name and needs libraries that no guest has.
fn busybox() -> bool {
    shell::find_program("busybox").is_some_and(|file| elf::is_static(&file).unwrap_or(false))
}

fn openssl() -> bool {
    Path::new("/usr/include/openssl/ssl.h").is_file()
        || Tool::new("pkg-config").args(["--exists", "openssl"]).probe().is_some()
}

/// The compiler answers with a path if it has the file, and with the bare name if not.
fn static_libc() -> bool {
    let answer = Tool::new("cc").arg("-print-file-name=libc.a").probe().unwrap_or_default();
    Path::new(answer.trim()).is_absolute()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_compared_as_a_number() {
        assert_eq!(
            qemu_major("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopy"),
            Some(10)
        );
        assert_eq!(qemu_major("QEMU emulator version 7.2.19"), Some(7));
        assert_eq!(qemu_major("something else"), None);
    }
}
