//! The kernel's log during a trial.

use std::io;

use kduel_protocol::{Event, LogKind};
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// Lines kept of one complaint.
const LINES: usize = 40;

/// Complaints kept of one trial.
const MOST: usize = 10;

/// What a complaint of the lock checker says.
const LOCKDEP: [&str; 9] = [
    "locking dependency detected",
    "recursive locking detected",
    "inconsistent lock state",
    "lock inversion dependency",
    "suspicious RCU usage",
    "bad unlock balance",
    "held lock freed",
    "lock held when returning",
    "Invalid wait context",
];

/// The log from some moment on.
#[derive(Debug)]
pub struct KernelLog(OwnedFd);

impl KernelLog {
    /// From now on.
    pub fn open() -> Result<Self, String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = || -> io::Result<OwnedFd> {
            let file = rustix::fs::open("/dev/kmsg", flags, Mode::empty())?;
            rustix::fs::seek(&file, SeekFrom::End(0))?;
            Ok(file)
        };
        open().map(Self).map_err(|error| format!("/dev/kmsg: {error}"))
    }

    /// What was written since.
    pub fn events(&self, trial: u32) -> Vec<Event> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        loop {
            match rustix::io::read(&self.0, &mut record) {
                Ok(0) => break,
                Ok(read) => lines.extend(text(&String::from_utf8_lossy(&record[..read]))),
                // Overwritten before it was read: the next one is there.
                Err(Errno::PIPE | Errno::INTR) => {}
                Err(_) => break,
            }
        }
        complaints(&lines)
            .into_iter()
            .map(|(kind, lines)| Event::KernelLog {
                trial,
                kind,
                title: lines.first().cloned().unwrap_or_default(),
                lines,
            })
            .collect()
    }
}

/// A record is `prio,sequence,time,flags;text`, then lines that begin with a space.
fn text(record: &str) -> Option<String> {
    let (_, text) = record.split_once(';')?;
    text.lines().next().map(|line| crate::text::head(line, 1000))
}

fn kind(line: &str) -> Option<LogKind> {
    let has = |words: &str| line.contains(words);
    let begins = |words: &str| line.starts_with(words);
    Some(match () {
        () if LOCKDEP.iter().any(|words| has(words)) => LogKind::Lockdep,
        () if has("blocked for more than") && begins("INFO: task") => LogKind::HungTask,
        () if has("soft lockup") || has("hard LOCKUP") || has("detected stall") => LogKind::Stall,
        () if has("self-detected stall") => LogKind::Stall,
        () if begins("BUG:") || begins("kernel BUG at") || has("Oops: ") => LogKind::Oops,
        () if begins("general protection fault") || begins("divide error:") => LogKind::Oops,
        () if begins("WARNING: ") => LogKind::Warning,
        () => return None,
    })
}

/// Each with the lines behind it. What comes within one is part of it.
fn complaints(lines: &[String]) -> Vec<(LogKind, Vec<String>)> {
    let mut found: Vec<(LogKind, Vec<String>)> = Vec::new();
    let mut open = false;
    for line in lines {
        if let Some((_, kept)) = found.last_mut().filter(|(_, kept)| open && kept.len() < LINES) {
            kept.push(line.clone());
            open = !line.contains("---[ end trace");
            continue;
        }
        open = false;
        if let Some(kind) = kind(line).filter(|_| found.len() < MOST) {
            found.push((kind, vec![line.clone()]));
            open = true;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_warning_is_told_with_what_follows_and_rest_is_not() {
        let log = lines(
            "random: crng init done\n------------[ cut here ]------------\n\
             WARNING: CPU: 0 PID: 1 at kernel/fork.c:1 copy_process+0x1/0x2\nCall Trace:\n\
             ---[ end trace 0000000000000000 ]---\nusb 1-1: new device\n\
             INFO: task sh:42 blocked for more than 120 seconds.\n",
        );
        let found = complaints(&log);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].0, found[0].1.len()), (LogKind::Warning, 3));
        assert_eq!(found[1].0, LogKind::HungTask);
    }

    #[test]
    fn each_kind_has_its_words() {
        for (line, wanted) in [
            ("WARNING: possible circular locking dependency detected", LogKind::Lockdep),
            ("BUG: unable to handle page fault for address: 0", LogKind::Oops),
            ("watchdog: BUG: soft lockup - CPU#0 stuck for 22s!", LogKind::Stall),
            ("rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", LogKind::Stall),
        ] {
            assert_eq!(kind(line), Some(wanted), "{line}");
        }
        assert_eq!(kind("traps: sh[1] general protection fault ip:0"), None, "of a process");
        assert_eq!(text("6,1,2,-;hello\n SUBSYSTEM=x\n").as_deref(), Some("hello"));
    }
}
