//! Registers and memory of the vCPU that is executing.

use std::ffi::{CStr, c_uint};

use kduel_counts::{Guest, Register};

use crate::ffi;

/// The names by which QEMU lists the registers, in the order of [`place`].
const NAMES: [&CStr; 5] = [c"rax", c"rcx", c"rdi", c"rsi", c"rsp"];

fn place(register: Register) -> usize {
    match register {
        Register::Rax => 0,
        Register::Rcx => 1,
        Register::Rdi => 2,
        Register::Rsi => 3,
        Register::Rsp => 4,
    }
}

/// Asks QEMU about the vCPU whose call-back is running.
#[derive(Debug)]
pub struct CurrentVcpu {
    handles: [Option<*mut ffi::RegisterHandle>; NAMES.len()],
    buffer: *mut ffi::ByteArray,
}

impl CurrentVcpu {
    /// Looks the registers up; they are the same for every vCPU of a machine.
    ///
    /// To be called on a vCPU's thread, in its call-back.
    #[expect(unsafe_code, reason = "calls into QEMU and GLib")]
    pub fn find() -> Self {
        // SAFETY: takes nothing; gives an array that is ours, of descriptors as declared.
        let array = unsafe { ffi::qemu_plugin_get_registers() };
        let mut handles = [None; NAMES.len()];
        if !array.is_null() {
            // SAFETY: not null, and QEMU has filled it in.
            let (data, length) = unsafe { ((*array).data, (*array).len as usize) };
            // SAFETY: QEMU made `length` descriptors there, suitably aligned.
            let descriptors = unsafe {
                std::slice::from_raw_parts(data.cast::<ffi::RegisterDescriptor>(), length)
            };
            for (handle, name) in handles.iter_mut().zip(NAMES) {
                // SAFETY: names are interned, nul-terminated strings.
                let found = descriptors.iter().find(|d| unsafe { CStr::from_ptr(d.name) } == name);
                *handle = found.map(|descriptor| descriptor.handle);
            }
            // SAFETY: the array is ours, and nothing refers to it any more.
            unsafe { ffi::g_array_free(array, 1) };
        }
        // SAFETY: takes nothing; gives an empty array that is ours for good.
        let buffer = unsafe { ffi::g_byte_array_new() };
        Self { handles, buffer }
    }

    /// Whether every register was found.
    pub fn is_complete(&self) -> bool {
        self.handles.iter().all(Option::is_some) && !self.buffer.is_null()
    }

    /// The first eight bytes that `fill` put into the buffer.
    #[expect(unsafe_code, reason = "reads what QEMU put into GLib's array")]
    fn read(&mut self, fill: impl FnOnce(*mut ffi::ByteArray) -> bool) -> Option<u64> {
        // SAFETY: the buffer is ours and valid.
        unsafe { ffi::g_byte_array_set_size(self.buffer, 0) };
        if !fill(self.buffer) {
            return None;
        }
        // SAFETY: as above; QEMU keeps pointer and length right.
        let (data, length): (*const u8, c_uint) =
            unsafe { ((*self.buffer).data, (*self.buffer).len) };
        if length < 8 {
            return None;
        }
        // SAFETY: at least eight bytes are there, at any alignment.
        Some(u64::from_le_bytes(unsafe { data.cast::<[u8; 8]>().read_unaligned() }))
    }
}

impl Guest for CurrentVcpu {
    #[expect(unsafe_code, reason = "calls into QEMU")]
    fn register(&mut self, register: Register) -> Option<u64> {
        let handle = self.handles[place(register)]?;
        // SAFETY: the handle is QEMU's, the buffer valid, and this is a vCPU's call-back.
        self.read(|buffer| unsafe { ffi::qemu_plugin_read_register(handle, buffer) } > 0)
    }

    #[expect(unsafe_code, reason = "calls into QEMU")]
    fn memory(&mut self, address: u64) -> Option<u64> {
        // SAFETY: the buffer is valid, and this is a vCPU's call-back.
        self.read(|buffer| unsafe { ffi::qemu_plugin_read_memory_vaddr(address, buffer, 8) })
    }
}
