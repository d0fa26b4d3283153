//! The file systems that every guest has.

use std::fs::{self, OpenOptions};
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};

/// Type, where, options.
type Entry = (&'static str, &'static str, &'static std::ffi::CStr);

const EARLY: &[Entry] =
    &[("proc", "/proc", c""), ("sysfs", "/sys", c""), ("devtmpfs", "/dev", c"mode=0755")];

const LATE: &[Entry] = &[
    ("devpts", "/dev/pts", c"gid=5,mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", c"mode=1777"),
    ("tmpfs", "/tmp", c"mode=1777"),
    ("tmpfs", "/run", c"mode=0755"),
    ("cgroup2", "/sys/fs/cgroup", c""),
];

/// Mounted where the kernel has them and silently left out where it has not.
const OPTIONAL: &[Entry] = &[
    ("debugfs", "/sys/kernel/debug", c""),
    ("tracefs", "/sys/kernel/tracing", c""),
    ("securityfs", "/sys/kernel/security", c""),
];

/// What has to be there before anything can be said or read. Gives complaints.
pub fn early() -> Vec<String> {
    EARLY.iter().filter_map(attach).collect()
}

/// The rest. Gives complaints.
pub fn late() -> Vec<String> {
    for entry in OPTIONAL {
        let _ = attach(entry);
    }
    LATE.iter().filter_map(attach).collect()
}

fn attach(&(kind, target, options): &Entry) -> Option<String> {
    // Below sysfs the kernel makes the places itself; elsewhere they may have to be made.
    let _ = fs::create_dir_all(target);
    let flags = if kind == "devtmpfs" {
        MountFlags::NOSUID
    } else {
        MountFlags::NOSUID | MountFlags::NODEV
    };
    let flags = if kind == "devpts" { MountFlags::NOSUID } else { flags };
    match mount(kind, target, kind, flags, options) {
        Ok(()) | Err(Errno::BUSY) => None,
        Err(error) => Some(format!("mounting {kind} at {target}: {error}")),
    }
}

/// Makes `/dev/console` standard input, output and error: the kernel may have had none to give.
pub fn use_console() {
    let Ok(console) = OpenOptions::new().read(true).write(true).open("/dev/console") else {
        return;
    };
    let _ = rustix::stdio::dup2_stdin(console.as_fd());
    let _ = rustix::stdio::dup2_stdout(console.as_fd());
    let _ = rustix::stdio::dup2_stderr(console.as_fd());
}
