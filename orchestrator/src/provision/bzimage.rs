//! What kind of kernel file it is, and the release in its header.

use std::path::Path;

use crate::fault::{Failure, FailureClass};

/// Offset of the x86 boot protocol's `HdrS` magic, of the pointer to the version, and the base that
/// pointer counts from.
const MAGIC_AT: usize = 0x202;
const VERSION_POINTER_AT: usize = 0x20e;
const VERSION_BASE: usize = 0x200;

/// What a file is by its first bytes, for a message.
const KINDS: &[(&[u8], &str, &str)] = &[
    (
        b"\x7fELF",
        "an ELF file, such as vmlinux",
        "give the compressed image of the same build: arch/x86/boot/bzImage or vmlinuz",
    ),
    (b"\x1f\x8b", "a gzip file", "unpack it, and give the bzImage inside"),
    (b"\xfd7zXZ", "an xz file", "unpack it, and give the bzImage inside"),
    (b"\x28\xb5\x2f\xfd", "a zstd file", "unpack it, and give the bzImage inside"),
    (b"!<arch>\ndebian", "a Debian package", "give it as deb:FILE"),
    (b"070701", "a cpio archive, such as an initramfs", "give the kernel beside it"),
    (b"MZ", "an EFI program, but no x86 kernel", "give an x86 bzImage"),
];

/// The release (`uname -r`) in the header of the bzImage `content`, which was read from `path`.
///
/// # Errors
/// If it is no bzImage: what it is instead.
pub fn release(content: &[u8], path: &Path) -> Result<String, Failure> {
    if content.get(MAGIC_AT..MAGIC_AT + 4) != Some(b"HdrS") {
        return Err(not_a_bzimage(content, path));
    }
    let version = content
        .get(VERSION_POINTER_AT..VERSION_POINTER_AT + 2)
        .map_or(0, |bytes| VERSION_BASE + usize::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let text: Vec<u8> = content
        .get(version..)
        .unwrap_or_default()
        .iter()
        .copied()
        .take(256)
        .take_while(|byte| byte.is_ascii_graphic())
        .collect();
    match String::from_utf8(text) {
        Ok(release) if version > VERSION_BASE && !release.is_empty() => Ok(release),
        _ => Err(Failure::new(
            FailureClass::KernelUnusable,
            format!("{}: the bzImage's header names no release", path.display()),
        )
        .hint("build it again; images older than Linux 2.6 are not supported")),
    }
}

fn not_a_bzimage(content: &[u8], path: &Path) -> Failure {
    let known = KINDS.iter().find(|(magic, _, _)| content.starts_with(magic));
    let (kind, hint) = known.map_or(
        ("a file of an unknown kind", "give an x86 bzImage: arch/x86/boot/bzImage or vmlinuz"),
        |(_, kind, hint)| (*kind, *hint),
    );
    let kind = if content.is_empty() { "empty" } else { kind };
    Failure::new(
        FailureClass::KernelUnusable,
        format!("{} is no bzImage, it is {kind}", path.display()),
    )
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(pointer: u16, version: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[MAGIC_AT..MAGIC_AT + 4].copy_from_slice(b"HdrS");
        image[VERSION_POINTER_AT..VERSION_POINTER_AT + 2].copy_from_slice(&pointer.to_le_bytes());
        let at = VERSION_BASE + usize::from(pointer);
        if at < image.len() {
            image[at..at + version.len()].copy_from_slice(version);
        }
        image
    }

    #[test]
    fn the_release_is_the_first_word_of_the_version() {
        let image = image(0x100, b"6.1.0-50-cloud-amd64 (x@y) #1 SMP\0");
        assert_eq!(release(&image, Path::new("k")).unwrap(), "6.1.0-50-cloud-amd64");
    }

    #[test]
    fn broken_headers_are_told_not_guessed() {
        for image in [image(0, b""), image(0xffff, b""), image(0x100, b"\0"), image(0x100, b" x\0")]
        {
            let failure = release(&image, Path::new("k")).unwrap_err();
            assert!(failure.title.contains("names no release"), "{failure}");
        }
    }

    #[test]
    fn says_what_a_file_is_that_is_no_bzimage() {
        let said = |content: &[u8]| release(content, Path::new("k")).unwrap_err().to_string();
        assert!(said(b"\x7fELF\x02").contains("ELF"));
        assert!(said(b"!<arch>\ndebian-binary").contains("deb:FILE"));
        assert!(said(b"").contains("it is empty"));
        assert!(said(b"hello").contains("unknown kind"));
    }
}
