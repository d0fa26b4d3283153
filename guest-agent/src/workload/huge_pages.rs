//! Transparent huge pages for who asks for them.

use std::fs;

use kduel_protocol::TrialProblem;

use super::failed;
use crate::sys::Mapping;

/// The size of one, in bytes.
const SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
/// Who is given any.
const ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
/// What this process has.
const OWN: &str = "/proc/self/smaps_rollup";

/// Huge pages are given as long as this lives.
#[derive(Debug)]
pub struct HugePages {
    size: usize,
    /// Kernels give none at all in less than 512 MiB of memory, and are asked to.
    was_never: bool,
}

impl HugePages {
    /// Makes sure that the kernel gives them.
    pub fn allow() -> Result<Self, TrialProblem> {
        let lacking = |message: String| TrialProblem::Unsupported { message };
        let size = fs::read_to_string(SIZE).ok().and_then(|size| size.trim().parse().ok());
        let size = size.ok_or_else(|| lacking("no transparent huge pages".to_owned()))?;
        let was_never = fs::read_to_string(ENABLED).is_ok_and(|text| text.contains("[never]"));
        if was_never {
            fs::write(ENABLED, "madvise").map_err(|error| {
                lacking(format!("huge pages are off; writing {ENABLED}: {error}"))
            })?;
        }
        let this = Self { size, was_never };
        let mut one = Mapping::huge(size, 1).map_err(|error| failed("mapping memory", error))?;
        one.touch(size, 1);
        if !has_some(&fs::read_to_string(OWN).unwrap_or_default()) {
            return Err(lacking("the kernel gave small pages for a huge one".to_owned()));
        }
        Ok(this)
    }

    /// Of one page, in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if self.was_never {
            let _ = fs::write(ENABLED, "never");
        }
    }
}

/// Whether a process's memory map tells of huge pages.
fn has_some(smaps: &str) -> bool {
    let line = smaps.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
    line.is_some_and(|size| size.trim() != "0 kB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_told_from_their_absence() {
        assert!(has_some("Rss: 10 kB\nAnonHugePages:      2048 kB\n"));
        assert!(!has_some("Rss: 10 kB\nAnonHugePages:         0 kB\n"));
        assert!(!has_some(""));
    }
}
