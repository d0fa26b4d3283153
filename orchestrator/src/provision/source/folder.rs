//! A source folder as it lies there, without what git and builds have left in it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::super::cache::sha256_of_file;
use super::broken;
use crate::fault::Failure;

/// What a build makes, by the end of its name. No file of a kernel's source is called so.
const MADE: [&str; 11] =
    [".o", ".a", ".ko", ".cmd", ".mod", ".mod.c", ".order", ".symvers", ".dwo", ".s.tmp", ".gcno"];

/// What a build makes, by its place.
const MADE_AT: [&str; 9] = [
    ".config",
    ".config.old",
    ".version",
    "vmlinux",
    "System.map",
    "include/config",
    "include/generated",
    "arch/x86/include/generated",
    "arch/x86/boot/bzImage",
];

/// The files of a folder, with what tells them from others.
pub struct List {
    /// Path, and what stands for mode and content; sorted.
    files: Vec<(PathBuf, String)>,
}

impl List {
    /// Reads the whole source folder of a user.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn of_source(folder: &Path) -> Result<Self, Failure> {
        Self::read(folder, &|place| place.ends_with(".git") || is_made(place))
    }

    /// Reads a folder, apart from what is to be left out.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(folder: &Path, left_out: &dyn Fn(&Path) -> bool) -> Result<Self, Failure> {
        let mut files = Vec::new();
        let mut left = vec![PathBuf::new()];
        while let Some(below) = left.pop() {
            let path = folder.join(&below);
            let failed = |error: io::Error| Failure::host_io("read", &path, &error);
            for entry in fs::read_dir(&path).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let place = below.join(entry.file_name());
                let kind = entry.file_type().map_err(failed)?;
                if left_out(&place) {
                    continue;
                }
                if kind.is_dir() {
                    left.push(place);
                } else if kind.is_file() || kind.is_symlink() {
                    let about = about(&entry.path())
                        .map_err(|error| Failure::host_io("read", &entry.path(), &error))?;
                    files.push((place, about));
                }
            }
        }
        files.sort();
        Ok(Self { files })
    }

    /// Stands for paths, modes and contents.
    pub fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        for (path, about) in &self.files {
            hasher.update(path.as_os_str().as_bytes());
            hasher.update([0]);
            hasher.update(about.as_bytes());
            hasher.update([0]);
        }
        super::super::cache::hex(&hasher.finalize())
    }

    /// Those that are not the same in the folder `other`.
    pub fn other_than(&self, other: &Path) -> Self {
        let same = |(place, this): &(PathBuf, String)| {
            about(&other.join(place)).is_ok_and(|there| there == *this)
        };
        Self { files: self.files.iter().filter(|file| !same(file)).cloned().collect() }
    }

    /// The paths, sorted.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|(path, _)| path.as_path())
    }

    /// Copies the files to `to`.
    ///
    /// # Errors
    /// If one cannot be copied, or has changed meanwhile.
    pub fn copy(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        for (place, about_then) in &self.files {
            let (source, copy) = (from.join(place), to.join(place));
            copy_file(&source, &copy).map_err(|error| broken("copy", &source, &error))?;
            let now = about(&copy).map_err(|error| broken("read", &copy, &error))?;
            if now != *about_then {
                let error = io::Error::other("it changed meanwhile");
                return Err(Failure::host_io("copy", &source, &error).hint("run it again"));
            }
        }
        Ok(())
    }
}

/// Mode and digest of a file, the target of a link.
fn about(path: &Path) -> io::Result<String> {
    let meta = path.symlink_metadata()?;
    if meta.is_symlink() {
        return Ok(format!("link {}", fs::read_link(path)?.display()));
    }
    let executable = meta.permissions().mode() & 0o111 != 0;
    Ok(format!("{} {}", if executable { "program" } else { "file" }, sha256_of_file(path)?))
}

/// Copies a file or a link, its folders made, its mode one that a source tree has.
///
/// # Errors
/// As they come.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let meta = from.symlink_metadata()?;
    if meta.is_symlink() {
        return symlink(fs::read_link(from)?, to);
    }
    fs::copy(from, to)?;
    let mode = if meta.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 };
    fs::set_permissions(to, fs::Permissions::from_mode(mode))
}

fn is_made(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default().as_bytes();
    let is_temporary = name.starts_with(b".tmp_") || name.starts_with(b".vmlinux");
    is_temporary
        || MADE.iter().any(|end| name.ends_with(end.as_bytes()))
        || MADE_AT.iter().any(|made| place == Path::new(made))
}
