//! Kernel packages: an `ar` of tars, unpacked into one folder whatever the package's layout.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use super::compression;
use crate::fault::{Failure, FailureClass};

/// Unpacks what a guest needs of the kernel package `deb` into `folder`: `vmlinuz`, `config` and
/// `modules/`, from either layout. Returns path (below `folder`) and SHA-256 of each file.
///
/// # Errors
/// If it is no Debian package, is broken, or the folder cannot be written.
pub fn unpack(deb: &Path, folder: &Path) -> Result<Vec<(PathBuf, String)>, Failure> {
    with_member(deb, deb, "data.tar", |data| unpack_tar(data, folder))
}

/// Name and version in the package `deb`, which the user knows as `shown`.
///
/// # Errors
/// If it is no Debian package, or is broken.
pub fn name_and_version(deb: &Path, shown: &Path) -> Result<(String, String), Failure> {
    with_member(deb, shown, "control.tar", |control| {
        for entry in tar::Archive::new(control).entries()? {
            let mut entry = entry?;
            if entry.path()?.file_name().is_none_or(|name| name != "control") {
                continue;
            }
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            let field = |name: &str| {
                let line =
                    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line.map(|value| value.trim().to_owned())
            };
            if let (Some(name), Some(version)) = (field("Package"), field("Version")) {
                return Ok((name, version));
            }
        }
        Err(io::Error::other("it does not say its name and version"))
    })
}

/// Hands the tarball in the package `deb` that holds a kernel's source to `take`, unpacked, with its
/// name.
///
/// # Errors
/// If it is no such package, or as `take` fails.
pub fn with_source(
    deb: &Path,
    take: impl FnOnce(&str, &mut dyn Read) -> Result<(), Failure>,
) -> Result<(), Failure> {
    with_member(deb, deb, "data.tar", |data| {
        for entry in tar::Archive::new(data).entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_source = name.starts_with("linux-source-") && name.contains(".tar");
            if is_source && entry.header().entry_type().is_file() {
                return Ok(take(&name, &mut *compression::unpack(&name, entry)?));
            }
        }
        Err(io::Error::other("there is no source of a kernel in it"))
    })?
}

/// Hands the unpacked tar `NAME[.COMPRESSION]` of the package to `take`.
fn with_member<T>(
    deb: &Path,
    shown: &Path,
    name: &str,
    take: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> Result<T, Failure> {
    let file = File::open(deb).map_err(|error| Failure::host_io("open", deb, &error))?;
    let read = || {
        let mut archive = ar::Archive::new(BufReader::new(file));
        while let Some(member) = archive.next_entry() {
            let member = member?;
            let identifier = String::from_utf8_lossy(member.header().identifier()).into_owned();
            if let Some(end) = identifier.strip_prefix(name) {
                return take(&mut compression::unpack(end, member)?);
            }
        }
        Err(io::Error::other(format!("it has no {name}")))
    };
    read().map_err(|error| {
        let title = format!("failed to unpack the package {}: {error}", shown.display());
        Failure::new(FailureClass::KernelUnusable, title)
    })
}

fn unpack_tar(data: impl Read, folder: &Path) -> io::Result<Vec<(PathBuf, String)>> {
    let mut unpacked = Vec::new();
    for entry in tar::Archive::new(data).entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let Some(place) = place_of(&entry.path()?) else { continue };
        let path = folder.join(&place);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let file = File::options().write(true).create_new(true).mode(0o444).open(&path)?;
        let mut copy = Hashed { file, hasher: Sha256::new() };
        io::copy(&mut entry, &mut copy)?;
        unpacked.push((place, copy.digest()));
    }
    Ok(unpacked)
}

/// Where a packaged file goes, if it is wanted at all. In 5.10 to 6.12 kernel and config lie under
/// `/boot`, since 7.x beside the modules; either may have `/usr` before `/lib`.
fn place_of(packaged: &Path) -> Option<PathBuf> {
    let parts: Vec<&str> = packaged
        .components()
        .filter(|part| !matches!(part, Component::CurDir | Component::RootDir))
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let parts = parts.strip_prefix(&["usr"]).unwrap_or(&parts);
    match parts {
        ["boot", name] if name.starts_with("vmlinuz-") => Some("vmlinuz".into()),
        ["boot", name] if name.starts_with("config-") => Some("config".into()),
        ["lib", "modules", _, name @ ("vmlinuz" | "config")] => Some(name.into()),
        ["lib", "modules", _, "kernel", rest @ ..] if !rest.is_empty() => {
            Some(Path::new("modules/kernel").join(rest.iter().collect::<PathBuf>()))
        }
        ["lib", "modules", _, name @ ("modules.builtin" | "modules.order")] => {
            Some(Path::new("modules").join(name))
        }
        _ => None,
    }
}

struct Hashed {
    file: File,
    hasher: Sha256,
}

impl Hashed {
    fn digest(self) -> String {
        self.hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(packaged: &str) -> Option<String> {
        place_of(Path::new(packaged)).map(|path| path.display().to_string())
    }

    #[test]
    fn both_layouts_end_in_the_same_places() {
        let r = "6.1.0-50-cloud-amd64";
        assert_eq!(place(&format!("./boot/vmlinuz-{r}")).unwrap(), "vmlinuz");
        assert_eq!(place(&format!("./usr/lib/modules/{r}/vmlinuz")).unwrap(), "vmlinuz");
        assert_eq!(place(&format!("./boot/config-{r}")).unwrap(), "config");
        assert_eq!(place(&format!("./usr/lib/modules/{r}/config")).unwrap(), "config");
        for root in ["./lib", "./usr/lib", "/usr/lib"] {
            assert_eq!(
                place(&format!("{root}/modules/{r}/kernel/fs/a.ko.xz")).unwrap(),
                "modules/kernel/fs/a.ko.xz"
            );
        }
        assert_eq!(place(&format!("./boot/System.map-{r}")), None);
        assert_eq!(place("./usr/share/doc/x/copyright"), None);
    }

    #[test]
    fn paths_that_climb_are_not_followed() {
        assert_eq!(place("./lib/modules/r/kernel/../../../../etc/passwd"), None);
        assert_eq!(place("./lib/modules/r/kernel"), None);
    }

    fn deb_with(name: &str, data: &[u8]) -> Vec<u8> {
        let mut deb = ar::Builder::new(Vec::new());
        for (name, bytes) in [("debian-binary", b"2.0\n".as_slice()), (name, data)] {
            let header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
            deb.append(&header, bytes).unwrap();
        }
        deb.into_inner().unwrap()
    }

    #[test]
    fn reads_every_compression_in_use() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        tar.append_data(&mut header, "./boot/vmlinuz-1", b"abc".as_slice()).unwrap();
        let tar = tar.into_inner().unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(&tar).unwrap();
        let mut xz =
            lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
        xz.write_all(&tar).unwrap();
        for (name, data) in [
            ("data.tar", tar.clone()),
            ("data.tar.gz", gz.finish().unwrap()),
            ("data.tar.xz", xz.finish().unwrap()),
            ("data.tar.zst", zstd::encode_all(tar.as_slice(), 1).unwrap()),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let deb = folder.path().join("k.deb");
            fs::write(&deb, deb_with(name, &data)).unwrap();
            let unpacked = unpack(&deb, folder.path()).unwrap();
            assert_eq!(
                unpacked,
                [("vmlinuz".into(), super::super::cache::sha256_of(b"abc"))],
                "{name}"
            );
            assert_eq!(fs::read(folder.path().join("vmlinuz")).unwrap(), b"abc", "{name}");
        }
    }

    #[test]
    fn a_package_says_its_name_and_version() {
        let mut tar = tar::Builder::new(Vec::new());
        let text = "Package: linux-image-1\nVersion: 1-1\nDescription: x\n Version: 2\n";
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        tar.append_data(&mut header, "./control", text.as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let deb = folder.path().join("k.deb");
        fs::write(&deb, deb_with("control.tar", &tar.into_inner().unwrap())).unwrap();
        let found = name_and_version(&deb, &deb).unwrap();
        assert_eq!(found, ("linux-image-1".to_owned(), "1-1".to_owned()));
    }

    #[test]
    fn what_is_no_package_is_said_to_be_broken() {
        let folder = tempfile::tempdir().unwrap();
        for content in
            [b"hello".to_vec(), deb_with("control.tar", b""), deb_with("data.tar.xz", b"x")]
        {
            let deb = folder.path().join("k.deb");
            fs::write(&deb, content).unwrap();
            let failure = unpack(&deb, folder.path()).unwrap_err();
            assert_eq!(failure.class, FailureClass::KernelUnusable, "{failure}");
        }
    }
}
