//! Tarballs with one folder at their top. They come from anywhere: what leads out of that folder is
//! refused.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tar::{Archive, Entry, EntryType};

use super::super::compression;
use super::broken;
use crate::fault::{Failure, FailureClass};

/// Unpacks the tarball `file` into the empty folder `to`, without the folder at its top.
///
/// # Errors
/// If it is broken, holds something that a source tree does not, or cannot be written.
pub fn unpack_file(file: &Path, to: &Path) -> Result<(), Failure> {
    let opened = File::open(file).map_err(|error| Failure::host_io("open", file, &error))?;
    let name = file.display().to_string();
    match compression::unpack(&name, BufReader::new(opened)) {
        Ok(tar) => unpack(&name, tar, to),
        Err(error) => Err(damaged(&name, &error.to_string())),
    }
}

/// As [`unpack_file`], of a stream that is not compressed and is called `name`.
///
/// # Errors
/// As of [`unpack_file`].
pub fn unpack(name: &str, tar: impl Read, to: &Path) -> Result<(), Failure> {
    let unreadable = |error: io::Error| damaged(name, &error.to_string());
    let mut archive = Archive::new(tar);
    let mut top = None;
    // Made last, so that no file is written through a link.
    let mut links = Vec::new();
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::XGlobalHeader | EntryType::XHeader) {
            continue;
        }
        let path = entry.path().map_err(unreadable)?.into_owned();
        let Some(place) = place(&path, &mut top).map_err(|why| damaged(name, &why))? else {
            continue;
        };
        let at = to.join(&place);
        match kind {
            EntryType::Directory => make_folder(&at)?,
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                write(name, &mut entry, &at)?;
            }
            EntryType::Link => {
                let target = linked(&entry, &mut top).map_err(|why| damaged(name, &why))?;
                make_folder(at.parent().unwrap_or(to))?;
                fs::copy(to.join(target), &at).map_err(|error| broken("write", &at, &error))?;
            }
            EntryType::Symlink => {
                let target = entry.link_name().map_err(unreadable)?.unwrap_or_default();
                if !stays_inside(&place, &target) {
                    let target = target.display();
                    let why = format!("{} links to {target}, outside of it", path.display());
                    return Err(damaged(name, &why));
                }
                links.push((at, target.into_owned()));
            }
            _ => return Err(damaged(name, &format!("{} is no file", path.display()))),
        }
    }
    for (at, target) in links {
        make_folder(at.parent().unwrap_or(to))?;
        symlink(target, &at).map_err(|error| broken("write", &at, &error))?;
    }
    match top {
        Some(_) => Ok(()),
        None => Err(damaged(name, "there is nothing in it")),
    }
}

/// Where an entry goes below the folder at the top; none for that folder itself.
fn place(path: &Path, top: &mut Option<PathBuf>) -> Result<Option<PathBuf>, String> {
    let mut parts = path.components().filter(|part| *part != Component::CurDir);
    let outside = || format!("{} leads out of it", path.display());
    let first = match parts.next() {
        None => return Ok(None),
        Some(Component::Normal(first)) => PathBuf::from(first),
        Some(_) => return Err(outside()),
    };
    if *top.get_or_insert_with(|| first.clone()) != first {
        return Err(format!("it has more than one folder at its top, {} too", first.display()));
    }
    let mut place = PathBuf::new();
    for part in parts {
        match part {
            Component::Normal(name) => place.push(name),
            _ => return Err(outside()),
        }
    }
    Ok((!place.as_os_str().is_empty()).then_some(place))
}

/// The place of the file that a hard link leads to.
fn linked(entry: &Entry<'_, impl Read>, top: &mut Option<PathBuf>) -> Result<PathBuf, String> {
    let target = entry.link_name().map_err(|error| error.to_string())?.unwrap_or_default();
    place(&target, top)?.ok_or_else(|| "a link leads nowhere".to_owned())
}

/// Whether a symbolic link at `place` leads to something below the tree's top folder.
fn stays_inside(place: &Path, target: &Path) -> bool {
    let mut depth = place.components().count() - 1;
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| broken("make folder", path, &error))
}

fn write(name: &str, entry: &mut Entry<'_, impl Read>, at: &Path) -> Result<(), Failure> {
    make_folder(at.parent().unwrap_or(at))?;
    let mode = entry.header().mode().unwrap_or(0o644);
    let mode = if mode & 0o111 == 0 { 0o644 } else { 0o755 };
    let file = File::options().write(true).create_new(true).mode(mode).open(at);
    let mut file = file.map_err(|error| broken("write", at, &error))?;
    let mut buffer = [0; 1 << 16];
    loop {
        match entry.read(&mut buffer).map_err(|error| damaged(name, &error.to_string()))? {
            0 => return Ok(()),
            n => io::Write::write_all(&mut file, &buffer[..n])
                .map_err(|error| broken("write", at, &error))?,
        }
    }
}

fn damaged(name: &str, why: &str) -> Failure {
    Failure::new(FailureClass::KernelUnusable, format!("failed to unpack {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    enum Item<'a> {
        File(&'a str, &'a str, u32),
        Link(&'a str, &'a str),
        HardLink(&'a str, &'a str),
        Device(&'a str),
    }

    /// Names are put in as they are, which the library would refuse.
    fn tar(items: &[Item<'_>]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for item in items {
            let mut header = tar::Header::new_gnu();
            let (name, target, content) = match item {
                Item::File(name, content, mode) => {
                    header.set_mode(*mode);
                    header.set_entry_type(EntryType::Regular);
                    (name, "", *content)
                }
                Item::Link(name, target) => {
                    header.set_entry_type(EntryType::Symlink);
                    (name, *target, "")
                }
                Item::HardLink(name, target) => {
                    header.set_entry_type(EntryType::Link);
                    (name, *target, "")
                }
                Item::Device(name) => {
                    header.set_entry_type(EntryType::Char);
                    (name, "", "")
                }
            };
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(items: &[Item<'_>]) -> (tempfile::TempDir, Result<(), Failure>) {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("tree");
        fs::create_dir(&to).unwrap();
        let done = unpack("x.tar", tar(items).as_slice(), &to);
        (dir, done)
    }

    #[test]
    fn files_modes_and_links_come_out_without_the_folder_at_the_top() {
        let (dir, done) = unpacked(&[
            Item::Link("linux-6.1/include/dt", "../arch"),
            Item::File("./linux-6.1/arch/x86/Makefile", "# x86\n", 0o664),
            Item::File("linux-6.1/scripts/run.sh", "#!/bin/sh\n", 0o775),
            Item::HardLink("linux-6.1/scripts/again.sh", "linux-6.1/scripts/run.sh"),
        ]);
        done.unwrap();
        let tree = dir.path().join("tree");
        assert_eq!(fs::read_to_string(tree.join("include/dt/x86/Makefile")).unwrap(), "# x86\n");
        let mode = |name| fs::metadata(tree.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!([mode("arch/x86/Makefile"), mode("scripts/again.sh")], [0o644, 0o755]);
    }

    #[test]
    fn nothing_leads_out_of_the_tree() {
        let escapes: [&[Item<'_>]; 8] = [
            &[Item::File("linux/../../escaped", "x", 0o644)],
            &[Item::File("/escaped", "x", 0o644)],
            &[Item::File("../escaped", "x", 0o644)],
            &[Item::Link("linux/a", "/etc/passwd")],
            &[Item::Link("linux/a/b", "../../../escaped")],
            &[Item::HardLink("linux/a", "/etc/passwd")],
            &[Item::Device("linux/null")],
            &[Item::File("linux/a", "x", 0o644), Item::File("other/a", "x", 0o644)],
        ];
        for (number, items) in escapes.into_iter().enumerate() {
            let (dir, done) = unpacked(items);
            assert_eq!(done.unwrap_err().class, FailureClass::KernelUnusable, "{number}");
            assert!(!dir.path().join("escaped").exists(), "{number}");
        }
    }

    #[test]
    fn no_file_is_written_through_a_link() {
        let items = [Item::Link("linux/d", "e"), Item::File("linux/d/file", "x", 0o644)];
        let (dir, done) = unpacked(&items);
        assert!(done.is_err(), "a link in the place of a folder");
        assert!(!dir.path().join("tree/e").exists());
    }

    #[test]
    fn what_is_cut_off_or_empty_is_no_tree() {
        let whole = tar(&[Item::File("linux/a", &"x".repeat(2000), 0o644)]);
        let dir = tempfile::tempdir().unwrap();
        let failure = unpack("x.tar", &whole[..1000], dir.path()).unwrap_err();
        assert!(failure.title.starts_with("failed to unpack x.tar"), "{failure}");
        assert!(unpack("x.tar", [0_u8; 1024].as_slice(), dir.path()).is_err());
    }
}
