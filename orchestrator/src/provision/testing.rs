//! Small made-up kernels for tests.

use super::lock::LockedPackage;

/// A bzImage with nothing but a header.
pub fn bzimage(release: &str) -> Vec<u8> {
    let mut image = vec![0; 0x300];
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x20e..0x210].copy_from_slice(&0x80_u16.to_le_bytes());
    image[0x280..0x280 + release.len()].copy_from_slice(release.as_bytes());
    image
}

/// A package in the layout of 6.1.
pub fn kernel_deb(release: &str) -> Vec<u8> {
    let control = format!("Package: linux-image-{release}\nVersion: 6.1.9-1\n");
    let control = tar_of(&[("./control".to_owned(), control.into_bytes())]);
    let data = tar_of(&[
        (format!("./boot/vmlinuz-{release}"), bzimage(release)),
        (format!("./boot/config-{release}"), b"CONFIG_64BIT=y\n".to_vec()),
    ]);
    let mut deb = ar::Builder::new(Vec::new());
    for (name, bytes) in
        [("debian-binary", b"2.0\n".as_slice()), ("control.tar", &control), ("data.tar", &data)]
    {
        let header = ar::Header::new(name.as_bytes().to_vec(), bytes.len() as u64);
        deb.append(&header, bytes).unwrap();
    }
    deb.into_inner().unwrap()
}

fn tar_of(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    tar.into_inner().unwrap()
}

/// A package by name, version and digest.
pub fn package(name: &str, version: &str, sha256: &str) -> LockedPackage {
    let owned = str::to_owned;
    LockedPackage { name: owned(name), version: owned(version), sha256: owned(sha256) }
}
