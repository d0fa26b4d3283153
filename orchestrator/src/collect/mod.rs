//! What a run leaves behind: the journal, its folder, and the samples in it.

mod record;

pub use record::{BootOutcome, BootRecord, BootResult, Distribution, Monitored, TrialFailure};
