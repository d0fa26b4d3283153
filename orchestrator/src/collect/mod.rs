//! What a run leaves behind: the journal, its folder, and the samples in it.

mod calibration;
pub mod export;
mod folder;
#[cfg(test)]
mod folder_tests;
mod info;
mod journal;
mod known;
mod list;
pub mod mail;
pub mod parse;
mod profile;
mod record;
mod reference;
mod samples;
#[cfg(test)]
pub(crate) mod testing;
mod write;

pub use calibration::{Calibrations, Conditions};
pub use folder::{RunFolder, StoredRun, UnpackedRun};
pub use info::{HostInfo, KernelIdentity, QemuInfo, RUN_FORMAT, RunInfo, SourceIdentity};
pub use journal::{Cut, Journal, Recovered, recover};
pub use known::{KnownBoot, KnownBoots, KnownSize};
pub use list::{ListedRun, list_runs, remove_run, set_label};
pub use record::{
    BootOutcome, BootRecord, BootResult, Distribution, ExactBoot, KernelLog, MonitorRows,
    Monitored, Stacks, TrialFailure, TrialNoise, WindowCounts,
};
pub use reference::{RunRef, find_run};
pub use samples::samples_jsonl;
pub use write::write_atomically;
