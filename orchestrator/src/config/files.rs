use std::path::{Component, Path, PathBuf};

use crate::fault::Failure;
use crate::host::git::Repository;

/// Where relative paths begin, and what is there. The only part of `config` besides the loader that
/// looks at the disk.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The folder of the document, or the current one. Absolute.
    pub folder: &'a Path,
    /// What `~/` stands for.
    pub home: Option<&'a Path>,
    /// Where commits are made that stand for working trees.
    pub store: &'a Path,
}

impl Files<'_> {
    /// The absolute path that `written` means.
    pub fn absolute(&self, written: &str) -> PathBuf {
        let path = match (written.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => self.folder.join(written),
        };
        let mut clean = PathBuf::new();
        for component in path.components() {
            match component {
                Component::CurDir => {}
                other => clean.push(other),
            }
        }
        clean
    }

    /// Whether `written` is a file.
    pub fn is_file(&self, written: &str) -> bool {
        self.absolute(written).is_file()
    }

    /// Whether `written` is a folder.
    pub fn is_folder(&self, written: &str) -> bool {
        self.absolute(written).is_dir()
    }

    /// Whether `written` is a kernel's source tree, built or not.
    pub fn is_source(&self, written: &str) -> bool {
        is_kernel(&self.absolute(written))
    }

    /// The files that `written` means: itself, or what fits the `*` and `?` in its last part, sorted.
    pub fn matching(&self, written: &str) -> Vec<PathBuf> {
        let path = self.absolute(written);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.contains(['*', '?']) {
            return if path.is_file() { vec![path] } else { Vec::new() };
        }
        let folder = path.parent().unwrap_or(&path);
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let fits = |path: &PathBuf| {
            let own = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_file() && fits(&name, &own)
        };
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
        found.sort();
        found
    }

    /// The repository that `written` is in.
    ///
    /// # Errors
    /// If git is missing or refuses it.
    pub fn repository(&self, written: &str) -> Result<Option<Repository>, Failure> {
        Repository::find(&self.absolute(written), self.store)
    }

    /// Whether `written` is a kernel tree that was built.
    pub fn is_built_tree(&self, written: &str) -> bool {
        self.absolute(written).join("arch/x86/boot/bzImage").is_file()
    }
}

/// Whether a folder looks like the top of a kernel's source.
pub fn is_kernel(folder: &Path) -> bool {
    ["Makefile", "Kconfig", "arch"].into_iter().all(|name| folder.join(name).exists())
}

/// Whether `name` fits a pattern of `*` and `?`; names that begin with a dot are hidden.
fn fits(pattern: &str, name: &str) -> bool {
    fn rest(pattern: &[char], name: &[char]) -> bool {
        match (pattern.first(), name.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                rest(&pattern[1..], name) || (!name.is_empty() && rest(pattern, &name[1..]))
            }
            (Some('?'), Some(_)) => rest(&pattern[1..], &name[1..]),
            (Some(wanted), Some(found)) => wanted == found && rest(&pattern[1..], &name[1..]),
            _ => false,
        }
    }
    let letters = |text: &str| text.chars().collect::<Vec<_>>();
    (pattern.starts_with('.') || !name.starts_with('.')) && rest(&letters(pattern), &letters(name))
}

/// A path as a string, what is not UTF-8 replaced.
pub fn string(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        assert!(fits("*.patch", "0001-a.patch") && fits("000?-*.patch", "0001-a.patch"));
        assert!(!fits("*.patch", "a.patch.orig") && !fits("?", "") && !fits("*", ".hidden"));
        assert!(fits("a*b*c", "aXbYbc") && fits("*", "a"));
    }
}
