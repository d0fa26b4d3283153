use super::testing::{FakeHost, eight_nodes, hybrid, plain, smt, two_nodes};
use super::{CpuList, HostTopology};

fn list(text: &str) -> CpuList {
    CpuList::parse(text).unwrap()
}

fn of_class(host: &HostTopology, class: u32) -> String {
    let cpus = host.cpus.iter().filter(|cpu| cpu.class == class).map(|cpu| cpu.id);
    cpus.collect::<CpuList>().to_string()
}

#[test]
fn siblings_share_a_core_and_packages_a_cache() {
    let host = smt(4).read();
    let cores: Vec<u32> = host.cpus.iter().map(|cpu| cpu.core).collect();
    assert_eq!(cores, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert!(host.cpus.iter().all(|cpu| cpu.cache == Some(0) && cpu.usable));
    assert_eq!(host.whole_cores(&list("1,6")).to_string(), "1-2,5-6");
    assert!(host.limits.is_empty() && !host.is_hybrid());
}

#[test]
fn nodes_have_their_cpus_memory_and_distances() {
    let host = two_nodes().read();
    let second: CpuList = host.cpus.iter().filter(|c| c.node == Some(1)).map(|c| c.id).collect();
    assert_eq!(second.to_string(), "12-23,36-47");
    assert_eq!(host.cpus[47].package, 1);
    assert_eq!(host.nodes[1].memory_mib, Some(65_536));
    assert_eq!(host.nodes[1].distances, [21, 10]);
    assert_eq!(eight_nodes().read().nodes.len(), 8);
}

#[test]
fn a_host_that_says_nothing_has_cpus_and_no_nodes() {
    let host = plain(1).read();
    assert_eq!((host.usable(), host.nodes.len()), (list("0"), 0));
    assert_eq!((host.cpus[0].node, host.cpus[0].cache), (None, None));
    let only_cpuinfo = FakeHost::bare().file("proc/cpuinfo", "processor\t: 0\n\nprocessor\t: 1\n");
    assert_eq!(only_cpuinfo.read().usable(), list("0-1"));
    assert_eq!(FakeHost::bare().allowed("3-4").read().usable(), list("3-4"));
    assert_eq!(FakeHost::bare().read(), HostTopology::default());
}

#[test]
fn offline_isolated_and_tickless_cpus_are_told_apart() {
    let host = FakeHost::online("0-2,4-7")
        .file("sys/devices/system/cpu/offline", "3")
        .file("sys/devices/system/cpu/isolated", "6-7")
        .file("sys/devices/system/cpu/nohz_full", "  (null)")
        .read();
    assert_eq!(host.offline, list("3"));
    assert_eq!(host.usable(), list("0-2,4-7"));
    let isolated: CpuList = host.cpus.iter().filter(|c| c.isolated).map(|c| c.id).collect();
    assert_eq!(isolated, list("6-7"));
    assert!(host.cpus.iter().all(|cpu| !cpu.tickless));
}

#[test]
fn kinds_of_cores_are_known_by_their_devices_capacity_or_frequency() {
    let laptop = hybrid().read();
    assert_eq!((of_class(&laptop, 0), of_class(&laptop, 1)), ("0-7".into(), "8-15".into()));
    let with = |file: &str, values: &[u32]| {
        let mut host = plain(u32::try_from(values.len()).unwrap());
        for (cpu, value) in values.iter().enumerate() {
            host =
                host.file(&format!("sys/devices/system/cpu/cpu{cpu}/{file}"), &value.to_string());
        }
        host.read()
    };
    let arm = with("cpu_capacity", &[446, 446, 1024, 871]);
    assert_eq!(of_class(&arm, 0), "2-3");
    assert_eq!(of_class(&arm, 1), "0-1");
    let favoured = with("cpufreq/cpuinfo_max_freq", &[4_900_000, 5_100_000, 4_900_000]);
    assert!(!favoured.is_hybrid());
    assert!(with("cpufreq/cpuinfo_max_freq", &[5_000_000, 3_600_000]).is_hybrid());
}

#[test]
fn affinity_and_cpusets_are_kept_to_and_said() {
    let host = smt(4).allowed("1,5").read();
    assert_eq!(host.usable(), list("1,5"));
    assert_eq!(host.limits, ["this process's CPU affinity leaves CPUs 1,5 of 0-7"]);
    let v2 = smt(4)
        .file("proc/self/cgroup", "0::/batch/job_7/step")
        .file("sys/fs/cgroup/batch/job_7/cpuset.cpus.effective", "2-3")
        .read();
    assert_eq!(v2.usable(), list("2-3"));
    let v1 = smt(4)
        .file("proc/self/cgroup", "11:cpu,cpuacct:/x\n4:cpuset:/slurm/job_7\n0::/")
        .file("sys/fs/cgroup/cpuset/slurm/job_7/cpuset.cpus", "4-7")
        .read();
    assert_eq!(v1.limits, ["its cgroup's cpuset leaves CPUs 4-7 of 0-7"]);
}

#[test]
fn in_a_container_the_cgroups_path_may_be_one_of_the_host() {
    let host = smt(4)
        .file("proc/self/cgroup", "0::/../../pod9/abc")
        .file("sys/fs/cgroup/cpuset.cpus.effective", "0-1")
        .read();
    assert_eq!(host.usable(), list("0-1"));
    let odd = smt(4).file("proc/self/cgroup", "nonsense\n0::/gone").read();
    assert_eq!(odd.usable(), list("0-7"));
}

#[test]
fn slurm_is_believed_only_in_what_it_enforces() {
    let host = smt(4).read_allotted(2);
    assert_eq!(host.usable().len(), 8);
    assert_eq!(host.limits.len(), 1);
    assert!(host.limits[0].starts_with("Slurm allotted 2 CPUs but lets this process run on 8"));
    assert_eq!(smt(4).allowed("0,4").read_allotted(2).limits.len(), 1);
}
