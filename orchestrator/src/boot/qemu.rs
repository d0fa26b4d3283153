//! A guest in QEMU.

use std::path::Path;

use kduel_protocol::AGENT_PATH;

use super::HostProbe;
use super::ssh::{Ssh, Trouble};
use super::terminal::interact;
use super::vigil::Vigil;
use super::{Dialogue, ExecEnd, GuestSpec, Machine, Watch};
use crate::clock::Deadline;
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::host::noise::{HostReading, NoiseProbe};

/// A guest in QEMU. It is killed when the thread that called [`Machine::boot`] ends, so one thread
/// has to carry it from boot to stop.
pub struct QemuMachine {
    spec: GuestSpec,
    qemu: Qemu,
    watch: Watch,
    guest: Option<Guest>,
    /// Of a guest that is gone.
    console: String,
}

struct Guest {
    vigil: Vigil,
    /// Absent until logged in, and again once the connection was lost.
    ssh: Option<Ssh>,
    /// No failure so far, so it has to go down in order.
    sound: bool,
}

impl QemuMachine {
    /// A guest that is not started yet.
    pub fn new(spec: GuestSpec, qemu: Qemu, watch: Watch) -> Self {
        Self { spec, qemu, watch, guest: None, console: String::new() }
    }

    /// Thread ids of the vCPUs of a running guest; may all be the same.
    pub fn vcpu_threads(&self) -> &[u64] {
        self.guest.as_ref().map_or(&[], |guest| guest.vigil.vcpu_threads())
    }

    /// Connects this process's terminal to a shell in the running guest until the shell ends.
    ///
    /// # Errors
    ///
    /// Standard input is no terminal, or the guest is lost.
    pub fn interact(&mut self) -> Result<(), Failure> {
        let guest = self.guest.as_mut().ok_or_else(not_booted)?;
        let ssh = guest.ssh.as_mut().ok_or_else(not_booted)?;
        let vigil = &mut guest.vigil;
        interact(ssh, &mut || vigil.check()).map_err(|trouble| guest.explain(trouble))
    }

    fn log_in(&self, guest: &mut Guest, deadline: Deadline) -> Result<(), Failure> {
        let port = guest.vigil.ssh_port()?;
        let vigil = &mut guest.vigil;
        match Ssh::connect(port, &self.spec.ssh, deadline.left(), &mut || vigil.check()) {
            Ok(ssh) => guest.ssh = Some(ssh),
            Err(trouble) => return Err(guest.explain(trouble)),
        }
        Ok(())
    }

    fn run(
        &mut self,
        command: &str,
        input: Option<&[u8]>,
        dialogue: &mut dyn Dialogue,
    ) -> Result<ExecEnd, Failure> {
        let guest = self.guest.as_mut().ok_or_else(not_booted)?;
        guest.vigil.check()?;
        let ssh = guest.ssh.as_mut().ok_or_else(|| {
            Failure::new(FailureClass::SshCut, "the connection to the guest was lost before")
        })?;
        let vigil = &mut guest.vigil;
        let progress = self.spec.deadlines.progress;
        ssh.exec(command, input, progress, dialogue, &mut || vigil.check())
            .map_err(|trouble| guest.explain(trouble))
    }

    /// Ends the guest and keeps its console.
    fn bury(&mut self, mut guest: Guest) -> Result<(), Failure> {
        let ended = guest.vigil.end();
        self.console = guest.vigil.console().text();
        ended
    }
}

impl Guest {
    fn explain(&mut self, trouble: Trouble) -> Failure {
        self.sound = false;
        match trouble {
            Trouble::Certain(failure) => failure,
            Trouble::Connection(failure) => {
                self.ssh = None;
                self.vigil.explain(failure)
            }
            Trouble::NoProgress(waited) => {
                self.vigil.hang("the running command gave no sign of progress", waited)
            }
        }
    }

    /// Asks the agent to switch the guest off and waits until that is done.
    fn switch_off(&mut self, spec: &GuestSpec) -> Result<(), Failure> {
        self.vigil.health()?;
        let Some(ssh) = self.ssh.as_mut() else { return Ok(()) };
        let vigil = &mut self.vigil;
        let mut pulse = || vigil.health();
        match ssh.start(&format!("{AGENT_PATH} poweroff"), spec.deadlines.shutdown, &mut pulse) {
            // The connection may well be gone before the answer comes.
            Ok(_) | Err(Trouble::Connection(_) | Trouble::NoProgress(_)) => {}
            Err(Trouble::Certain(failure)) if failure.class == FailureClass::PowerOff => {}
            Err(Trouble::Certain(failure)) => return Err(failure),
        }
        self.vigil.wait_shutdown(spec.deadlines.shutdown)
    }
}

impl Machine for QemuMachine {
    fn boot(&mut self) -> Result<(), Failure> {
        self.stop()?;
        let deadline = Deadline::after(self.spec.deadlines.boot);
        let vigil = Vigil::start(&self.spec, &self.qemu, &self.watch)?;
        let mut guest = Guest { vigil, ssh: None, sound: true };
        let ready = guest
            .vigil
            .wait_ready(deadline.left())
            .and_then(|()| self.log_in(&mut guest, deadline));
        if let Err(failure) = ready {
            self.bury(guest)?;
            return Err(failure);
        }
        self.guest = Some(guest);
        Ok(())
    }

    fn push(&mut self, path: &str, content: &[u8]) -> Result<(), Failure> {
        let command = format!("cat > {}", quoted(path));
        match self.run(&command, Some(content), &mut |_: &str| Ok(()))? {
            ExecEnd::Status(0) => Ok(()),
            end => Err(Failure::new(
                FailureClass::WorkloadFailed,
                format!("failed to write {path} in the guest: {end:?}"),
            )),
        }
    }

    fn exec(&mut self, command: &str, dialogue: &mut dyn Dialogue) -> Result<ExecEnd, Failure> {
        self.run(command, None, dialogue)
    }

    fn diagnose(&mut self) -> Vec<String> {
        match &mut self.guest {
            Some(guest) => guest.vigil.diagnose(),
            None => vec!["no guest runs".to_owned()],
        }
    }

    fn stop(&mut self) -> Result<(), Failure> {
        let Some(mut guest) = self.guest.take() else { return Ok(()) };
        let in_order = guest.sound && !self.watch.stopped();
        let off = if in_order { guest.switch_off(&self.spec) } else { Ok(()) };
        let late_crash = |guest: &Guest| match guest.vigil.console().crash() {
            Some(_) if in_order => Err(guest.vigil.crashed_or(FailureClass::Panic, "")),
            _ => Ok(()),
        };
        let off = off.and_then(|()| late_crash(&guest));
        self.bury(guest)?;
        off
    }

    fn probe(&self) -> HostProbe {
        match &self.guest {
            Some(guest) => {
                let probe =
                    NoiseProbe::new(Path::new("/"), guest.vigil.pid(), guest.vigil.vcpu_threads());
                Box::new(move || probe.read())
            }
            None => Box::new(HostReading::default),
        }
    }

    fn console(&self) -> String {
        match &self.guest {
            Some(guest) => guest.vigil.console().text(),
            None => self.console.clone(),
        }
    }
}

fn not_booted() -> Failure {
    Failure::new(FailureClass::Internal, "the guest was not booted")
}

/// One word for the guest's shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_to_the_shell() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
