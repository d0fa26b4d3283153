//! What the user wrote: the document, SPECs, flags. Checked whole, every complaint at once.

mod kernel_spec;

pub use kernel_spec::{DebianSpec, KernelSpec};
