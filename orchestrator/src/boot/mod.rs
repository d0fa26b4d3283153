//! One guest: from a specification to a machine that is ready, or to a failure.

pub mod console;
pub mod crash;
mod ending;
pub mod fake;
mod grants;
mod guest_user;
mod handles;
mod launch;
pub mod lines;
pub mod pin;
pub mod process;
pub mod qemu;
pub mod qemu_args;
pub mod qmp;
pub mod sealed;
pub mod sealed_args;
mod spec;
pub mod ssh;
mod terminal;
mod topology_args;
pub mod vigil;

pub use fake::FakeMachine;
pub use grants::{Grants, HugePages};
pub use launch::die_with_parent;
pub use qemu::QemuMachine;
pub use sealed::{PluginFiles, SealedEnd, SealedSpec, Step, run_sealed};
pub use spec::{Accel, Deadlines, ExecEnd, GuestSpec, ImageFile, Listener, SshIdentity, Watch};

use crate::fault::Failure;
use crate::host::noise::HostReading;

/// Looks at a guest's host.
pub type HostProbe = Box<dyn Fn() -> HostReading>;

/// The other end of a command that runs in a guest.
pub trait Dialogue {
    /// Takes a line of its standard output; a failure ends the command.
    ///
    /// # Errors
    ///
    /// What the line says, or what is wrong with it.
    fn line(&mut self, line: &str) -> Result<(), Failure>;

    /// What it is to read next on its standard input, if there is something to say by now; asked
    /// every tenth of a second at least.
    fn say(&mut self) -> Option<String> {
        None
    }
}

impl<F: FnMut(&str) -> Result<(), Failure>> Dialogue for F {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        self(line)
    }
}

/// The five verbs of a guest. All block, all keep to the deadlines of their [`GuestSpec`], and all
/// return early with [`crate::fault::FailureClass::Interrupted`] once [`Watch::stop`] is set.
///
/// QEMU is one implementation, a scripted fake the other.
pub trait Machine {
    /// Starts the guest and waits until the agent says that it is ready.
    ///
    /// # Errors
    ///
    /// What happened instead; the guest is then already gone.
    fn boot(&mut self) -> Result<(), Failure>;

    /// Writes `content` to `path` inside the guest.
    ///
    /// # Errors
    ///
    /// The connection failed, or the guest refused.
    fn push(&mut self, path: &str, content: &[u8]) -> Result<(), Failure>;

    /// Runs `command` by the guest's shell and lets `dialogue` speak with it.
    ///
    /// # Errors
    ///
    /// What happened to the guest or the connection. A crash on the console wins over a lost
    /// connection. That a command ended with a status or a signal is no error here.
    fn exec(&mut self, command: &str, dialogue: &mut dyn Dialogue) -> Result<ExecEnd, Failure>;

    /// What can be learnt from outside about a guest that hangs: registers, run state.
    fn diagnose(&mut self) -> Vec<String>;

    /// Switches the guest off and proves that nothing of it is left. May be called in any state and
    /// more than once.
    ///
    /// # Errors
    ///
    /// Something survived, or the console shows a crash that came after the last command.
    fn stop(&mut self) -> Result<(), Failure>;

    /// What looks at the running guest's host, beside whatever else is done with the machine; each call
    /// is one look.
    fn probe(&self) -> HostProbe;

    /// The console so far: its first part, and its last part if it was longer than the bound. Raw.
    fn console(&self) -> String;
}
