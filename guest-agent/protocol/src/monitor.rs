use serde::{Deserialize, Serialize};

/// What is watched beside the kept iterations of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// The columns of procps's vmstat at an interval, and what counters of `/proc/stat` and
    /// `/proc/vmstat` grew by.
    Vmstat,
    /// Interrupts and softirqs by their names.
    Interrupts,
    /// What `/proc/schedstat` counts, over all CPUs.
    Schedstat,
    /// Time under pressure, from `/proc/pressure`.
    Psi,
    /// What getrusage(2) says of the workload's process and the children it has waited for.
    Rusage,
    /// Counters of perf_event_open(2) for the workload's tasks, per operation.
    PerfStat,
    /// Sampled functions and their callers.
    Profile,
    /// Warnings and worse in the kernel's log.
    Dmesg,
}

impl Monitor {
    /// In the order in which reports have them.
    pub const ALL: [Self; 8] = [
        Self::Vmstat,
        Self::Interrupts,
        Self::Schedstat,
        Self::Psi,
        Self::Rusage,
        Self::PerfStat,
        Self::Profile,
        Self::Dmesg,
    ];

    /// As written in the document.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vmstat => "vmstat",
            Self::Interrupts => "interrupts",
            Self::Schedstat => "schedstat",
            Self::Psi => "psi",
            Self::Rusage => "rusage",
            Self::PerfStat => "perf-stat",
            Self::Profile => "profile",
            Self::Dmesg => "dmesg",
        }
    }

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|monitor| monitor.name() == name)
    }

    /// Whether its counters are told per operation; others per second of the guest's time.
    pub const fn is_per_operation(self) -> bool {
        matches!(self, Self::Rusage | Self::PerfStat)
    }
}

/// How often monitors look, in the guest's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct MonitorTerms {
    /// Between two rows of vmstat, in milliseconds.
    pub vmstat_ms: u32,
    /// Between two samples of a CPU's profile, in microseconds of its running time.
    pub profile_us: u32,
}

impl MonitorTerms {
    /// Whether nothing was said about them.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for MonitorTerms {
    /// Once a second; a thousand samples a second, less a few so that they drift against ticks.
    fn default() -> Self {
        Self { vmstat_ms: 1000, profile_us: 1003 }
    }
}

/// What was found in the kernel's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogKind {
    /// A condition that the kernel checks with `WARN_ON`.
    Warning,
    /// An oops, a `BUG`, a fault in kernel mode.
    Oops,
    /// A complaint of the lock checker.
    Lockdep,
    /// A task that waits for very long.
    HungTask,
    /// A CPU that makes no progress.
    Stall,
}

impl LogKind {
    /// In reports.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Warning => "a kernel warning",
            Self::Oops => "an oops",
            Self::Lockdep => "a complaint of the lock checker",
            Self::HungTask => "a hung task",
            Self::Stall => "a stall",
        }
    }
}
