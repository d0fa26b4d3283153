//! What happens in a child between fork and exec: the one place of the orchestrator with unsafe code.

#![expect(clippy::disallowed_methods, reason = "guests are started here and nowhere else")]

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::io::FdFlags;
use rustix::process::{Gid, Pid, Resource, Rlimit, Signal, Uid};

use super::process::Launch;

const OPEN_FILES: u64 = 1024;

/// Starts `launch` as the user `uid` (and the group of that number), or as ourselves.
pub fn spawn(launch: Launch, uid: Option<u32>) -> io::Result<Child> {
    let Launch { program, args, inherited, file_bytes } = launch;
    let parent = rustix::process::getpid();
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let confine = move || -> io::Result<()> {
        rustix::process::setsid()?;
        hand_over(&inherited)?;
        ignore_file_limit()?;
        for (resource, most) in
            [(Resource::Core, 0), (Resource::Nofile, OPEN_FILES), (Resource::Fsize, file_bytes)]
        {
            let limit = Rlimit { current: Some(most), maximum: Some(most) };
            rustix::process::setrlimit(resource, limit)?;
        }
        if let Some(id) = uid {
            become_user(id)?;
        }
        rustix::thread::set_no_new_privs(true)?;
        // Last: a change of user clears it.
        follow(parent)
    };
    // SAFETY: between fork and exec the closure makes system calls only; it neither allocates nor
    // locks, and owns the descriptors that it touches.
    #[expect(unsafe_code, reason = "std offers no safe way to run code between fork and exec")]
    unsafe {
        command.pre_exec(confine);
    }
    command.spawn()
}

/// Makes the child that `command` starts end with the thread that starts it: a tool that is waited
/// for must not outlive us.
pub fn die_with_parent(command: &mut Command) {
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes system calls only.
    #[expect(unsafe_code, reason = "std offers no safe way to run code between fork and exec")]
    unsafe {
        command.pre_exec(move || follow(parent));
    }
}

fn follow(parent: Pid) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // Had the parent died before, nobody would tell us.
    if rustix::process::getppid() != Some(parent) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    Ok(())
}

/// Keeps exactly `inherited` and the standard streams open over exec.
fn hand_over(inherited: &[OwnedFd]) -> io::Result<()> {
    close_on_exec_from(3);
    for descriptor in inherited {
        rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    Ok(())
}

/// Marks what our own parent left open; ours are marked since they were made. A kernel before 5.11
/// cannot do it, which leaves those few open.
fn close_on_exec_from(first: u32) {
    // SAFETY: the call takes three integers, and only sets a flag on descriptors.
    #[expect(unsafe_code, reason = "neither std nor rustix wraps close_range with this flag")]
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            libc::c_long::from(first),
            libc::c_long::from(u32::MAX),
            libc::c_long::from(libc::CLOSE_RANGE_CLOEXEC),
        );
    }
}

/// A file at its limit refuses to grow; the signal would end the process.
fn ignore_file_limit() -> io::Result<()> {
    // SAFETY: the call takes two integers; ignoring a signal installs no code.
    #[expect(unsafe_code, reason = "neither std nor rustix sets the disposition of a signal")]
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn become_user(id: u32) -> io::Result<()> {
    let (gid, uid) = (Gid::from_raw(id), Uid::from_raw(id));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    Ok(())
}
