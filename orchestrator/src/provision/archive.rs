//! A cpio archive for the kernel's initramfs unpacker, byte for byte the same when made again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Top-level folders that are links to the same name below `/usr`, in every archive: so that it
/// does not matter under which of its two names a file was added.
const MERGED: &[&str] = &["bin", "lib", "lib32", "lib64", "sbin"];

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER_DEVICE: u32 = 0o020_000;

#[derive(Debug, Clone, Default)]
struct Entry {
    mode: u32,
    content: Vec<u8>,
    device: (u32, u32),
}

/// An archive in the making. Everything belongs to root and has the time stamp 0; parents are made
/// as needed; entries are sorted; a later one replaces an earlier one of the same path.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    entries: BTreeMap<PathBuf, Entry>,
}

impl Archive {
    /// An archive with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a folder.
    pub fn folder(&mut self, path: impl AsRef<Path>, mode: u32) {
        self.add(path.as_ref(), Entry { mode: FOLDER | mode, ..Entry::default() });
    }

    /// Adds a regular file.
    pub fn file(&mut self, path: impl AsRef<Path>, mode: u32, content: impl Into<Vec<u8>>) {
        let entry = Entry { mode: FILE | mode, content: content.into(), ..Entry::default() };
        self.add(path.as_ref(), entry);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: impl AsRef<Path>, target: &str) {
        let entry = Entry { mode: LINK | 0o777, content: target.into(), ..Entry::default() };
        self.add(path.as_ref(), entry);
    }

    /// Adds a character device.
    pub fn character_device(&mut self, path: impl AsRef<Path>, mode: u32, device: (u32, u32)) {
        let entry = Entry { mode: CHARACTER_DEVICE | mode, device, ..Entry::default() };
        self.add(path.as_ref(), entry);
    }

    fn add(&mut self, path: &Path, entry: Entry) {
        let path = place(path);
        let mut parent = path.parent();
        while let Some(folder) = parent.filter(|folder| !folder.as_os_str().is_empty()) {
            let default = Entry { mode: FOLDER | 0o755, ..Entry::default() };
            self.entries.entry(folder.to_owned()).or_insert(default);
            parent = folder.parent();
        }
        self.entries.insert(path, entry);
    }

    /// The archive, its length a multiple of four so that another one can follow it.
    ///
    /// # Errors
    /// If a file is too large for the format (4 GiB).
    pub fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (number, (path, entry)) in (1..).zip(&self.entries) {
            let size = u32::try_from(entry.content.len()).map_err(|_| {
                io::Error::other(format!("{} is too large for an initramfs", path.display()))
            })?;
            let mut writer = cpio::newc::Builder::new(&path.to_string_lossy())
                .ino(number)
                .nlink(1)
                .mode(entry.mode)
                .rdev_major(entry.device.0)
                .rdev_minor(entry.device.1)
                .write(&mut bytes, size);
            io::Write::write_all(&mut writer, &entry.content)?;
            writer.finish()?;
        }
        cpio::newc::trailer(&mut bytes)?;
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Ok(bytes)
    }
}

/// Relative, without `.` and `..`, and below `/usr` if the first folder is a link there.
fn place(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            _ => {}
        }
    }
    let is_below = |name: &&str| plain.starts_with(name) && plain != Path::new(name);
    if MERGED.iter().any(is_below) { Path::new("usr").join(plain) } else { plain }
}

/// Adds the links of [`MERGED`] and the folders they lead to; for the base archive only, since an
/// archive that follows must not put a folder in a link's place.
pub fn merge_usr(archive: &mut Archive) {
    for name in MERGED {
        archive.folder(Path::new("usr").join(name), 0o755);
        archive.link(name, &format!("usr/{name}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(bytes: &[u8]) -> Vec<(String, u32, u32)> {
        let mut rest = bytes;
        let mut found = Vec::new();
        loop {
            let reader = cpio::newc::Reader::new(rest).unwrap();
            if reader.entry().is_trailer() {
                return found;
            }
            let entry = reader.entry();
            assert_eq!((entry.uid(), entry.gid(), entry.mtime(), entry.nlink()), (0, 0, 0, 1));
            found.push((entry.name().to_owned(), entry.mode(), entry.file_size()));
            rest = reader.finish().unwrap();
        }
    }

    #[test]
    fn parents_come_first_and_order_of_adding_does_not_matter() {
        let mut one = Archive::new();
        one.file("/kduel/plan.json", 0o644, "{}");
        one.folder("/root", 0o700);
        one.character_device("/dev/console", 0o600, (5, 1));
        let mut two = Archive::new();
        two.character_device("dev/console", 0o600, (5, 1));
        two.folder("/root", 0o700);
        two.file("/kduel/plan.json", 0o644, "{}");
        let bytes = one.to_bytes().unwrap();
        assert_eq!(bytes, two.to_bytes().unwrap());
        assert_eq!(bytes.len() % 4, 0);
        let expected = [
            ("dev", 0o040_755, 0),
            ("dev/console", 0o020_600, 0),
            ("kduel", 0o040_755, 0),
            ("kduel/plan.json", 0o100_644, 2),
            ("root", 0o040_700, 0),
        ];
        assert_eq!(
            entries(&bytes),
            expected.map(|(name, mode, size)| (name.to_owned(), mode, size))
        );
    }

    #[test]
    fn a_file_has_one_place_under_both_its_names() {
        assert_eq!(place(Path::new("/lib64/ld.so")), Path::new("usr/lib64/ld.so"));
        assert_eq!(place(Path::new("/usr/lib64/ld.so")), Path::new("usr/lib64/ld.so"));
        assert_eq!(place(Path::new("/lib")), Path::new("lib"));
        assert_eq!(place(Path::new("/libexec/x")), Path::new("libexec/x"));
        assert_eq!(place(Path::new("/a/../../etc/./x")), Path::new("etc/x"));
    }
}
