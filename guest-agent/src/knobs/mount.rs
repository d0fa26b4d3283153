//! Mount options of a file system at its usual place.

use std::ffi::CString;
use std::fs;

use rustix::mount::{MountFlags, UnmountFlags};

/// Type and usual place.
const PLACES: [(&str, &str); 9] = [
    ("cgroup2", "/sys/fs/cgroup"),
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/tmp"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
    ("hugetlbfs", "/dev/hugepages"),
    ("mqueue", "/dev/mqueue"),
];

/// Options that are flags of the mount and not the file system's own.
const FLAGS: [(&str, MountFlags); 7] = [
    ("ro", MountFlags::RDONLY),
    ("nosuid", MountFlags::NOSUID),
    ("nodev", MountFlags::NODEV),
    ("noexec", MountFlags::NOEXEC),
    ("noatime", MountFlags::NOATIME),
    ("nodiratime", MountFlags::NODIRATIME),
    ("relatime", MountFlags::RELATIME),
];

fn place_of(kind: &str) -> Result<&'static str, String> {
    let place = PLACES.iter().find(|(name, _)| *name == kind).map(|(_, place)| *place);
    place.ok_or_else(|| {
        let known = PLACES.map(|(name, _)| name).join(", ");
        format!("no usual place is known for {kind}, only for {known}")
    })
}

/// Mounts, or remounts what is there, with `options` (separated by commas).
pub fn set(kind: &str, options: &str) -> Result<(), String> {
    let place = place_of(kind)?;
    let (flags, data) = split(options);
    let data = CString::new(data).map_err(|_| "options hold a NUL byte".to_owned())?;
    let Some(before) = find(&mountinfo(), kind, place) else {
        let _ = fs::create_dir_all(place);
        return rustix::mount::mount(kind, place, kind, flags, data.as_c_str())
            .map_err(|error| format!("mount: {error}"));
    };
    // A remount sets all flags anew: what is not asked for stays as it was.
    let flags = flags | kept_flags(&before);
    let remounted = rustix::mount::mount_remount(place, flags, data.as_c_str());
    let found = find(&mountinfo(), kind, place).unwrap_or_default();
    if remounted.is_ok() && has_all(&found, options) {
        return Ok(());
    }
    // Some options only count for a new mount.
    rustix::mount::unmount(place, UnmountFlags::empty())
        .map_err(|error| format!("remounting did not set it, unmounting: {error}"))?;
    rustix::mount::mount(kind, place, kind, flags, data.as_c_str()).map_err(|error| {
        let _ = rustix::mount::mount(kind, place, kind, MountFlags::empty(), c"");
        format!("mount: {error}")
    })
}

/// The options in force, and whether the wanted ones are among them.
pub fn read(kind: &str, options: &str, error: Option<String>) -> (String, bool) {
    let found = place_of(kind).map(|place| find(&mountinfo(), kind, place));
    match (found, error) {
        (Ok(Some(found)), None) => (found.clone(), has_all(&found, options)),
        (Ok(Some(found)), Some(error)) => (format!("{found} ({error})"), false),
        (_, Some(error)) | (Err(error), _) => (error, false),
        (Ok(None), None) => ("not mounted".to_owned(), false),
    }
}

fn mountinfo() -> String {
    fs::read_to_string("/proc/self/mountinfo").unwrap_or_default()
}

/// Flags of the mount, and what the file system itself has to read.
fn split(options: &str) -> (MountFlags, String) {
    let mut flags = MountFlags::empty();
    let mut data = Vec::new();
    for option in words(options) {
        match FLAGS.iter().find(|(name, _)| *name == option) {
            Some((_, flag)) => flags |= *flag,
            None if option == "rw" => {}
            None => data.push(option),
        }
    }
    (flags, data.join(","))
}

/// The flags that a remount keeps; a read-only mount becomes writable unless `ro` is asked for.
fn kept_flags(options: &str) -> MountFlags {
    split(options).0 - MountFlags::RDONLY
}

fn words(options: &str) -> impl Iterator<Item = &str> {
    options.split(',').map(str::trim).filter(|option| !option.is_empty())
}

/// The options of the topmost mount of this type at this place: the mount's and the file system's.
fn find(mountinfo: &str, kind: &str, place: &str) -> Option<String> {
    let options = |line: &str| {
        // ID parent major:minor root PLACE OPTIONS [tags …] - TYPE source SUPEROPTIONS
        let (mount, system) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let is_it = mount.get(4) == Some(&place) && system.first() == Some(&kind);
        is_it.then(|| Some(format!("{},{}", mount.get(5)?, system.get(2)?)))?
    };
    mountinfo.lines().filter_map(options).next_back()
}

fn has_all(found: &str, options: &str) -> bool {
    words(options).all(|wanted| words(found).any(|option| option == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
        20 1 0:20 / /proc rw,nosuid - proc proc rw\n\
        25 1 0:22 / /sys/fs/cgroup rw,nosuid,nodev shared:4 - cgroup2 cgroup2 rw,favordynmods\n";

    #[test]
    fn options_are_those_of_mount_and_file_system() {
        let found = find(MOUNTS, "cgroup2", "/sys/fs/cgroup").unwrap();
        assert_eq!(found, "rw,nosuid,nodev,rw,favordynmods");
        assert!(has_all(&found, "favordynmods,nodev"));
        assert!(!has_all(&found, "memory_recursiveprot"));
        assert_eq!(find(MOUNTS, "cgroup2", "/proc"), None);
    }

    #[test]
    fn flags_are_kept_apart() {
        assert_eq!(kept_flags("ro,nosuid,nodev,ro"), MountFlags::NOSUID | MountFlags::NODEV);
        let (flags, data) = split("rw,nosuid,size=1M, mode=700");
        assert_eq!((flags, data.as_str()), (MountFlags::NOSUID, "size=1M,mode=700"));
    }

    #[test]
    fn an_unknown_type_says_which_are_known() {
        let (found, took) = read("ext4", "noatime", set("ext4", "noatime").err());
        assert!(!took && found.contains("cgroup2"), "{found}");
    }
}
