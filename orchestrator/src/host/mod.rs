//! The host: what it has, what really works on it.

pub mod accel;
pub mod apt;
pub mod examine;
pub mod files;
pub mod git;
pub mod lock;
pub mod noise;
pub mod qemu;
pub mod tool;
pub mod topology;
pub mod tune;

pub use accel::{AccelReport, KvmState};
pub use qemu::{Qemu, Version};
