use serde::{Deserialize, Serialize};

use crate::host::files::{CPUS, HostFiles, in_force};

/// One file whose value is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Change {
    /// The setting it belongs to.
    pub what: String,
    /// The file, below the host's root.
    pub path: String,
    /// What it held.
    pub old: String,
    /// What it shall hold.
    pub new: String,
}

/// A setting of the host that a file changes at run time.
#[derive(Debug)]
pub struct Setting {
    /// As `kduel doctor` calls it.
    pub what: &'static str,
    /// In words: what applying does.
    pub does: &'static str,
    wanted: fn(&HostFiles) -> Vec<(String, &'static str)>,
}

/// All settings, in the order in which they are applied; SMT last, as the files of CPUs go with it.
pub const SETTINGS: &[Setting] = &[
    Setting { what: "governor", does: "CPUs at their highest frequency", wanted: governor },
    Setting { what: "boost", does: "no frequency beyond the nominal one", wanted: boost },
    Setting {
        what: "thp",
        does: "huge pages for those who ask",
        wanted: |_| one("sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    },
    Setting {
        what: "ksm",
        does: "no merging of equal pages",
        wanted: |_| one("sys/kernel/mm/ksm/run", "0"),
    },
    Setting {
        what: "numa-balancing",
        does: "pages stay on their nodes",
        wanted: |_| one("proc/sys/kernel/numa_balancing", "0"),
    },
    Setting {
        what: "halt-poll",
        does: "no polling for guests that are idle",
        wanted: |_| one("sys/module/kvm/parameters/halt_poll_ns", "0"),
    },
    Setting {
        what: "smt",
        does: "one thread on each core",
        wanted: |_| one(&format!("{CPUS}/smt/control"), "off"),
    },
];

/// The setting called `what`.
pub fn find(what: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.what == what)
}

impl Setting {
    /// What applying it to the host of `files` would change; `None` if the host does not have it.
    pub fn changes(&self, files: &HostFiles) -> Option<Vec<Change>> {
        let mut there = false;
        let mut changes = Vec::new();
        for (path, new) in (self.wanted)(files) {
            let Some(old) = value(files, &path).filter(|old| is_open(self.what, old)) else {
                continue;
            };
            there = true;
            if old != new {
                changes.push(Change { what: self.what.to_owned(), path, old, new: new.to_owned() });
            }
        }
        there.then_some(changes)
    }
}

/// The value in force of a file.
pub(super) fn value(files: &HostFiles, path: &str) -> Option<String> {
    files.text(path).map(|text| in_force(&text).to_owned())
}

/// Firmware and hardware may have decided on SMT for good.
fn is_open(what: &str, value: &str) -> bool {
    what != "smt" || matches!(value, "on" | "off")
}

fn one(path: &str, value: &'static str) -> Vec<(String, &'static str)> {
    vec![(path.to_owned(), value)]
}

fn governor(files: &HostFiles) -> Vec<(String, &'static str)> {
    let offered = files.of_cpus("cpufreq/scaling_available_governors").unwrap_or_default();
    let can = |(_, governors): &(u32, String)| {
        governors.split_whitespace().any(|governor| governor == "performance")
    };
    let path = |(cpu, _)| (format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"), "performance");
    offered.into_iter().filter(can).map(path).collect()
}

fn boost(files: &HostFiles) -> Vec<(String, &'static str)> {
    let intel = format!("{CPUS}/intel_pstate/no_turbo");
    match files.exists(&intel) {
        true => vec![(intel, "1")],
        false => one(&format!("{CPUS}/cpufreq/boost"), "0"),
    }
}
