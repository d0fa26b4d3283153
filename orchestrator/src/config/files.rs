use std::path::{Component, Path, PathBuf};

/// Where relative paths begin, and what is there. The only part of `config` besides the loader that
/// looks at the disk.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The folder of the document, or the current one. Absolute.
    pub folder: &'a Path,
    /// What `~/` stands for.
    pub home: Option<&'a Path>,
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

    /// Whether `written` is a kernel tree that was built.
    pub fn is_built_tree(&self, written: &str) -> bool {
        self.absolute(written).join("arch/x86/boot/bzImage").is_file()
    }
}

/// A path as a string, what is not UTF-8 replaced.
pub fn string(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
