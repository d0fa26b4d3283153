//! What this machine is, from `/proc` and `/sys` below a root, so that tests can bring their own.

mod domains;
mod kernel;
mod topology;

use std::fs;
use std::path::Path;

use kduel_protocol::Facts;

/// Everything the protocol asks for. What cannot be read is left empty.
pub fn collect(root: &Path) -> Facts {
    let source = Source(root);
    let cpuinfo = source.text("proc/cpuinfo");
    let mut cpu_flags: Vec<String> =
        cpu_field(&cpuinfo, "flags").split_whitespace().map(str::to_owned).collect();
    cpu_flags.sort();
    let cpus = topology::cpus(&source);
    Facts {
        release: source.text("proc/sys/kernel/osrelease"),
        version: source.text("proc/sys/kernel/version"),
        cmdline: source.text("proc/cmdline"),
        build_id: kernel::build_id(&source.bytes("sys/kernel/notes")),
        cpu_model: cpu_field(&cpuinfo, "model name").to_owned(),
        cpu_flags,
        possible_cpus: topology::cpu_list(&source, "possible"),
        present_cpus: topology::cpu_list(&source, "present"),
        caches: topology::caches(&source, &cpus),
        domains: domains::domains(&source),
        cpus,
        nodes: topology::nodes(&source),
        memory_kib: topology::kib_of(&source.text("proc/meminfo"), "MemTotal").unwrap_or(0),
        clocksource: source.text(CLOCKSOURCE),
        vulnerabilities: kernel::vulnerabilities(&source),
        config_sha256: kernel::config_sha256(&source.bytes("proc/config.gz")),
        settings: kernel::settings(&source),
    }
}

const CLOCKSOURCE: &str = "sys/devices/system/clocksource/clocksource0/current_clocksource";

/// The clock source in use.
pub fn clocksource(root: &Path) -> String {
    Source(root).text(CLOCKSOURCE)
}

/// The first CPU's value of a field of `/proc/cpuinfo`.
pub fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> &'a str {
    cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map_or("", |(_, value)| value.trim())
}

/// Files below a root.
struct Source<'a>(&'a Path);

impl Source<'_> {
    /// A file's text without white space around it; empty if it cannot be read.
    fn text(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.bytes(path)).trim().to_owned()
    }

    fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.0.join(path)).unwrap_or_default()
    }

    /// Names in a folder, sorted; none if there is no such folder.
    fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(path)) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the files of a small machine: two sockets of one core of two threads, two nodes.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("proc/sys/kernel/osrelease", "6.1.0-50-cloud-amd64\n");
        put("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.176-1\n");
        put("proc/cmdline", "console=ttyS0 quiet\n");
        put(
            "proc/cpuinfo",
            "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: sse fpu\n\nmodel name : x\n",
        );
        put("proc/meminfo", "MemTotal:      500000 kB\nMemFree: 3 kB\n");
        put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
        put("sys/devices/system/cpu/online", "0-3\n");
        put("sys/devices/system/cpu/possible", "0-7\n");
        for cpu in 0..4 {
            let socket = cpu / 2;
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            put(&format!("{path}/physical_package_id"), &format!("{socket}\n"));
            put(&format!("{path}/core_id"), "0\n");
            put(&format!("{path}/die_id"), "-1\n");
            for (index, level, kind, size) in
                [(0, 1, "Data", "32K"), (1, 2, "Unified", "4096K"), (2, 9, "Odd", "")]
            {
                let path = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                put(&format!("{path}/level"), &format!("{level}\n"));
                put(&format!("{path}/type"), &format!("{kind}\n"));
                put(&format!("{path}/size"), &format!("{size}\n"));
                let shared = if level == 1 {
                    format!("{}-{}", 2 * socket, 2 * socket + 1)
                } else {
                    "0-3".into()
                };
                put(&format!("{path}/shared_cpu_list"), &shared);
            }
            put(
                &format!("{path}/thread_siblings_list"),
                &format!("{}-{}\n", 2 * socket, 2 * socket + 1),
            );
        }
        for node in [0, 1] {
            let path = format!("sys/devices/system/node/node{node}");
            put(&format!("{path}/cpulist"), &format!("{}-{}\n", 2 * node, 2 * node + 1));
            put(&format!("{path}/meminfo"), &format!("Node {node} MemTotal:  250000 kB\n"));
            put(&format!("{path}/distance"), if node == 0 { "10 21\n" } else { "21 10\n" });
        }
        let access = "sys/devices/system/node/node1/access0/initiators";
        put(&format!("{access}/read_latency"), "100\n");
        put(&format!("{access}/read_bandwidth"), "0\n");
        put(&format!("{access}/node0/x"), "");
        put("sys/devices/system/cpu/vulnerabilities/meltdown", "Mitigation: PTI\n");
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
        put("proc/sys/kernel/numa_balancing", "1\n");
        root
    }

    #[test]
    fn a_machine_is_read_whole() {
        let root = machine();
        let facts = collect(root.path());
        assert_eq!(facts.release, "6.1.0-50-cloud-amd64");
        assert_eq!(facts.cmdline, "console=ttyS0 quiet");
        assert_eq!((facts.cpu_model.as_str(), facts.memory_kib), ("Some CPU", 500_000));
        assert_eq!(facts.cpu_flags, ["fpu", "sse"]);
        assert_eq!(facts.cpus.len(), 4);
        assert_eq!((facts.cpus[3].cpu, facts.cpus[3].socket), (3, Some(1)));
        assert_eq!((facts.cpus[3].die, facts.cpus[3].core), (None, Some(0)));
        assert_eq!((facts.possible_cpus.as_deref(), facts.present_cpus), (Some("0-7"), None));
        let caches = facts.caches.iter().map(|c| (c.level, c.size_kib, c.shared.join(" ")));
        let expected = [(1, Some(32), "0-1 2-3"), (2, Some(4096), "0-3"), (9, None, "0-3")];
        assert_eq!(caches.collect::<Vec<_>>(), expected.map(|(l, s, c)| (l, s, c.to_owned())));
        assert_eq!(facts.cpus[3].siblings, [2, 3]);
        assert_eq!(facts.nodes[1].cpus, [2, 3]);
        assert_eq!(facts.nodes[1].distances, [21, 10]);
        assert_eq!(facts.nodes[1].memory_kib, Some(250_000));
        let access = facts.nodes[1].access.as_ref().unwrap();
        assert_eq!((access.initiators.as_slice(), access.read_latency), (&[0][..], Some(100)));
        assert_eq!((access.read_bandwidth, access.write_latency), (None, None));
        assert_eq!(facts.nodes[0].access, None);
        assert_eq!(facts.vulnerabilities["meltdown"], "Mitigation: PTI");
        assert_eq!(facts.settings["transparent-hugepage"], "madvise");
        assert_eq!(facts.settings["numa-balancing"], "1");
        assert_eq!((facts.build_id, facts.config_sha256), (None, None));
    }

    #[test]
    fn an_empty_root_gives_empty_facts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(collect(root.path()), Facts::default());
    }

    #[test]
    fn this_machine_has_at_least_one_cpu() {
        let facts = collect(Path::new("/"));
        assert!(!facts.release.is_empty());
        assert!(!facts.cpus.is_empty());
        assert!(facts.memory_kib > 0);
    }
}
