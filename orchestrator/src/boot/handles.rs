//! What is handed to QEMU as open descriptors, and what it says of its own.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::fs::MemfdFlags;
use rustix::pipe::PipeFlags;

use crate::fault::{Failure, FailureClass};

/// How long a reader waits for a file to grow.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

const CONSOLE_PIPE_BYTES: usize = 1 << 20;

/// The host's port in QEMU's table of the user network.
pub fn forwarded_port(table: &str) -> Option<u16> {
    let line = table.lines().find(|line| line.contains("TCP[HOST_FORWARD]"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// `/dev/kvm`, for reading and writing.
///
/// # Errors
///
/// [`FailureClass::AcceleratorBroken`].
pub fn open_kvm() -> Result<OwnedFd, Failure> {
    let path = Path::new("/dev/kvm");
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| {
        Failure::new(FailureClass::AcceleratorBroken, format!("failed to open /dev/kvm: {error}"))
    })?;
    Ok(file.into())
}

/// The content of a file.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::host_io("read", path, &error))
}

/// The content of the file at `path`, in a file without a name: QEMU's user needs no right to any
/// path.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn memory_copy(name: &str, path: &Path) -> Result<OwnedFd, Failure> {
    let content = read(path)?;
    held(name, |file| file.write_all(&content))
}

/// A file for reading, as it is: too large to copy, and under its digest in the cache.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn open_read_only(path: &Path) -> Result<OwnedFd, Failure> {
    let file = File::open(path).map_err(|error| Failure::host_io("open", path, &error))?;
    Ok(file.into())
}

/// Archives behind one another, each padded to four bytes as the kernel wants them, likewise.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn archives(name: &str, parts: &[&[u8]]) -> Result<OwnedFd, Failure> {
    held(name, |file| {
        for part in parts {
            file.write_all(part)?;
            file.write_all(&[0; 3][..part.len().next_multiple_of(4) - part.len()])?;
        }
        Ok(())
    })
}

fn held(name: &str, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<OwnedFd, Failure> {
    let made = || -> io::Result<OwnedFd> {
        let mut file: File = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?.into();
        fill(&mut file)?;
        // The copy is read by every user that has the descriptor, and written by none.
        rustix::fs::fchmod(file.as_fd(), rustix::fs::Mode::from_raw_mode(0o444))?;
        Ok(file.into())
    };
    made().map_err(|error| rig(&format!("failed to hold the {name} in memory: {error}")))
}

/// A file without a name that QEMU's user may open and write, for what must never block.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn output_file(name: &str) -> Result<File, Failure> {
    let made = || -> io::Result<File> {
        let file: File = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?.into();
        rustix::fs::fchmod(file.as_fd(), rustix::fs::Mode::from_raw_mode(0o666))?;
        Ok(file)
    };
    made().map_err(|error| rig(&format!("failed to make a file for the {name}: {error}")))
}

/// Reads a file that somebody else is still writing, from its beginning; its end is an end only once
/// the writer is gone.
#[derive(Debug)]
pub struct Growing {
    file: File,
    offset: u64,
    /// Set once the writer is gone.
    ended: Arc<AtomicBool>,
}

impl Growing {
    /// Of `file`, whose writer is gone when `ended` is set.
    pub fn new(file: File, ended: Arc<AtomicBool>) -> Self {
        Self { file, offset: 0, ended }
    }

    /// What there is now; nothing says nothing about what will come.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn now(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }

    /// How much was read, in bytes.
    pub fn length(&self) -> u64 {
        self.offset
    }
}

impl io::Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let ended = self.ended.load(Ordering::Acquire);
            let read = self.now(buffer)?;
            if read > 0 || ended {
                return Ok(read);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// A pipe that holds as much of a flood as an unprivileged user may have: our end, QEMU's end.
///
/// # Errors
///
/// [`FailureClass::HostIo`].
pub fn console_pipe() -> Result<(File, OwnedFd), Failure> {
    let made = || -> io::Result<(File, OwnedFd)> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        // Less is no error: the reader is quick.
        let _ = rustix::pipe::fcntl_setpipe_size(&theirs, CONSOLE_PIPE_BYTES);
        Ok((ours.into(), theirs))
    };
    made().map_err(|error| rig(&format!("failed to make a pipe: {error}")))
}

/// A failure of the host.
pub fn rig(title: &str) -> Failure {
    Failure::new(FailureClass::HostIo, title)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn the_forwarded_port_is_found_in_the_table() {
        let table = "Hub -1 (net):\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\n  \
                     TCP[HOST_FORWARD]  14       127.0.0.1 35071       10.0.2.15    22     0     0\n";
        assert_eq!(forwarded_port(table), Some(35071));
        assert_eq!(forwarded_port("Hub -1 (net):\n"), None);
    }

    #[test]
    fn a_growing_file_is_read_until_its_writer_is_gone() {
        let mut file = output_file("x").unwrap();
        let ended = Arc::new(AtomicBool::new(false));
        let mut growing = Growing::new(file.try_clone().unwrap(), Arc::clone(&ended));
        assert_eq!(growing.now(&mut [0; 4]).unwrap(), 0);
        file.write_all(b"abc").unwrap();
        let mut first = [0; 2];
        growing.read_exact(&mut first).unwrap();
        let writer = std::thread::spawn(move || {
            file.write_all(b"de").unwrap();
            ended.store(true, Ordering::Release);
        });
        let mut rest = String::new();
        growing.read_to_string(&mut rest).unwrap();
        writer.join().unwrap();
        assert_eq!((first.as_slice(), rest.as_str(), growing.length()), (&b"ab"[..], "cde", 5));
    }

    #[test]
    fn parts_are_padded_and_can_be_read_through_proc() {
        let file = archives("x", &[b"abcde", b"fg", b"", b"hijk"]).unwrap();
        let mut again = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        let mut content = Vec::new();
        again.read_to_end(&mut content).unwrap();
        assert_eq!(content, b"abcde\0\0\0fg\0\0hijk");
    }
}
