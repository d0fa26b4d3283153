//! Finds guests that should be gone.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

/// Every guest's QEMU is started with `-name` and a name that begins so.
pub const GUEST_NAME: &str = "kduel-";

/// A QEMU process that runs a guest of kduel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Process id.
    pub pid: u32,
    /// What follows `-name`, without QEMU's own options behind the first comma.
    pub name: String,
}

impl fmt::Display for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.name, self.pid)
    }
}

/// From now on, descendants of this process whose parent ends become its own children, so that
/// [`own_guests`] finds them and nobody else's.
pub fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// The guests of kduel that descend from this process, by process id.
///
/// Processes that end while this looks are passed over.
pub fn own_guests() -> Vec<Guest> {
    let parents: BTreeMap<u32, u32> =
        numbered(Path::new("/proc")).filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let own = |pid: &u32| descends(*pid, std::process::id(), &parents);
    parents.keys().copied().filter(own).filter_map(guest).collect()
}

/// The TCP ports on which process `pid` listens; empty when its descriptors may not be read.
pub fn listening_ports(pid: u32) -> BTreeSet<u16> {
    let mut listening = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        listening.extend(text.lines().filter_map(listener));
    }
    let sockets: BTreeSet<u64> = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter_map(|target| socket_inode(&target.to_string_lossy()))
        .collect();
    listening
        .into_iter()
        .filter(|(_, inode)| sockets.contains(inode))
        .map(|(port, _)| port)
        .collect()
}

fn numbered(folder: &Path) -> impl Iterator<Item = u32> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn descends(pid: u32, ancestor: u32, parents: &BTreeMap<u32, u32>) -> bool {
    let line = std::iter::successors(parents.get(&pid), |parent| parents.get(parent));
    // A process id that is given anew between two reads could close a circle.
    line.take(parents.len()).any(|parent| *parent == ancestor)
}

fn parent(pid: u32) -> Option<u32> {
    parent_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn guest(pid: u32) -> Option<Guest> {
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(Guest { pid, name: guest_name(&cmdline)? })
}

/// From a command line as the kernel gives it, each argument ended by a zero byte.
fn guest_name(cmdline: &[u8]) -> Option<String> {
    let mut arguments = cmdline.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let program = arguments.next()?;
    if !program.rsplit('/').next()?.starts_with("qemu-system-") {
        return None;
    }
    arguments.find(|argument| argument == "-name")?;
    let value = arguments.next()?;
    let name = value.split(',').next()?;
    let name = name.strip_prefix("guest=").unwrap_or(name);
    name.starts_with(GUEST_NAME).then(|| name.to_owned())
}

/// Field 4 of `/proc/PID/stat`; the command's name before it may hold spaces and brackets.
fn parent_in(stat: &str) -> Option<u32> {
    let (_, behind_name) = stat.rsplit_once(") ")?;
    behind_name.split(' ').nth(1)?.parse().ok()
}

/// Port and inode of a line of `/proc/net/tcp` whose state is LISTEN.
fn listener(line: &str) -> Option<(u16, u64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if *fields.get(3)? != "0A" {
        return None;
    }
    let (_, port) = fields.get(1)?.rsplit_once(':')?;
    Some((u16::from_str_radix(port, 16).ok()?, fields.get(9)?.parse().ok()?))
}

fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_is_known_by_program_and_name() {
        let of = |arguments: &[&str]| guest_name(arguments.join("\0").as_bytes());
        let qemu = "/usr/bin/qemu-system-x86_64";
        let name = Some("kduel-20261130-164501-3fa9".to_owned());
        assert_eq!(of(&[qemu, "-S", "-name", "kduel-20261130-164501-3fa9,debug-threads=on"]), name);
        assert_eq!(of(&[qemu, "-name", "guest=kduel-20261130-164501-3fa9"]), name);
        assert_eq!(of(&[qemu, "-name", "other"]), None);
        assert_eq!(of(&[qemu, "-name"]), None);
        assert_eq!(of(&["/bin/sh", "-name", "kduel-x"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_parent_is_found_behind_an_odd_name() {
        assert_eq!(parent_in("7 (a) b (c) S 5 7 7 0 -1 4194304 1 2"), Some(5));
    }

    #[test]
    fn a_grandchild_descends_and_a_neighbour_does_not() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (9, 1), (20, 21), (21, 20)]);
        assert!(descends(4, 2, &parents));
        assert!(!descends(9, 2, &parents));
        assert!(!descends(2, 2, &parents));
        assert!(!descends(20, 2, &parents));
    }

    #[test]
    fn only_listening_sockets_count() {
        let line = |state: &str| {
            format!(
                "  0: 0100007F:1F90 00000000:0000 {state} 0:0 00:0 0 1000 0 98765 1 0 100 0 0 10 0"
            )
        };
        assert_eq!(listener(&line("0A")), Some((8080, 98765)));
        assert_eq!(listener(&line("01")), None);
        assert_eq!(listener("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn own_listening_port_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert!(listening_ports(std::process::id()).contains(&port));
    }
}
