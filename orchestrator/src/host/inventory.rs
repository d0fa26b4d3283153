//! What the host has besides what a run records of it: memory to be had, and load.

use std::path::Path;

/// Memory and load of the host, read from `/proc`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Inventory {
    /// Memory that can still be had, in MiB.
    pub available_mib: u64,
    /// Load average over one minute.
    pub load: f64,
}

impl Inventory {
    /// Reads it below `root`, which is `/` but for tests. What cannot be read stays zero.
    pub fn read(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let meminfo = read("proc/meminfo");
        let available_kib: u64 = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))
            .and_then(|value| value.trim().trim_end_matches(" kB").parse().ok())
            .unwrap_or_default();
        let loadavg = read("proc/loadavg");
        let load = loadavg.split_whitespace().next().and_then(|word| word.parse().ok());
        Self { available_mib: available_kib / 1024, load: load.unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_host_from_its_files_and_what_is_missing_stays_zero() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Inventory::read(root.path()), Inventory::default());
        std::fs::create_dir(root.path().join("proc")).unwrap();
        let write = |path: &str, text: &str| std::fs::write(root.path().join(path), text).unwrap();
        write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable:   1048576 kB\n");
        write("proc/loadavg", "1.25 0.5 0.1 1/100 42\n");
        let inventory = Inventory::read(root.path());
        assert_eq!(inventory, Inventory { available_mib: 1024, load: 1.25 });
    }
}
