//! Exit codes of `kduel`.

/// Done, and no regression.
pub const DONE: u8 = 0;
/// What was asked about is not so: kernels are not built.
pub const NOT_SO: u8 = 1;
/// At least one series is a regression.
pub const REGRESSION: u8 = 1;
/// Wrong usage, or a broken document.
pub const USAGE: u8 = 2;
/// Inconclusive, with `--strict`.
pub const INCONCLUSIVE: u8 = 3;
/// Nothing was selected.
pub const NOTHING_SELECTED: u8 = 4;
/// A kernel under test failed to boot, crashed or hung.
pub const KERNEL_FAILED: u8 = 5;
/// The rig (host, QEMU, SSH) failed, or no valid pair is left.
pub const RIG: u8 = 69;
/// A fault of kduel itself.
pub const INTERNAL: u8 = 70;
/// Interrupted.
pub const INTERRUPTED: u8 = 130;
