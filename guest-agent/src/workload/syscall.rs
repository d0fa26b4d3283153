//! `syscall`: one system call in a loop, by rustix's own instruction sequence.

use std::ffi::CString;
use std::fs::{self, File};
use std::path::PathBuf;

use kduel_protocol::TrialProblem;
use rustix::fs::{Mode, OFlags};

use super::{Iteration, Window, Workload, failed};

/// Which call, with what it needs.
enum Call {
    Getppid,
    Read(File, Vec<u8>),
    Write(File, Vec<u8>),
    OpenClose(CString),
    Stat(CString),
}

/// Repeats one call.
pub struct Syscall {
    call: Call,
    /// Removed at the end.
    file: Option<PathBuf>,
}

impl Syscall {
    /// `name` as in the workload's parameter `call`.
    pub fn new(name: &str) -> Result<Self, TrialProblem> {
        let zero = || File::open("/dev/zero").map_err(|error| failed("opening /dev/zero", error));
        let null = || {
            let file = File::options().write(true).open("/dev/null");
            file.map_err(|error| failed("opening /dev/null", error))
        };
        let (call, file) = match name {
            "getppid" => (Call::Getppid, None),
            "read-1" => (Call::Read(zero()?, vec![0; 1]), None),
            "read-4k" => (Call::Read(zero()?, vec![0; 4096]), None),
            "write-1" => (Call::Write(null()?, vec![0; 1]), None),
            "write-4k" => (Call::Write(null()?, vec![0; 4096]), None),
            "open-close" | "stat" => {
                let (path, name_bytes) = scratch_file()?;
                let call = match name {
                    "stat" => Call::Stat(name_bytes),
                    _ => Call::OpenClose(name_bytes),
                };
                (call, Some(path))
            }
            other => return Err(failed("the system call", format!("\"{other}\" is not known"))),
        };
        Ok(Self { call, file })
    }
}

/// An empty file on tmpfs, in the same place in every guest.
fn scratch_file() -> Result<(PathBuf, CString), TrialProblem> {
    let path = format!("/dev/shm/kduel-{}", rustix::process::getpid().as_raw_nonzero());
    File::create(&path).map_err(|error| failed(&format!("making {path}"), error))?;
    let name = CString::new(path.as_str()).map_err(|error| failed("the file's name", error))?;
    Ok((path.into(), name))
}

/// The time that `ops` rounds of `call` take, in nanoseconds.
#[inline]
fn time(
    ops: u64,
    window: Window,
    mut call: impl FnMut() -> rustix::io::Result<()>,
) -> Result<u64, TrialProblem> {
    let open = window.open();
    for _ in 0..ops {
        call().map_err(|error| failed("the system call", error))?;
    }
    Ok(open.close())
}

impl Workload for Syscall {
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let elapsed = match &mut self.call {
            Call::Getppid => time(ops, window, || {
                std::hint::black_box(rustix::process::getppid());
                Ok(())
            }),
            Call::Read(file, buffer) => {
                time(ops, window, || rustix::io::read(&*file, buffer.as_mut_slice()).map(drop))
            }
            Call::Write(file, buffer) => {
                time(ops, window, || rustix::io::write(&*file, buffer).map(drop))
            }
            Call::OpenClose(path) => time(ops, window, || {
                // Closed when dropped.
                rustix::fs::open(path.as_c_str(), OFlags::RDONLY, Mode::empty()).map(drop)
            }),
            Call::Stat(path) => time(ops, window, || {
                std::hint::black_box(rustix::fs::stat(path.as_c_str())?);
                Ok(())
            }),
        };
        Ok(Iteration::timed(ops, elapsed?))
    }
}

impl Drop for Syscall {
    fn drop(&mut self) {
        if let Some(path) = &self.file {
            let _ = fs::remove_file(path);
        }
    }
}
