//! The files that have to lie beside a program in the guest, found as the dynamic loader finds them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::elf::{self, ElfFacts};
use crate::fault::{Failure, FailureClass};

/// Where loaders look without being told, in this order, after the folders of the host's
/// configuration. The first that holds a C library is where this host's loader looks.
const DEFAULT_FOLDERS: &[&str] = &[
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Files by their path in the guest.
pub type GuestFiles = BTreeMap<PathBuf, Vec<u8>>;

/// A program or script on the host, and where it goes in the guest.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    /// On the host.
    pub host: &'a Path,
    /// In the guest, absolute.
    pub guest: &'a Path,
    /// What is in it.
    pub content: &'a [u8],
}

/// Adds to `files` everything `program` needs to be started: the loader and libraries of an ELF
/// program, the interpreter of a script. What it opens by itself later is not known and not added.
///
/// # Errors
/// If a library is missing on this host, or a file cannot be read.
pub fn add_needs(program: &Program<'_>, files: &mut GuestFiles) -> Result<(), Failure> {
    if let Some(interpreter) = script_interpreter(program.content) {
        return add_interpreter(&interpreter, files);
    }
    let Some(facts) = elf::facts(program.content) else { return Ok(()) };
    if let Some(loader) = &facts.interpreter {
        let path = Path::new(loader);
        files.insert(path.to_owned(), read(path)?);
    }
    let configured = configured_folders(Path::new("/etc/ld.so.conf"), 0);
    add_libraries(&facts, program.host, program.guest, &configured, files)
}

fn add_libraries(
    facts: &ElfFacts,
    host: &Path,
    guest: &Path,
    configured: &[PathBuf],
    files: &mut GuestFiles,
) -> Result<(), Failure> {
    for name in &facts.needed {
        let found = find(name, facts, host, guest, configured);
        let Some((library_host, library_guest, content)) = found else {
            return Err(Failure::new(
                FailureClass::HostIo,
                format!("failed to find the library {name}, which {} needs", host.display()),
            )
            .hint("install it, or link the program statically"));
        };
        if files.contains_key(&library_guest) {
            continue;
        }
        let library = elf::facts(&content).unwrap_or_default();
        files.insert(library_guest.clone(), content);
        add_libraries(&library, &library_host, &library_guest, configured, files)?;
    }
    Ok(())
}

/// Host path, guest path and content of the library `name`. One from the configured folders goes
/// to a default folder of the guest, whose loader has no configuration.
fn find(
    name: &str,
    user: &ElfFacts,
    host: &Path,
    guest: &Path,
    configured: &[PathBuf],
) -> Option<(PathBuf, PathBuf, Vec<u8>)> {
    if name.contains('/') {
        return fits(Path::new(name), user).map(|content| (name.into(), name.into(), content));
    }
    for folder in &user.search {
        let library = with_origin(folder, host).join(name);
        if let Some(content) = fits(&library, user) {
            return Some((library, with_origin(folder, guest).join(name), content));
        }
    }
    let defaults = || DEFAULT_FOLDERS.iter().map(Path::new);
    for folder in configured.iter().map(PathBuf::as_path).chain(defaults()) {
        let library = folder.join(name);
        let Some(content) = fits(&library, user) else { continue };
        if defaults().any(|default| default == folder) {
            return Some((library.clone(), library, content));
        }
        let home = defaults().find(|default| default.join("libc.so.6").exists())?;
        return Some((library, home.join(name), content));
    }
    None
}

/// The library's content if it is there and of the same machine as its user.
fn fits(path: &Path, user: &ElfFacts) -> Option<Vec<u8>> {
    let content = fs::read(path).ok()?;
    let facts = elf::facts(&content)?;
    (facts.machine == user.machine && facts.is_64 == user.is_64).then_some(content)
}

fn with_origin(folder: &str, object: &Path) -> PathBuf {
    let origin = object.parent().unwrap_or_else(|| Path::new("/")).display().to_string();
    clean(Path::new(&folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin)))
}

/// The path without `.` and `..`.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    clean
}

/// The folders of `ld.so.conf` and what it includes.
fn configured_folders(file: &Path, depth: u8) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(file) else { return Vec::new() };
    let mut folders = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        match line.strip_prefix("include") {
            Some(pattern) if depth < 4 => {
                for included in included_files(file, pattern.trim()) {
                    folders.extend(configured_folders(&included, depth + 1));
                }
            }
            Some(_) => {}
            None if line.starts_with('/') => folders.push(PathBuf::from(line)),
            None => {}
        }
    }
    folders
}

/// Files of `FOLDER/*.conf`, the only pattern in use, or the one file named.
fn included_files(from: &Path, pattern: &str) -> Vec<PathBuf> {
    let path = from.parent().unwrap_or_else(|| Path::new("/")).join(pattern);
    let Some(folder) = pattern.ends_with("*.conf").then(|| path.parent()).flatten() else {
        return vec![path];
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "conf")).collect();
    files.sort();
    files
}

/// The program that a script's first line names, and for `/usr/bin/env NAME` that NAME.
fn script_interpreter(content: &[u8]) -> Option<PathBuf> {
    let line = content.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let program = Path::new(words.next()?);
    if !program.ends_with("env") {
        return Some(program.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.exists())
}

fn add_interpreter(path: &Path, files: &mut GuestFiles) -> Result<(), Failure> {
    // The guest has its own shell, and one that is not on the host may be in the guest.
    if path.ends_with("sh") || !path.exists() || files.contains_key(path) {
        return Ok(());
    }
    let content = read(path)?;
    files.insert(path.to_owned(), content.clone());
    add_needs(&Program { host: path, guest: path, content: &content }, files)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path).map_err(|error| Failure::host_io("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dynamic_program_brings_its_loader_and_libraries() {
        let own = std::env::current_exe().unwrap();
        let content = fs::read(&own).unwrap();
        let mut files = GuestFiles::new();
        let program = Program { host: &own, guest: Path::new("/kduel/files/t"), content: &content };
        add_needs(&program, &mut files).unwrap();
        let names: Vec<String> = files.keys().map(|path| path.display().to_string()).collect();
        assert!(names.iter().any(|name| name.contains("ld-linux")), "{names:?}");
        assert!(names.iter().any(|name| name.ends_with("/libc.so.6")), "{names:?}");
    }

    #[test]
    fn the_interpreter_of_a_script_is_its_first_line() {
        let found = |text: &str| script_interpreter(text.as_bytes());
        assert_eq!(found("#!/bin/bash -e\nx"), Some("/bin/bash".into()));
        assert_eq!(found("#! /bin/sh"), Some("/bin/sh".into()));
        assert!(found("#!/usr/bin/env -S LANG=C cat").unwrap().ends_with("cat"));
        assert_eq!(found("#!/usr/bin/env no-such-program-here"), None);
        assert_eq!(found("echo"), None);
    }

    #[test]
    fn the_guests_own_shell_is_not_replaced() {
        let mut files = GuestFiles::new();
        let here = Path::new("/x");
        let script = |content| Program { host: here, guest: here, content };
        add_needs(&script(b"#!/bin/sh\n"), &mut files).unwrap();
        add_needs(&script(b"#!/no/such/thing\n"), &mut files).unwrap();
        assert!(files.is_empty());
    }

    #[test]
    fn origin_is_the_objects_own_folder() {
        assert_eq!(with_origin("$ORIGIN/../lib", Path::new("/a/b/c")), Path::new("/a/lib"));
        assert_eq!(with_origin("${ORIGIN}", Path::new("/a/b/c")), Path::new("/a/b"));
    }

    #[test]
    fn configured_folders_follow_includes() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("ld.so.conf");
        fs::create_dir(dir.path().join("d")).unwrap();
        fs::write(&conf, "include d/*.conf # x\n/opt/one\n").unwrap();
        fs::write(dir.path().join("d/a.conf"), "# c\n/opt/two\n").unwrap();
        assert_eq!(configured_folders(&conf, 0), [PathBuf::from("/opt/two"), "/opt/one".into()]);
    }
}
