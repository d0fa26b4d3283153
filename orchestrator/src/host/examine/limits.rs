//! What this process may use of the host.

use super::finding::{Seen, State};
use super::{Check, check};
use crate::host::files::HostFiles;
use crate::host::topology::CpuList;

pub(super) const CHECKS: &[Check] = &[
    check("container", container, "what can be seen and pinned is what the container allows"),
    check(
        "cpu-quota",
        cpu_quota,
        "guests stand still for the rest of each period once the quota is used up",
    ),
    check("cpus-allowed", cpus_allowed, "guests are put onto fewer CPUs than there are"),
    check("memory-limit", memory_limit, "guests beyond it are killed"),
];

const MARKS: &[(&str, &str)] = &[
    (".dockerenv", "docker"),
    ("run/.containerenv", "podman"),
    ("run/systemd/container", "systemd-nspawn or the like"),
];

fn container(files: &HostFiles) -> Option<Seen> {
    let by_file = MARKS.iter().find(|(path, _)| files.exists(path)).map(|(_, name)| *name);
    let group = files.text("proc/1/cgroup");
    let by_group = || {
        let words = ["kubepods", "docker", "libpod", "lxc", "containerd"];
        words.into_iter().find(|word| group.as_deref().is_some_and(|text| text.contains(word)))
    };
    match by_file.or_else(by_group) {
        Some(name) => Some(Seen::new(
            State::Fair,
            format!("this is one ({name})"),
            "run on the host itself, or give the container CPUs of its own",
        )),
        None => group.is_some().then(|| Seen::good("none")),
    }
}

/// The folders of this process's control group that may hold a limit of `controller`, innermost first.
fn groups(files: &HostFiles, controller: &str) -> Option<Vec<String>> {
    let own = files.text("proc/self/cgroup")?;
    let lines = || own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let first = lines().find(|(names, _)| names.split(',').any(|name| name == controller));
    let (mount, path) = match first {
        // Version 1 mounts controllers that belong together by both names, with links to it.
        Some((_, path)) => (format!("sys/fs/cgroup/{controller}"), path),
        None if files.exists("sys/fs/cgroup/cgroup.controllers") => {
            ("sys/fs/cgroup".to_owned(), lines().find(|(names, _)| names.is_empty())?.1)
        }
        None => return None,
    };
    files.exists(&mount).then(|| {
        let mut folders = Vec::new();
        let mut path = path.trim_end_matches('/');
        while !path.is_empty() {
            folders.push(format!("{mount}{path}"));
            path = path.rsplit_once('/').map_or("", |(above, _)| above);
        }
        // In a container the path may be the host's, of which nothing is to be seen but the mount.
        folders.push(mount);
        folders
    })
}

/// In CPUs.
fn quota(files: &HostFiles, folder: &str) -> Option<f64> {
    let both = match files.text(&format!("{folder}/cpu.max")) {
        Some(text) => {
            let (quota, period) = text.split_once(' ')?;
            (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
        }
        None => {
            let quota = files.number(&format!("{folder}/cpu.cfs_quota_us"))?;
            (quota as f64, files.number(&format!("{folder}/cpu.cfs_period_us"))? as f64)
        }
    };
    (both.1 > 0.0).then_some(both.0 / both.1)
}

fn cpu_quota(files: &HostFiles) -> Option<Seen> {
    let folders = groups(files, "cpu")?;
    let least = folders.iter().filter_map(|folder| quota(files, folder)).min_by(f64::total_cmp);
    let fix = "run outside of the control group that has it, or let it be lifted";
    Some(match least {
        None => Seen::good("none"),
        Some(cpus) => Seen::new(State::Bad, format!("{cpus:.2} CPUs' time"), fix),
    })
}

fn cpus_allowed(files: &HostFiles) -> Option<Seen> {
    let status = files.text("proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let (allowed, online) = (CpuList::parse(list)?, files.online()?);
    let usable: CpuList = online.iter().filter(|cpu| allowed.contains(*cpu)).collect();
    let found = match usable == online {
        true => format!("all: {online}"),
        false => format!("{usable} of {online}"),
    };
    let fix = "taskset, cpusets and batch systems limit it; what is left is respected";
    Some(Seen::either(usable == online, State::Fair, found, fix))
}

fn memory_limit(files: &HostFiles) -> Option<Seen> {
    let folders = groups(files, "memory")?;
    let total = files.meminfo_kib("MemTotal")?;
    let limit = |folder: &String| {
        let file = |name: &str| files.number(&format!("{folder}/{name}"));
        file("memory.max").or_else(|| file("memory.limit_in_bytes"))
    };
    // Version 1 has no word for none but a number beyond all memory.
    let limits = folders.iter().filter_map(limit).map(|bytes| bytes / 1024);
    let fix = "run outside of the control group that has it, or let it be raised";
    Some(match limits.filter(|kib| *kib < total).min() {
        None => Seen::good("none"),
        Some(kib) => {
            let state = if kib < 2 * 1024 * 1024 { State::Worse } else { State::Fair };
            Seen::new(state, format!("{} MiB", kib / 1024), fix)
        }
    })
}
