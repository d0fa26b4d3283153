//! Exact runs: sealed boots side by side, each a function of its inputs, and what was counted in them.

mod boot;
mod dispatcher;
mod identity;
mod recipe;
mod symbols;
mod windows;

pub use boot::{ExactBootJob, ExactEnd, Extent};
pub use dispatcher::{ExactDispatcher, ExactRig};
pub use identity::{MachineDigests, SYMBOLS, different_inputs, identity, is_machine};
pub use recipe::{SealedRecipe, nominal_command_line};
pub use symbols::{read_symbols, symbols_path};
