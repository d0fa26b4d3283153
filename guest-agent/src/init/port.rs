//! The second serial port of a sealed guest.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use kduel_protocol::SEALED_PORT;
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::termios::{ControlModes, OptionalActions, tcdrain, tcgetattr, tcsetattr};

const BAUD: u32 = 115_200;

/// Writes bytes as they are, and waits for room.
pub struct Port(File);

impl Port {
    /// Opens and sets it up.
    pub fn open() -> Result<Self, String> {
        Self::try_open().map_err(|error| {
            format!("opening {SEALED_PORT}: {error}: has the guest a second serial port?")
        })
    }

    fn try_open() -> io::Result<Self> {
        // Not waiting for a carrier, which is for modems; not becoming anybody's terminal.
        let flags = (OFlags::NOCTTY | OFlags::NONBLOCK).bits().cast_signed();
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(flags).open(SEALED_PORT)?;
        let mut modes = tcgetattr(&file)?;
        modes.make_raw();
        modes.control_modes |= ControlModes::CLOCAL;
        modes.set_speed(BAUD)?;
        tcsetattr(&file, OptionalActions::Now, &modes)?;
        fcntl_setfl(&file, OFlags::empty())?;
        Ok(Self(file))
    }

    /// One more descriptor of it.
    pub fn writer(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

impl io::Write for Port {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    /// Returns when the last byte has left.
    fn flush(&mut self) -> io::Result<()> {
        Ok(tcdrain(&self.0)?)
    }
}
