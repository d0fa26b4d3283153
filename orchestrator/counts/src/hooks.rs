//! Which addresses of a kernel change what a vCPU is doing.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::symbols::Symbols;

/// What the execution of a block at a certain address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// A system call came in; its number is in `rax`.
    Syscall { compat: bool },
    /// An exception came in; `fault` returns to the instruction that raised it.
    Exception { vector: u8, error_code: bool, fault: bool },
    /// An interrupt of a device came in.
    Interrupt { vector: u8 },
    /// An interrupt of the system's own came in.
    SystemInterrupt { place: u16 },
    /// Softirqs run until this function returns.
    Softirq,
    /// `rdi` gives way to `rsi`.
    Switch,
    /// The current task made the task in `rdi`.
    NewTask,
    /// The current task is the idle one.
    Idle,
    /// The task in `rdi` gets the name at `rsi`.
    Name,
}

/// (name behind `asm_exc_`, vector, pushes an error code, is a fault)
const EXCEPTIONS: [(&str, u8, bool, bool); 21] = [
    ("divide_error", 0, false, true),
    ("debug", 1, false, false),
    ("nmi", 2, false, false),
    ("int3", 3, false, false),
    ("overflow", 4, false, false),
    ("bounds", 5, false, true),
    ("invalid_op", 6, false, true),
    ("device_not_available", 7, false, true),
    ("double_fault", 8, true, false),
    ("coproc_segment_overrun", 9, false, true),
    ("invalid_tss", 10, true, true),
    ("segment_not_present", 11, true, true),
    ("stack_segment", 12, true, true),
    ("general_protection", 13, true, true),
    ("page_fault", 14, true, true),
    ("coprocessor_error", 16, false, true),
    ("alignment_check", 17, true, true),
    ("machine_check", 18, false, false),
    ("simd_coprocessor_error", 19, false, true),
    ("virtualization_exception", 20, false, true),
    ("control_protection", 21, true, true),
];

const FUNCTIONS: [(&str, Hook); 12] = [
    ("entry_SYSCALL_64", Hook::Syscall { compat: false }),
    ("entry_SYSCALL_compat", Hook::Syscall { compat: true }),
    ("entry_SYSENTER_compat", Hook::Syscall { compat: true }),
    ("entry_INT80_compat", Hook::Syscall { compat: true }),
    ("asm_int80_emulation", Hook::Syscall { compat: true }),
    ("__do_softirq", Hook::Softirq),
    ("handle_softirqs", Hook::Softirq),
    ("__switch_to", Hook::Switch),
    ("wake_up_new_task", Hook::NewTask),
    ("do_idle", Hook::Idle),
    ("cpu_startup_entry", Hook::Idle),
    ("__set_task_comm", Hook::Name),
];

/// Without one name of each, something cannot be told apart.
const NEEDED: [&[&str]; 10] = [
    &["entry_SYSCALL_64"],
    &["asm_exc_page_fault"],
    &["asm_sysvec_apic_timer_interrupt"],
    &["irq_entries_start"],
    &["spurious_entries_start"],
    &["__entry_text_start"],
    &["handle_softirqs", "__do_softirq"],
    &["__switch_to"],
    &["wake_up_new_task"],
    &["do_idle", "cpu_startup_entry"],
];

/// Functions that do nothing but wait for another CPU or for time to pass.
const WAITING: [&str; 19] = [
    "native_queued_spin_lock_slowpath",
    "__pv_queued_spin_lock_slowpath",
    "queued_spin_lock_slowpath",
    "queued_read_lock_slowpath",
    "queued_write_lock_slowpath",
    "osq_lock",
    "mutex_spin_on_owner",
    "rwsem_spin_on_owner",
    "rwsem_optimistic_spin",
    "csd_lock_wait",
    "__csd_lock_wait",
    "delay_loop",
    "delay_tsc",
    "delay_halt",
    "delay_halt_tpause",
    "__delay",
    "__udelay",
    "__ndelay",
    "__const_udelay",
];

/// The first vector that a device may have.
const FIRST_DEVICE_VECTOR: u64 = 0x20;

/// No kernel has fewer of them; their number tells how long a stub is.
const FEWEST_DEVICE_VECTORS: u64 = 0xc0;

/// The addresses of one kernel that change what a vCPU is doing.
#[derive(Clone, Debug, Default)]
pub struct Hooks {
    at: BTreeMap<u64, Hook>,
    waiting: Vec<Range<u64>>,
    entry_text: Range<u64>,
    system_interrupts: Vec<String>,
    missing: Vec<&'static str>,
}

impl Hooks {
    /// Finds the functions among a kernel's symbols.
    pub fn new(symbols: &Symbols) -> Self {
        let mut hooks = Self::default();
        for (name, hook) in FUNCTIONS {
            if let Some(address) = symbols.address(name) {
                hooks.at.insert(address, hook);
            }
        }
        for symbol in symbols.iter() {
            if WAITING.contains(&symbol.name.as_str()) {
                hooks.waiting.push(symbol.address..symbols.end_of(symbol.address));
            }
            if let Some(name) = symbol.name.strip_prefix("asm_exc_") {
                hooks.add_exception(symbol.address, name);
            }
            if let Some(name) = symbol.name.strip_prefix("asm_sysvec_") {
                let place = u16::try_from(hooks.system_interrupts.len()).unwrap_or(u16::MAX);
                hooks.system_interrupts.push(name.to_owned());
                hooks.at.insert(symbol.address, Hook::SystemInterrupt { place });
            }
        }
        hooks.add_device_stubs(symbols);
        if let (Some(start), Some(end)) =
            (symbols.address("__entry_text_start"), symbols.address("__entry_text_end"))
        {
            hooks.entry_text = start..end;
        }
        let known = |name: &&str| symbols.address(name).is_some();
        let lacking = NEEDED.iter().filter(|names| !names.iter().any(known));
        hooks.missing = lacking.map(|names| names[0]).collect();
        hooks
    }

    fn add_exception(&mut self, address: u64, name: &str) {
        // Variants for NMIs from a hypervisor and the like carry a prefix.
        let Some(&(_, vector, error_code, fault)) =
            EXCEPTIONS.iter().find(|(known, ..)| *known == name)
        else {
            return;
        };
        self.at.insert(address, Hook::Exception { vector, error_code, fault });
    }

    /// The stubs of the device vectors lie behind one another, eight or sixteen bytes each.
    fn add_device_stubs(&mut self, symbols: &Symbols) {
        let (Some(start), Some(end)) =
            (symbols.address("irq_entries_start"), symbols.address("spurious_entries_start"))
        else {
            self.missing.push("irq_entries_start");
            return;
        };
        let stride = if end.saturating_sub(start) >= 16 * FEWEST_DEVICE_VECTORS { 16 } else { 8 };
        for vector in FIRST_DEVICE_VECTOR..=0xff {
            let address = start.saturating_add((vector - FIRST_DEVICE_VECTOR) * stride);
            let Ok(vector) = u8::try_from(vector) else { continue };
            if address < end {
                self.at.insert(address, Hook::Interrupt { vector });
            }
        }
    }

    /// What happens when a block at this address is executed.
    pub(crate) fn at(&self, address: u64) -> Option<Hook> {
        self.at.get(&address).copied()
    }

    /// Whether code at this address only waits.
    pub(crate) fn waits(&self, address: u64) -> bool {
        self.waiting.iter().any(|range| range.contains(&address))
    }

    /// Whether an `iret` at this address ends an entry; others only serialise.
    pub(crate) fn ends_entry(&self, address: u64) -> bool {
        self.entry_text.contains(&address)
    }

    /// Whether nothing is known of the kernel.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    /// Functions that are needed and not among the symbols: what they begin is not told apart.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Name of a system interrupt by its place, as in `apic_timer_interrupt`.
    pub fn system_interrupt(&self, place: u16) -> Option<&str> {
        self.system_interrupts.get(usize::from(place)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hooks(text: &str) -> Hooks {
        Hooks::new(&Symbols::parse(text).expect("well-formed"))
    }

    #[test]
    fn a_kernel_that_lacks_a_function_says_which() {
        let hooks = hooks("1000 T __do_softirq\n2000 T entry_SYSCALL_64\n");
        assert_eq!(hooks.at(0x1000), Some(Hook::Softirq));
        assert!(!hooks.missing().contains(&"handle_softirqs"), "one of two names is enough");
        assert!(!hooks.missing().contains(&"entry_SYSCALL_64"));
        assert!(hooks.missing().contains(&"__switch_to"));
    }

    #[test]
    fn stubs_of_device_vectors_are_eight_or_sixteen_bytes_long() {
        let short = hooks("8000 t irq_entries_start\n8660 t spurious_entries_start\n");
        assert_eq!(short.at(0x8008), Some(Hook::Interrupt { vector: 0x21 }));
        let long = hooks("8000 t irq_entries_start\n8cc0 t spurious_entries_start\n");
        assert_eq!(long.at(0x8008), None);
        assert_eq!(long.at(0x8050), Some(Hook::Interrupt { vector: 0x25 }));
        assert_eq!(long.at(0x8cc0), None, "behind the last stub");
    }

    #[test]
    fn code_that_waits_ends_where_the_next_symbol_begins() {
        let hooks = hooks("100 t before\n200 t osq_lock\n300 t after\n");
        assert!(!hooks.waits(0x1ff) && hooks.waits(0x200) && hooks.waits(0x2ff));
        assert!(!hooks.waits(0x300));
    }
}
