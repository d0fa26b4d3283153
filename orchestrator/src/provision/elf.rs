//! What an ELF program needs to be started: its interpreter and its libraries.

use object::Endianness;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

/// What the dynamic loader reads of a program or library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ElfFacts {
    /// Machine and class: objects of one process agree in both.
    pub machine: u16,
    /// Whether it is a 64-bit object.
    pub is_64: bool,
    /// The loader it names; `None` for static programs and libraries.
    pub interpreter: Option<String>,
    /// Sonames of the libraries it names.
    pub needed: Vec<String>,
    /// Folders it wants searched first, in order; `$ORIGIN` not yet replaced.
    pub search: Vec<String>,
}

/// The facts of `content`; `None` if it is no ELF file or a broken one.
pub fn facts(content: &[u8]) -> Option<ElfFacts> {
    match object::FileKind::parse(content).ok()? {
        object::FileKind::Elf64 => read::<FileHeader64<Endianness>>(content),
        object::FileKind::Elf32 => read::<FileHeader32<Endianness>>(content),
        _ => None,
    }
}

fn read<H: FileHeader<Endian = Endianness>>(content: &[u8]) -> Option<ElfFacts> {
    let header = H::parse(content).ok()?;
    let endian = header.endian().ok()?;
    let mut facts = ElfFacts {
        machine: header.e_machine(endian).0,
        is_64: header.is_class_64(),
        ..ElfFacts::default()
    };
    let segments = header.program_headers(endian, content).ok()?;
    let dynamic = segments.iter().find_map(|segment| segment.dynamic(endian, content).ok()?);
    let interpreter =
        segments.iter().find_map(|segment| segment.interpreter(endian, content).ok()?);
    facts.interpreter = interpreter.map(|path| String::from_utf8_lossy(path).into_owned());
    let Some(dynamic) = dynamic else { return Some(facts) };
    let value = |tag: elf::DynamicTag| {
        let entry = dynamic.iter().find(|entry| entry.tag(endian) == tag)?;
        Some(entry.d_val(endian).into())
    };
    let (address, size) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
    let strings = segments
        .iter()
        .find_map(|segment| segment.data_range(endian, content, address, size).ok()?)?;
    let string = |at: u64| {
        let tail = strings.get(usize::try_from(at).ok()?..)?;
        Some(String::from_utf8_lossy(tail.split(|byte| *byte == 0).next()?).into_owned())
    };
    let all = |tag: elf::DynamicTag| {
        let entries = dynamic.iter().filter(move |entry| entry.tag(endian) == tag);
        entries.filter_map(|entry| string(entry.d_val(endian).into())).collect::<Vec<_>>()
    };
    facts.needed = all(elf::DT_NEEDED);
    let paths = match all(elf::DT_RUNPATH) {
        paths if paths.is_empty() => all(elf::DT_RPATH),
        paths => paths,
    };
    let folders = paths.iter().flat_map(|path| path.split(':')).filter(|folder| !folder.is_empty());
    facts.search = folders.map(str::to_owned).collect();
    Some(facts)
}

/// The `key=value` entries of a kernel module's `.modinfo` section; `None` if it has none.
pub fn modinfo(module: &[u8]) -> Option<Vec<(String, String)>> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(module).ok()?;
    let data = file.section_by_name(".modinfo")?.data().ok()?;
    let entries = data.split(|byte| *byte == 0).filter_map(|entry| {
        let (key, value) = std::str::from_utf8(entry).ok()?.split_once('=')?;
        Some((key.to_owned(), value.to_owned()))
    });
    Some(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_this_test_program_needs() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let facts = facts(&own).unwrap();
        assert!(facts.is_64);
        assert!(facts.interpreter.unwrap().contains("ld-linux"));
        assert!(facts.needed.iter().any(|name| name.starts_with("libc.so")), "{:?}", facts.needed);
    }

    #[test]
    fn what_is_no_elf_file_has_no_facts() {
        assert_eq!(facts(b"#!/bin/sh\n"), None);
        assert_eq!(facts(b"\x7fELF"), None);
        assert_eq!(modinfo(b"\x7fELF"), None);
    }
}
