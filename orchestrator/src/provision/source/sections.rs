//! How large the parts of a `vmlinux` are.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use object::{Object as _, ObjectSection as _, SectionKind};

use crate::fault::{Failure, FailureClass};

/// The sections that are loaded, by name, in bytes.
///
/// # Errors
/// If the file cannot be read, or is no ELF file.
pub fn sections(vmlinux: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let content = fs::read(vmlinux).map_err(|error| Failure::host_io("read", vmlinux, &error))?;
    let file = object::File::parse(&*content).map_err(|error| {
        let title = format!("{} cannot be used: {error}", vmlinux.display());
        Failure::new(FailureClass::HostIo, title)
    })?;
    let loaded = file.sections().filter(|section| section.address() != 0);
    let loaded = loaded.filter(|section| section.kind() != SectionKind::Debug);
    Ok(loaded
        .filter_map(|section| Some((section.name().ok()?.to_owned(), section.size())))
        .filter(|(_, size)| *size > 0)
        .collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_code_of_this_very_program_has_a_size() {
        let sections = super::sections(&std::env::current_exe().unwrap()).unwrap();
        assert!(sections[".text"] > 1000);
        assert!(!sections.contains_key(".debug_info"));
    }
}
