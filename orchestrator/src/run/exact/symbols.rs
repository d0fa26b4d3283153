//! A kernel's symbols: read once in a boot of its own, kept by what they are of.

use std::path::{Path, PathBuf};

use kduel_protocol::{KALLSYMS_END, MAX_LINE_BYTES};
use sha2::{Digest, Sha256};

use crate::boot::{SealedSpec, Step, Watch, run_sealed};
use crate::collect::write_atomically;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::provision::{Kernel, sha256_of};

/// Where the symbols of `kernel` with these modules are kept.
pub fn symbols_path(folder: &Path, kernel: &Kernel) -> PathBuf {
    let key = format!("{} {}", kernel.image_sha256, kernel.initramfs_sha256);
    folder.join(format!("{}.kallsyms", sha256_of(key.as_bytes())))
}

/// Boots `spec` for its symbols and keeps them at `path`.
///
/// # Errors
///
/// What the guest did instead; `OutputMalformed` if they did not arrive whole.
pub fn read_symbols(
    spec: &SealedSpec,
    path: &Path,
    qemu: &Qemu,
    watch: &Watch,
) -> Result<(), Failure> {
    let mut text = SymbolsText::default();
    let end = run_sealed(spec, qemu, watch, &mut |line| text.line(line).map(|()| Step::On));
    end.outcome?;
    let text = text.finish()?;
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Failure::host_io("make", folder, &e))?;
    }
    write_atomically(path, text.as_bytes())
}

/// Lines of symbols, believed only as far as the last line proves.
#[derive(Debug, Default)]
struct SymbolsText {
    text: String,
    lines: u64,
    hash: Sha256,
    proven: bool,
}

impl SymbolsText {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        if self.proven || line.len() >= MAX_LINE_BYTES {
            return Err(malformed("a line behind the end of the symbols"));
        }
        if let Some(claim) = line.strip_prefix(KALLSYMS_END) {
            let digest: String =
                self.hash.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
            self.proven = claim.trim() == format!("{digest} {}", self.lines);
            return if self.proven { Ok(()) } else { Err(malformed("the checksum does not fit")) };
        }
        self.hash.update(line.as_bytes());
        self.hash.update(b"\n");
        self.lines += 1;
        self.text.push_str(line);
        self.text.push('\n');
        Ok(())
    }

    fn finish(self) -> Result<String, Failure> {
        if self.proven { Ok(self.text) } else { Err(malformed("their end is missing")) }
    }
}

fn malformed(why: &str) -> Failure {
    let title = format!("the kernel's symbols did not arrive whole: {why}");
    Failure::new(FailureClass::OutputMalformed, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<String, FailureClass> {
        let mut text = SymbolsText::default();
        for line in lines {
            text.line(line).map_err(|failure| failure.class)?;
        }
        text.finish().map_err(|failure| failure.class)
    }

    #[test]
    fn symbols_are_believed_only_whole() {
        let lines = ["ffffffff81000000 T a", "ffffffff81000010 t b"];
        let digest = sha256_of(format!("{}\n{}\n", lines[0], lines[1]).as_bytes());
        let end = format!("{KALLSYMS_END}{digest} 2");
        assert_eq!(read(&[lines[0], lines[1], &end]).unwrap().lines().count(), 2);
        let bad = Err(FailureClass::OutputMalformed);
        assert_eq!(read(&lines), bad);
        assert_eq!(read(&[lines[1], lines[0], &end]), bad);
        assert_eq!(read(&[lines[0], &end]), bad);
        assert_eq!(read(&[lines[0], lines[1], &end, "more"]), bad);
    }
}
