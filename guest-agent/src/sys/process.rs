//! fork(2), execve(2) and wait4(2), each as it is: what the workloads measure.

use std::ffi::{CString, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::Pid;

use super::check;

/// Forks; the child runs `body` and leaves by `_exit` with its answer, without running destructors
/// or exit handlers. Gives the child's id to the parent.
///
/// Only for processes of one thread: in the child of a process of several, `body` could wait for
/// ever for a lock that no thread holds any more.
#[inline]
pub fn fork_child(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    // SAFETY: the process has one thread, so the child is a whole copy and may go on as it likes.
    let id = check(unsafe { libc::fork() })?;
    match Pid::from_raw(id) {
        Some(pid) => Ok(pid),
        None => {
            let code = body();
            // SAFETY: no preconditions.
            unsafe { libc::_exit(code) }
        }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Ended {
    fn from_status(status: libc::c_int) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Killed(libc::WTERMSIG(status))
        } else {
            Self::Exited(libc::WEXITSTATUS(status))
        }
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Killed(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What a child and its waited-for descendants used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Time in user mode.
    pub user_ns: u64,
    /// Time in the kernel.
    pub system_ns: u64,
    /// Context switches, voluntary and not.
    pub context_switches: u64,
}

/// Waits for `child` to end.
#[inline]
pub fn wait(child: Pid) -> io::Result<Ended> {
    wait_usage(child).map(|(ended, _)| ended)
}

/// Waits for `child` to end and says what it used.
#[inline]
pub fn wait_usage(child: Pid) -> io::Result<(Ended, Usage)> {
    let mut status = 0;
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable memory of the right type.
        let result = check(unsafe {
            libc::wait4(child.as_raw_nonzero().get(), &raw mut status, 0, usage.as_mut_ptr())
        });
        match result {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // SAFETY: all-zero is a valid rusage, and wait4 has filled it in.
    let usage = unsafe { usage.assume_init() };
    let ns = |time: libc::timeval| {
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_usec.unsigned_abs() * 1000
    };
    let usage = Usage {
        user_ns: ns(usage.ru_utime),
        system_ns: ns(usage.ru_stime),
        context_switches: usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs(),
    };
    Ok((Ended::from_status(status), usage))
}

/// A program with its arguments and environment, laid out beforehand so that a forked child needs
/// no allocation.
#[derive(Debug)]
pub struct Exec {
    path: CString,
    arguments: Words,
    environment: Words,
}

/// Strings and the null-terminated array of pointers to them.
#[derive(Debug)]
struct Words {
    /// Owns what `pointers` points to; never changed.
    _strings: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Words {
    fn new<'a>(words: impl Iterator<Item = &'a str>) -> io::Result<Self> {
        let strings = words.map(CString::new).collect::<Result<Vec<_>, _>>()?;
        let mut pointers: Vec<_> = strings.iter().map(|word| word.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Ok(Self { _strings: strings, pointers })
    }
}

impl Exec {
    /// Fails if a word holds a NUL.
    pub fn new<'a>(
        path: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
        environment: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        Ok(Self {
            path: CString::new(path.as_os_str().as_bytes())?,
            arguments: Words::new(arguments.into_iter())?,
            environment: Words::new(environment.into_iter())?,
        })
    }

    /// execve(2). Comes back only with the reason why it could not.
    #[inline]
    pub fn replace(&self) -> io::Error {
        // SAFETY: path and words are NUL-terminated strings owned by `self`, and both arrays end
        // with a null pointer.
        unsafe {
            libc::execve(
                self.path.as_ptr(),
                self.arguments.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            );
        }
        io::Error::last_os_error()
    }
}
