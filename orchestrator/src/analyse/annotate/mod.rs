//! The code of a function as it was executed, and how often, on one side or two. Pure.
//!
//! Symbols say where the function is, blocks of the counts what its bytes were: so alternatives, static
//! calls and retpolines appear as they ran, and what never ran does not appear.

mod align;
mod annotation;
mod code;
mod gather;
mod listing;
mod names;
mod rows;
mod select;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use annotation::{AnnotatedSide, Annotation, Question, SideInput, Unanswered, annotate};
pub use gather::{Boot, Scope};
pub use listing::{Instruction, Listing};
pub use names::{Function, Names, Wanted};
pub use rows::{Row, rows};
pub use select::{boots, cpu, sides, trials};
