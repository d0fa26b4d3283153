//! Ways into the kernel: system calls, exceptions, interrupts, softirqs.

use std::collections::BTreeSet;

use kduel_counts::{COMPAT, Context, Kind};

use super::count::{Profile, Sums};

/// A way into the kernel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// A system call of the workload's own tasks, by number; none if it was not recorded.
    Syscall(Option<u16>),
    /// An exception in the workload's own tasks, by vector.
    Exception(u8),
    /// An interrupt of a device, by vector.
    Interrupt(u8),
    /// An interrupt of the system's own, by name.
    SystemInterrupt(String),
    /// Deferred work of interrupts.
    Softirq,
}

/// Where system calls come in; labels behind these begin with the same letters.
const SYSCALL_ENTRIES: [&str; 5] = [
    "entry_SYSCALL_64",
    "entry_SYSCALL_compat",
    "entry_SYSENTER_compat",
    "entry_INT80_compat",
    "asm_int80_emulation",
];

/// Names of exceptions, by vector.
const EXCEPTIONS: [(u8, &str); 9] = [
    (0, "divide error"),
    (1, "debug"),
    (2, "NMI"),
    (3, "breakpoint"),
    (6, "invalid opcode"),
    (7, "device not available"),
    (13, "general protection"),
    (14, "page fault"),
    (18, "machine check"),
];

impl Entry {
    /// The entry that a context is, if it is one.
    pub fn of(context: Context, name: &str) -> Option<Self> {
        match context.kind {
            Kind::Syscall(number) if context.own => Some(Self::Syscall(number)),
            Kind::Exception(vector) if context.own => Some(Self::Exception(vector)),
            Kind::Interrupt(vector) => Some(Self::Interrupt(vector)),
            Kind::SystemInterrupt(_) => Some(Self::SystemInterrupt(name.to_owned())),
            Kind::Softirq => Some(Self::Softirq),
            _ => None,
        }
    }

    fn label(&self, base: &Profile, value: &Profile) -> String {
        match self {
            Self::Syscall(None) => "system calls (numbers not recorded)".to_owned(),
            Self::Syscall(Some(number)) => {
                let names = [base, value].map(|side| side.syscalls.get(number));
                let name = names.into_iter().flatten().next().map_or("?", String::as_str);
                let width = if *number < COMPAT { "" } else { ", 32 bits" };
                format!("system call {}{width} {name}", number % COMPAT)
            }
            Self::Exception(vector) => {
                let name = EXCEPTIONS.iter().find(|(known, _)| known == vector);
                format!("exception {vector} {}", name.map_or("", |(_, name)| name))
            }
            Self::Interrupt(vector) => format!("interrupt {vector}"),
            Self::SystemInterrupt(name) => format!("interrupt {name}"),
            Self::Softirq => "softirqs".to_owned(),
        }
    }
}

/// Whether a call of this function is an entry into a context of this kind; `softirqs` is the function
/// that handles them.
pub(super) fn counts_entry(kind: Kind, function: &str, softirqs: &str) -> bool {
    match kind {
        Kind::Syscall(_) => SYSCALL_ENTRIES.contains(&function),
        Kind::Exception(_) => function.starts_with("asm_exc_"),
        Kind::Interrupt(_) => function == "asm_common_interrupt",
        Kind::SystemInterrupt(_) => function.starts_with("asm_sysvec_"),
        Kind::Softirq => function == softirqs,
        Kind::User(_) | Kind::Kernel | Kind::Idle | Kind::Waiting => false,
    }
}

/// A way into the kernel on both sides: how often, and instructions in it without what interrupted
/// it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRow {
    /// As in reports.
    pub label: String,
    /// On the base.
    pub base: Sums,
    /// On the candidate.
    pub value: Sums,
}

/// Every entry that either side has.
pub(super) fn entry_rows(base: &Profile, value: &Profile) -> Vec<EntryRow> {
    let entries: BTreeSet<&Entry> = base.entries.keys().chain(value.entries.keys()).collect();
    let of = |side: &Profile, entry: &Entry| side.entries.get(entry).copied().unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| EntryRow {
            label: entry.label(base, value).trim_end().to_owned(),
            base: of(base, entry),
            value: of(value, entry),
        })
        .collect()
}
