//! Where in the source a kernel's code comes from, by the debug information of its `vmlinux`.

use std::borrow::Cow;
use std::io::Read as _;
use std::path::Path;
use std::rc::Rc;

use gimli::{Dwarf, EndianRcSlice, RunTimeEndian, SectionId};
use object::{CompressionFormat, Object as _, ObjectSection as _};

use crate::fault::{Failure, FailureClass};

type Bytes = EndianRcSlice<RunTimeEndian>;

/// Top folders of the kernel's sources: what is before them is the builder's own.
const TOP: &[&str] = &[
    "arch", "block", "certs", "crypto", "drivers", "fs", "include", "init", "io_uring", "ipc",
    "kernel", "lib", "mm", "net", "rust", "security", "sound", "virt",
];

/// The debug information of one ELF file.
pub struct DebugInfo {
    /// GNU build id, lower-case hex.
    pub build_id: String,
    lines: addr2line::Context<Bytes>,
}

impl DebugInfo {
    /// Reads a `vmlinux` or another ELF file.
    ///
    /// # Errors
    ///
    /// `HostIo` if the file cannot be read; `Usage` if it is no ELF file with debug information and a
    /// build id.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let content = std::fs::read(path).map_err(|e| Failure::host_io("read", path, &e))?;
        let broken = |why: &str| {
            let title = format!("{} cannot be used: {why}", path.display());
            Failure::new(FailureClass::Usage, title).hint(
                "wanted is the uncompressed vmlinux with debug information; Debian has it in linux-image-*-dbg",
            )
        };
        let file = object::File::parse(&*content).map_err(|e| broken(&e.to_string()))?;
        let build_id =
            file.build_id().ok().flatten().ok_or_else(|| broken("it has no build id"))?;
        if file.section_by_name(".debug_line").is_none() {
            return Err(broken("it has no debug information"));
        }
        let endian =
            if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let load = |id: SectionId| -> Result<Bytes, String> {
            let section = file.section_by_name(id.name());
            let data = section.map_or_else(|| Ok(Cow::default()), |section| unpacked(&section));
            Ok(EndianRcSlice::new(Rc::from(&*data?), endian))
        };
        let lines = Dwarf::load(load).and_then(|dwarf| {
            addr2line::Context::from_dwarf(dwarf).map_err(|error| error.to_string())
        });
        let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { build_id, lines: lines.map_err(|error| broken(&error))? })
    }

    /// `kernel/fork.c:2034`: the line that the instruction at an address was made from.
    pub fn line(&self, address: u64) -> Option<String> {
        // The library adds one to what it looks up.
        address.checked_add(1)?;
        let location = self.lines.find_location(address).ok()??;
        Some(format!("{}:{}", in_tree(location.file?), location.line?))
    }
}

/// A section's bytes, whether they are compressed in the file or not.
fn unpacked<'a>(section: &object::Section<'a, '_>) -> Result<Cow<'a, [u8]>, String> {
    let data = section.compressed_data().map_err(|error| error.to_string())?;
    match data.format {
        CompressionFormat::None => Ok(Cow::Borrowed(data.data)),
        CompressionFormat::Zlib => {
            let mut bytes = Vec::new();
            let read = flate2::read::ZlibDecoder::new(data.data).read_to_end(&mut bytes);
            read.map(|_| Cow::Owned(bytes)).map_err(|error| error.to_string())
        }
        CompressionFormat::Zstandard => {
            zstd::decode_all(data.data).map(Cow::Owned).map_err(|error| error.to_string())
        }
        _ => Err("its debug information is compressed in an unknown way".to_owned()),
    }
}

/// The path within the kernel's tree, if it can be told.
fn in_tree(path: &str) -> &str {
    let starts = path.match_indices('/').map(|(slash, _)| slash + 1);
    let is_top =
        |start: &usize| TOP.contains(&path[*start..].split('/').next().unwrap_or_default());
    // The first that is one: `include` in `arch/x86/include/asm` is no top folder.
    let begins_with_top = is_top(&0) && !path.starts_with('/');
    let start = if begins_with_top { Some(0) } else { starts.into_iter().find(is_top) };
    &path[start.unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use object::ObjectSymbol as _;

    use super::*;

    #[inline(never)]
    fn a_function_that_is_looked_up(of: u32) -> u32 {
        std::hint::black_box(of) + 1
    }

    #[test]
    fn lines_of_this_very_program_are_found() {
        assert_eq!(a_function_that_is_looked_up(1), 2);
        let program = std::env::current_exe().unwrap();
        let content = std::fs::read(&program).unwrap();
        let file = object::File::parse(&*content).unwrap();
        let own = |symbol: &object::Symbol<'_, '_>| {
            symbol.name().is_ok_and(|name| name.contains("a_function_that_is_looked_up"))
        };
        let symbol = file.symbols().find(own).unwrap();
        let info = DebugInfo::read(&program).unwrap();
        assert_eq!(info.build_id.len(), 40);
        let line = info.line(symbol.address()).unwrap();
        assert!(line.contains("provision/debug_info.rs:"), "{line}");
        assert_eq!(info.line(u64::MAX), None);
    }

    #[test]
    fn what_has_no_debug_information_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinux");
        let refused = || DebugInfo::read(&path).err().unwrap();
        assert_eq!(refused().class, FailureClass::HostIo);
        std::fs::write(&path, b"not ELF").unwrap();
        let failure = refused();
        assert_eq!(failure.class, FailureClass::Usage);
        assert!(failure.title.contains("vmlinux cannot be used"), "{failure}");
    }

    #[test]
    fn paths_are_those_in_the_tree() {
        let table = [
            ("/build/linux-6.1.176/kernel/fork.c", "kernel/fork.c"),
            ("/build/x/arch/x86/include/asm/page.h", "arch/x86/include/asm/page.h"),
            ("kernel/fork.c", "kernel/fork.c"),
            ("./include/linux/mm.h", "include/linux/mm.h"),
            ("other.c", "other.c"),
        ];
        for (path, shown) in table {
            assert_eq!(in_tree(path), shown);
        }
    }
}
