//! Counts what a QEMU guest executes, in windows that the guest marks.
//!
//! This crate is only the glue between QEMU and [`kduel_counts`]. It reads no clock, and nothing that
//! it does reaches the guest. A panic in a call-back ends QEMU with a message: the functions that QEMU
//! calls are `extern "C"`, which nothing unwinds out of.

mod arguments;
mod ffi;
mod guest;
mod plugin;
mod turn;

use std::ffi::{CStr, c_char, c_int};

use arguments::Arguments;
use plugin::{Plugin, Vcpus};

/// Tells QEMU which version of its interface this plugin wants.
#[expect(unsafe_code, reason = "QEMU looks the symbol up by this name")]
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = ffi::VERSION;

/// QEMU calls this once, when it has loaded the plugin; anything but zero makes it give up.
///
/// # Safety
/// `info` and the `argc` strings at `argv` are valid while the call lasts.
#[expect(unsafe_code, reason = "QEMU looks the symbol up by this name and passes C strings")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: ffi::Id,
    info: *const ffi::Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a valid structure.
    let info = unsafe { &*info };
    let words = (0..usize::try_from(argc).unwrap_or(0)).map(|index| {
        // SAFETY: QEMU passes `argc` pointers to strings that live as long as the plugin.
        unsafe { CStr::from_ptr(*argv.add(index)) }.to_str().unwrap_or("(not UTF-8)")
    });
    match check(info).and_then(|vcpus| Ok((vcpus, Arguments::parse(words)?))) {
        Ok((vcpus, arguments)) => {
            Plugin::install(id, vcpus, arguments);
            0
        }
        Err(problem) => {
            eprintln!("kduel-qemu-plugin: failed to start: {problem}");
            1
        }
    }
}

/// The numbers of vCPUs, if this is a machine that can be counted.
#[expect(unsafe_code, reason = "the architecture's name is a C string")]
fn check(info: &ffi::Info) -> Result<Vcpus, String> {
    // SAFETY: QEMU names its architecture by a static string.
    let target = unsafe { CStr::from_ptr(info.target_name) };
    if target != c"x86_64" || !info.system_emulation {
        return Err(format!("{} is not a whole x86_64 machine", target.to_string_lossy()));
    }
    let number = |n| usize::try_from(n).unwrap_or(1).max(1);
    Ok(Vcpus { first: number(info.smp_vcpus), most: number(info.max_vcpus) })
}
