//! mmdebstrap makes the files, mkfs.erofs one image of them.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::recipe::Recipe;
use crate::fault::{Failure, FailureClass};
use crate::host::tool::{Tool, ToolOutput};

/// For one image, its commands included.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// 2025-01-01: before any clock that a guest may have, so that make sees no file of the future.
const EPOCH: &str = "1735689600";

/// The same for every image, so that nothing of it is drawn.
const UUID: &str = "6b647565-6c00-4000-8000-000000000000";

/// The image's file is a whole number of these: guests map it in pages of this size.
const ALIGNMENT: u64 = 2 << 20;

/// Free space below which no image is begun, in bytes: packages, their files, the image.
const LEAST_SPACE: u64 = 3 << 30;

/// Leaves out what nobody reads in a guest.
const LEFT_OUT: [&str; 6] =
    ["doc/*", "man/*", "info/*", "locale/*", "lintian/*", "bash-completion/*"];

/// Of the image: no address, no host, no time.
const CLEAN: &str = "\
rm -rf \"$1\"/var/cache/apt/* \"$1\"/var/lib/apt/lists/* \"$1\"/var/log/* \"$1\"/var/cache/ldconfig/* \\
  \"$1\"/etc/resolv.conf \"$1\"/etc/machine-id \"$1\"/etc/apt/sources.list* \"$1\"/etc/apt/apt.conf.d/99mmdebstrap \\
  \"$1\"/var/lib/dpkg/*-old \"$1\"/var/cache/debconf/*-old
echo kduel > \"$1\"/etc/hostname
: > \"$1\"/etc/machine-id
";

/// A built image.
#[derive(Debug)]
pub struct Built {
    /// Its file, in the folder that was given.
    pub file: PathBuf,
    /// `NAME VERSION` of every package in it, sorted.
    pub packages: Vec<String>,
}

/// Builds `recipe` in `folder`, packages from the source line `archive`.
///
/// # Errors
///
/// `ToolMissing`, `HostIo`, or `ImageUnusable` if a package or a command of the recipe fails.
pub fn build(recipe: &Recipe, archive: &str, folder: &Path) -> Result<Built, Failure> {
    enough_space(folder)?;
    // In a user namespace all of it is somebody else's.
    let open = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder, open).map_err(|error| Failure::host_io("open", folder, &error))?;
    let (image, packages) = (folder.join("image.erofs"), folder.join("packages"));
    for path in [&image, &packages] {
        fs::write(path, "").map_err(|error| Failure::host_io("write", path, &error))?;
        let open = fs::Permissions::from_mode(0o666);
        fs::set_permissions(path, open).map_err(|error| Failure::host_io("open", path, &error))?;
    }
    let hook = folder.join("hook");
    fs::write(&hook, script(recipe, folder))
        .and_then(|()| fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)))
        .map_err(|error| Failure::host_io("write", &hook, &error))?;
    let output = Tool::new("mmdebstrap")
        .args(arguments(recipe, archive, &hook, rustix::process::geteuid().is_root()))
        .env("SOURCE_DATE_EPOCH", EPOCH)
        .env("TMPDIR", folder)
        .within(folder)
        .run(LONGEST)?;
    if !output.status.success() {
        return Err(explain(recipe, &output));
    }
    pad(&image)?;
    let listed = fs::read_to_string(&packages)
        .map_err(|error| Failure::host_io("read", &packages, &error))?;
    let mut packages: Vec<String> = listed.lines().map(str::to_owned).collect();
    packages.sort();
    Ok(Built { file: image, packages })
}

/// Of mmdebstrap.
fn arguments(recipe: &Recipe, archive: &str, hook: &Path, root: bool) -> Vec<String> {
    let mode = if root { "root" } else { "unshare" };
    let mut words: Vec<String> =
        ["--quiet", "--variant=apt", "--format=null"].map(str::to_owned).to_vec();
    words.push(format!("--mode={mode}"));
    words.extend(LEFT_OUT.map(|what| format!("--dpkgopt=path-exclude=/usr/share/{what}")));
    words.push("--aptopt=Acquire::Languages \"none\"".to_owned());
    words.push("--aptopt=APT::Install-Recommends \"false\"".to_owned());
    if !recipe.packages.is_empty() {
        words.push(format!("--include={}", recipe.packages.join(",")));
    }
    words.push(format!("--customize-hook={}", hook.display()));
    words.extend([recipe.suite.clone(), "/dev/null".to_owned(), archive.to_owned()]);
    words
}

/// Carried out with the new root as its argument: files and commands of the recipe, then the image.
fn script(recipe: &Recipe, folder: &Path) -> String {
    let mut text = "set -e\n".to_owned();
    let here = quoted(&folder.display().to_string());
    for (inside, host) in &recipe.files {
        let (inside, host) = (quoted(inside), quoted(&host.display().to_string()));
        _ = writeln!(text, "install -D -m 644 {host} \"$1\"{inside}");
        _ = writeln!(text, "[ ! -x {host} ] || chmod 755 \"$1\"{inside}");
    }
    for script in &recipe.run {
        let script = quoted(&format!("set -e\n{script}"));
        _ = writeln!(text, "chroot \"$1\" /bin/sh -c {script}");
    }
    _ = writeln!(
        text,
        "dpkg-query --admindir=\"$1/var/lib/dpkg\" -W -f '${{Package}} ${{Version}}\\n' > {here}/packages"
    );
    text += CLEAN;
    _ = writeln!(
        text,
        "mkfs.erofs --quiet -x-1 -T{EPOCH} -U{UUID} --exclude-regex='^(proc|sys|dev|tmp|run)/' \
         {here}/image.erofs \"$1\""
    );
    format!("#!/bin/sh\n{text}")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn pad(image: &Path) -> Result<(), Failure> {
    let padded = || -> std::io::Result<()> {
        let file = fs::File::options().write(true).open(image)?;
        let length = file.metadata()?.len();
        file.set_len(length.next_multiple_of(ALIGNMENT))?;
        file.set_permissions(fs::Permissions::from_mode(0o444))?;
        file.sync_all()
    };
    padded().map_err(|error| Failure::host_io("write", image, &error))
}

fn enough_space(folder: &Path) -> Result<(), Failure> {
    let free = rustix::fs::statvfs(folder)
        .map(|stat| stat.f_bavail.saturating_mul(stat.f_frsize))
        .map_err(|error| Failure::host_io("look at", folder, &error.into()))?;
    if free >= LEAST_SPACE {
        return Ok(());
    }
    Err(no_space().detail(format!("{} MiB are free, 3 GiB are needed", free >> 20)))
}

fn no_space() -> Failure {
    Failure::new(FailureClass::HostIo, "there is not enough space in the cache to build an image")
        .hint("make room, or put the cache elsewhere with KDUEL_CACHE_DIR")
}

/// What went wrong, without addresses.
fn explain(recipe: &Recipe, output: &ToolOutput) -> Failure {
    if output.stderr.contains("No space left on device") {
        return no_space();
    }
    let title = format!("failed to build the image of {}", recipe.suite);
    let lines: Vec<&str> = output.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().skip(lines.len().saturating_sub(12));
    let failure = Failure::new(FailureClass::ImageUnusable, title);
    last.fold(failure, |failure, line| failure.detail(crate::provision::apt::redact(line)))
        .hint("the last lines of mmdebstrap say which package or command failed; nothing was kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe {
            suite: "bookworm".into(),
            packages: vec!["gcc".into(), "make".into()],
            files: [("/etc/it's".into(), "/host/x".into())].into(),
            run: vec!["echo 'a b'".into()],
        }
    }

    #[test]
    fn without_root_it_is_built_in_a_namespace() {
        let words = arguments(&recipe(), "deb ARCHIVE bookworm main", Path::new("/t/hook"), false);
        assert!(words.contains(&"--mode=unshare".to_owned()));
        assert!(words.contains(&"--include=gcc,make".to_owned()));
        assert_eq!(
            words[words.len() - 3..],
            ["bookworm", "/dev/null", "deb ARCHIVE bookworm main"]
        );
    }

    #[test]
    fn words_of_the_recipe_are_quoted() {
        insta::assert_snapshot!(script(&recipe(), Path::new("/a b")));
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        use std::os::unix::process::ExitStatusExt;
        let output = |stderr: &str| ToolOutput {
            status: std::process::ExitStatus::from_raw(256),
            stdout: Vec::new(),
            stderr: stderr.to_owned(),
        };
        let full = explain(&recipe(), &output("tar: x: No space left on device\n"));
        assert!(full.title.contains("not enough space"), "{full}");
        let other = explain(&recipe(), &output("E: http://m.invalid/x failed\n"));
        assert!(!other.to_string().contains("invalid"), "{other}");
    }
}
