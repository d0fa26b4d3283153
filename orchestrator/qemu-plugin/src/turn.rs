//! Whose turn it is: which vCPU executes.
//!
//! QEMU passes an index to every call-back, but when one thread executes all vCPUs it compiles the
//! index of the vCPU that translated the block into the code that all of them share (seen in 10.0.2).
//! So the index is found by QEMU's own pointer to the current vCPU, a variable of the thread's that
//! its executable exports.

use std::ffi::{c_char, c_void};
use std::ptr::{self, null};

#[expect(unsafe_code, reason = "declares a function of the C library")]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *const c_void;
}

/// Tells the vCPUs apart.
#[derive(Debug)]
pub struct Turn {
    current: *const *const c_void,
    known: Vec<*const c_void>,
    /// The vCPU that was asked for last, and its index.
    latest: (*const c_void, usize),
}

impl Turn {
    /// To be called on the thread that executes the vCPUs, whose variable this is.
    #[expect(unsafe_code, reason = "looks up a symbol of QEMU's")]
    pub fn find() -> Self {
        // SAFETY: a null handle stands for every loaded object; the name ends with a nul.
        let current = unsafe { dlsym(ptr::null_mut(), c"current_cpu".as_ptr()) };
        Self { current: current.cast(), known: Vec::new(), latest: (null(), 0) }
    }

    /// Enters the vCPU that begins with this index; `false` if it cannot be told from the others.
    pub fn enter(&mut self, index: usize) -> bool {
        let vcpu = self.current();
        self.known.resize(self.known.len().max(index + 1), null());
        self.known[index] = vcpu;
        let alone = self.known.len() == 1;
        alone || self.known.iter().filter(|known| **known == vcpu).count() == 1
    }

    /// How many vCPUs have begun.
    pub fn vcpus(&self) -> usize {
        self.known.len()
    }

    /// Index of the vCPU that executes.
    #[inline]
    pub fn index(&mut self) -> usize {
        let vcpu = self.current();
        if vcpu != self.latest.0 {
            let index = self.known.iter().position(|known| *known == vcpu);
            self.latest = (vcpu, index.unwrap_or_default());
        }
        self.latest.1
    }

    #[expect(unsafe_code, reason = "reads a variable of QEMU's")]
    #[inline]
    fn current(&self) -> *const c_void {
        if self.current.is_null() {
            return null();
        }
        // SAFETY: the variable belongs to this thread, which lives as long as QEMU does.
        unsafe { *self.current }
    }
}
