//! Classes of instructions, and sums over them.

use std::ops::{Index, IndexMut};

macro_rules! classes {
    ($($name:ident = $text:literal, $doc:literal;)*) => {
        /// What is counted. Each is a number of instructions unless it says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Class {
            $(#[doc = $doc] $name,)*
        }

        impl Class {
            /// Every class, in the order in which files hold them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in reports and JSON.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

classes! {
    Instructions = "instructions", "All, as hardware counts them: those that completed, a repeated string instruction once.";
    Loads = "loads", "Explicit and implicit reads of memory, one for each operand; once for a string instruction.";
    Stores = "stores", "Writes of memory, likewise.";
    Locked = "locked", "With a lock prefix.";
    XchgMemory = "xchg-memory", "`xchg` with memory, which locks without a prefix.";
    Cr3Write = "cr3-writes", "Address space switches and whole TLB flushes.";
    TlbEntry = "tlb-entry-flushes", "`invlpg` and `invpcid`.";
    MsrRead = "msr-reads", "`rdmsr`.";
    MsrWrite = "msr-writes", "`wrmsr` and its relatives.";
    Cpuid = "cpuid", "`cpuid`, which leaves the guest when virtualised.";
    PortIo = "port-io", "`in`, `out` and their string forms.";
    MemoryMappedIo = "mmio", "Accesses to device memory, in accesses.";
    InterruptReturn = "iret", "`iret` of any width.";
    Halt = "hlt", "`hlt`.";
    Pause = "pause", "`pause`.";
    Divide = "divisions", "`div` and `idiv`.";
    UserAccess = "stac-clac", "`stac` and `clac`.";
    ConditionalBranch = "conditional-branches", "Taken or not.";
    IndirectBranch = "indirect-branches", "Jumps and calls through a register or memory; returns are not among them.";
    Call = "calls", "Calls of any kind.";
    Return = "returns", "Near and far returns.";
    StringIterations = "string-iterations", "Steps of string instructions, in iterations.";
    StringBytes = "string-bytes", "What string instructions moved, stored or compared, in bytes.";
}

/// One number for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals([u64; Class::ALL.len()]);

impl Default for Totals {
    fn default() -> Self {
        Self([0; Class::ALL.len()])
    }
}

impl Totals {
    /// Each class with its number, in the order of [`Class::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = (Class, u64)> + '_ {
        Class::ALL.iter().map(|&class| (class, self[class]))
    }

    /// Adds the other's numbers to these.
    pub fn add(&mut self, other: &Self) {
        for (sum, part) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(part);
        }
    }
}

impl Index<Class> for Totals {
    type Output = u64;
    fn index(&self, class: Class) -> &u64 {
        &self.0[class as usize]
    }
}

impl IndexMut<Class> for Totals {
    fn index_mut(&mut self, class: Class) -> &mut u64 {
        &mut self.0[class as usize]
    }
}
