//! The host's files below a root, so that tests can bring hosts of their own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::host::topology::CpuList;
use crate::text;

/// Files below a root, which is `/` outside of tests. What is not there is `None`.
#[derive(Debug, Clone)]
pub struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    /// Below `root`.
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Where a file of the host is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Whether there is such a file or folder.
    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A file's text without white space around it.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that holds one number.
    pub fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, sorted.
    pub fn names(&self, path: &str) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.path(path)).ok()?;
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<String> = entries.flatten().map(name).collect();
        names.sort();
        Some(names)
    }

    /// Numbers of the entries of a folder that are called `prefix` and a number, ascending.
    pub fn numbered(&self, path: &str, prefix: &str) -> Option<Vec<u32>> {
        let names = self.names(path)?;
        let number = |name: &String| name.strip_prefix(prefix)?.parse().ok();
        let mut numbers: Vec<u32> = names.iter().filter_map(number).collect();
        numbers.sort_unstable();
        Some(numbers)
    }

    /// A file of every CPU that has it, by the CPU's number; `None` where none has.
    pub fn of_cpus(&self, file: &str) -> Option<BTreeMap<u32, String>> {
        let cpus = self.numbered(CPUS, "cpu")?;
        let text = |cpu: u32| Some((cpu, self.text(&format!("{CPUS}/cpu{cpu}/{file}"))?));
        let found: BTreeMap<u32, String> = cpus.into_iter().filter_map(text).collect();
        (!found.is_empty()).then_some(found)
    }

    /// The CPUs that are online.
    pub fn online(&self) -> Option<CpuList> {
        CpuList::parse(&self.text(&format!("{CPUS}/online"))?)
    }

    /// A field of `/proc/cpuinfo`, of every CPU.
    pub fn cpuinfo(&self, name: &str) -> Option<Vec<String>> {
        let text = self.text("proc/cpuinfo")?;
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        let found: Vec<String> = fields
            .filter(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
            .collect();
        (!found.is_empty()).then_some(found)
    }

    /// A line of `/proc/meminfo`, in KiB.
    pub fn meminfo_kib(&self, name: &str) -> Option<u64> {
        let text = self.text("proc/meminfo")?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().trim_end_matches(" kB").parse().ok()
    }
}

/// Where the kernel tells about CPUs.
pub const CPUS: &str = "sys/devices/system/cpu";

/// The value in force of a file that lists all and puts brackets around one; any other text as it is.
pub fn in_force(text: &str) -> &str {
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or_else(|| text.trim(), |(word, _)| word)
}

/// How many have which value: `powersave on 6 CPUs, performance on 2 CPUs`, the most frequent first.
pub fn tally<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let show =
        |(value, n): (&str, usize)| format!("{} on {}", text::escape(value), text::count(n, "CPU"));
    counts.into_iter().map(show).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_in_force_is_the_one_in_brackets() {
        assert_eq!(in_force("always [madvise] never\n"), "madvise");
        assert_eq!(in_force("performance\n"), "performance");
    }

    #[test]
    fn values_are_counted() {
        let values = ["performance", "powersave", "powersave"];
        assert_eq!(tally(values), "powersave on 2 CPUs, performance on 1 CPU");
    }

    #[test]
    fn what_is_not_there_is_absent() {
        let root = tempfile::tempdir().unwrap();
        let files = HostFiles::new(root.path());
        assert_eq!((files.text("x"), files.names("x"), files.number("x")), (None, None, None));
        assert_eq!((files.of_cpus("x"), files.online(), files.cpuinfo("x")), (None, None, None));
        assert_eq!(files.meminfo_kib("MemTotal"), None);
    }
}
