//! The dispatcher: boots in the planned order, trials in each, records as they end.

mod agent;
mod backend;
mod common_start;
mod dispatcher;
pub mod exact;
mod guest;
mod progress;
pub mod topology;
mod trial;
mod wave;

pub use agent::AgentStream;
pub use backend::Backend;
pub use common_start::{Seat, seats};
pub use dispatcher::{CutShort, Dispatcher, RunEnd};
pub use guest::{GuestRecipe, nominal_command_line, nonce_of};
pub use trial::{BootEnd, BootLabel, run_boot};

use std::path::Path;

use crate::collect::BootRecord;
use crate::fault::Failure;
use crate::id::BootId;

/// Keeps what a run gives, so that a kill loses at most the boot in flight.
pub trait Recorder {
    /// Writes `record` and the boot's raw console, and returns once both are safe on disk.
    ///
    /// # Errors
    ///
    /// `HostIo`; the records written before stay valid.
    fn record(&mut self, record: &BootRecord, console: &str) -> Result<(), Failure>;

    /// Keeps why an experiment ended before its last pair without being decided, in a sentence.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    fn ends_early(&mut self, why: &str) -> Result<(), Failure>;

    /// Keeps what the plugin counted in a boot, block by block; called before its record is.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    fn counts(&mut self, boot: &BootId, counts: &[u8]) -> Result<(), Failure>;

    /// Keeps the symbols that counts are read by, once for each SHA-256 of them.
    ///
    /// # Errors
    ///
    /// `HostIo`.
    fn symbols(&mut self, digest: &str, path: &Path) -> Result<(), Failure>;
}
