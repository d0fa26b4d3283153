//! Exact profiles: what executed which work, how often it was called, and what differs between sides.
//! Pure.

mod code;
mod count;
mod difference;
mod entries;
mod fold;
mod groups;
mod moved;
mod names;
mod run;
#[cfg(test)]
mod testing;

pub use code::{Code, Functions};
pub use count::{BootProfile, Profile, Scope, Sums};
pub use difference::{DiffProfile, Operations, Row, Section, Split, compare_profiles};
pub use entries::{Entry, EntryRow};
pub use fold::{Fold, FoldReason};
pub use groups::{GroupRow, Groups, GroupsError};
pub use moved::{Moved, Route};
pub use run::{BootCode, RunProfiles, SeriesProfile, Terms, run_profiles};
