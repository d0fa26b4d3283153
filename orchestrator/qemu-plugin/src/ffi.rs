//! QEMU's interface for plugins, version 4, as far as it is used here.
//!
//! Written from its documentation; QEMU 10.0 offers versions 2 to 4 and finds these symbols in itself.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface that this plugin is written for.
pub const VERSION: c_int = 4;

/// `QEMU_PLUGIN_CB_NO_REGS`: the call-back does not look at registers.
pub const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_CB_R_REGS`: the call-back reads registers.
pub const READS_REGISTERS: c_int = 1;
/// `QEMU_PLUGIN_MEM_RW`: reads and writes of memory.
pub const READS_AND_WRITES: c_int = 3;

/// `QEMU_PLUGIN_COND_NE`: the call-back is made where the number is another.
pub const UNEQUAL: c_int = 3;

/// Identifies this plugin to QEMU.
pub type Id = u64;
/// Call-back when a block is translated.
pub type OnTranslation = extern "C" fn(Id, *mut TranslationBlock);
/// Call-back when a vCPU begins.
pub type OnVcpu = extern "C" fn(Id, c_uint);
/// Call-back when a block or an instruction is executed.
pub type OnExecution = extern "C" fn(c_uint, *mut c_void);
/// Call-back when an instruction accesses memory.
pub type OnAccess = extern "C" fn(c_uint, u32, u64, *mut c_void);
/// Call-back when QEMU exits.
pub type OnExit = extern "C" fn(Id, *mut c_void);

/// A block that is being translated.
#[repr(C)]
pub struct TranslationBlock([u8; 0]);

/// One of its instructions.
#[repr(C)]
pub struct Insn([u8; 0]);

/// Where an access went.
#[repr(C)]
pub struct HardwareAddress([u8; 0]);

/// A register of a vCPU.
#[repr(C)]
pub struct RegisterHandle([u8; 0]);

/// What QEMU says about itself; the rest of the structure is not used.
#[repr(C)]
pub struct Info {
    /// The architecture that is emulated.
    pub target_name: *const c_char,
    /// Lowest version of the interface offered.
    pub version_min: c_int,
    /// Highest version offered.
    pub version_cur: c_int,
    /// A whole machine, not a process.
    pub system_emulation: bool,
    /// Number of vCPUs at the start.
    pub smp_vcpus: c_int,
    /// Number that there may be.
    pub max_vcpus: c_int,
}

/// GLib's growing array of bytes.
#[repr(C)]
pub struct ByteArray {
    /// The bytes.
    pub data: *mut u8,
    /// How many there are.
    pub len: c_uint,
}

/// GLib's growing array of anything.
#[repr(C)]
pub struct Array {
    /// The items.
    pub data: *mut c_char,
    /// How many there are.
    pub len: c_uint,
}

/// A register and its name.
#[repr(C)]
pub struct RegisterDescriptor {
    /// To read it by.
    pub handle: *mut RegisterHandle,
    /// As a debugger calls it.
    pub name: *const c_char,
    /// The group that it belongs to.
    pub feature: *const c_char,
}

/// Numbers of every vCPU.
#[repr(C)]
pub struct Scoreboard([u8; 0]);

/// A number that every vCPU has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PerVcpu {
    /// Where it is kept.
    pub scoreboard: *mut Scoreboard,
    /// At which distance from the beginning.
    pub offset: usize,
}

#[expect(unsafe_code, reason = "declares what QEMU and GLib document under these names")]
unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(id: Id, cb: OnVcpu);
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, cb: OnTranslation);
    pub fn qemu_plugin_register_atexit_cb(id: Id, cb: OnExit, userdata: *mut c_void);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut TranslationBlock,
        cb: OnExecution,
        flags: c_int,
        userdata: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_tb_exec_cond_cb(
        tb: *mut TranslationBlock,
        cb: OnExecution,
        flags: c_int,
        condition: c_int,
        number: PerVcpu,
        immediate: u64,
        userdata: *mut c_void,
    );
    pub fn qemu_plugin_scoreboard_new(element_size: usize) -> *mut Scoreboard;
    pub fn qemu_plugin_u64_set(number: PerVcpu, vcpu: c_uint, value: u64);
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        cb: OnExecution,
        flags: c_int,
        userdata: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        cb: OnAccess,
        flags: c_int,
        rw: c_int,
        userdata: *mut c_void,
    );
    pub fn qemu_plugin_tb_n_insns(tb: *const TranslationBlock) -> usize;
    pub fn qemu_plugin_tb_vaddr(tb: *const TranslationBlock) -> u64;
    pub fn qemu_plugin_tb_get_insn(tb: *const TranslationBlock, index: usize) -> *mut Insn;
    pub fn qemu_plugin_insn_data(insn: *const Insn, dest: *mut c_void, len: usize) -> usize;
    pub fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    pub fn qemu_plugin_get_hwaddr(info: u32, address: u64) -> *mut HardwareAddress;
    pub fn qemu_plugin_hwaddr_is_io(address: *const HardwareAddress) -> bool;
    pub fn qemu_plugin_get_registers() -> *mut Array;
    pub fn qemu_plugin_read_register(handle: *mut RegisterHandle, into: *mut ByteArray) -> c_int;
    pub fn qemu_plugin_read_memory_vaddr(addr: u64, into: *mut ByteArray, len: usize) -> bool;
    pub fn g_byte_array_new() -> *mut ByteArray;
    pub fn g_byte_array_set_size(array: *mut ByteArray, length: c_uint) -> *mut ByteArray;
    pub fn g_array_free(array: *mut Array, free_segment: c_int) -> *mut c_char;
}
