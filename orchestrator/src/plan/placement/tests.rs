use kduel_protocol::Topology;

use super::{Placement, picture, place};
use crate::host::topology::testing::{FakeHost, eight_nodes, hybrid, plain, smt, two_nodes};
use crate::host::topology::{CpuList, HostTopology};
use crate::plan::topology::named;

fn guest(name: &str) -> Topology {
    named(name).unwrap()
}

fn one(host: &HostTopology, name: &str) -> Placement {
    place(host, &guest(name), 1, false).unwrap().remove(0)
}

/// Host CPUs in the order of the vCPUs, then those of the rest.
fn shown(placement: &Placement) -> String {
    let vcpus: Vec<String> = placement.vcpus.iter().map(ToString::to_string).collect();
    format!("{} | {}", vcpus.join(" "), placement.emulator)
}

#[test]
fn the_default_guest_fits_a_host_of_two_cpus_and_a_wider_one_does_not() {
    let host = plain(2).read();
    assert_eq!(shown(&one(&host, "1s1c")), "1 | 0");
    let refused = place(&host, &guest("2s4c"), 1, false).unwrap_err().to_string();
    assert_eq!(
        refused,
        "8 cores for vCPUs and one for the rest of QEMU are needed, but the CPUs that may be used (0-1) are 2 cores"
    );
    let shared = place(&host, &guest("2s4c"), 1, true).unwrap().remove(0);
    assert!(shared.overcommitted && shared.vcpus.len() == 8);
    assert_eq!(shared.vcpus[7].to_string(), "0-1");
    let two = place(&host, &guest("1s2c"), 1, true).unwrap().remove(0);
    assert_eq!(shown(&two), "0 1 | 0-1");
    insta::assert_snapshot!(picture(&host, &[two]).join("\n"), @r"
        2 vCPUs on CPUs 0-1, the rest of QEMU on CPUs 0-1, overcommitted
        package 0
          core  0    1
          runs  0+q  1+q
        0, 1: a vCPU  *: any vCPU  q: rest of QEMU  -: kept idle  .: free  x: not to be used
        vCPUs and QEMU's other threads share CPUs
        ");
}

#[test]
fn one_cpu_is_shared_only_if_that_is_allowed() {
    let host = plain(1).read();
    assert!(place(&host, &guest("1s1c"), 1, false).is_err());
    assert_eq!(shown(&place(&host, &guest("1s1c"), 1, true).unwrap()[0]), "0 | 0");
    assert!(place(&HostTopology::default(), &guest("1s1c"), 1, true).is_err());
}

#[test]
fn a_vcpu_has_a_core_and_threads_of_a_core_its_siblings() {
    let host = smt(6).read();
    assert_eq!(shown(&one(&host, "1s4c")), "1 2 3 4 | 0,6");
    assert_eq!(one(&host, "1s4c").held.to_string(), "0-4,6-10");
    assert_eq!(shown(&one(&host, "1s4c2t")), "1 7 2 8 3 9 4 10 | 0,6");
    let no_siblings = one(&plain(16).read(), "1s4c2t");
    assert_eq!(shown(&no_siblings), "1 2 3 4 5 6 7 8 | 0");
    assert_eq!(no_siblings.notes, ["threads of one guest core are on cores of their own"]);
}

#[test]
fn idle_siblings_take_the_rest_of_qemu_where_no_core_is_left() {
    let full = one(&smt(4).read(), "1s4c");
    assert_eq!(shown(&full), "0 1 2 3 | 4-7");
    assert_eq!(full.notes, ["QEMU's other threads run on idle siblings of the vCPUs' cores"]);
    assert!(place(&smt(4).read(), &guest("1s4c2t"), 1, false).is_err());
}

#[test]
fn two_guests_at_once_share_no_core_and_one_node() {
    let both = place(&two_nodes().read(), &guest("1s4c"), 2, false).unwrap();
    assert_eq!(shown(&both[0]), "1 2 3 4 | 0,24");
    assert_eq!(shown(&both[1]), "5 6 7 8 | 0,24");
    let small = place(&plain(3).read(), &guest("1s1c"), 2, false).unwrap();
    assert_eq!((shown(&small[0]), shown(&small[1])), ("1 | 0".into(), "2 | 0".into()));
    assert!(place(&plain(2).read(), &guest("1s1c"), 2, false).is_err());
    let marked = place(&plain(2).read(), &guest("1s1c"), 2, true).unwrap();
    assert_eq!((shown(&marked[0]), shown(&marked[1])), ("1 | 0-1".into(), "0 | 0-1".into()));
}

#[test]
fn guest_nodes_are_on_host_nodes_with_their_memory() {
    let eight = one(&eight_nodes().read(), "8n");
    assert_eq!(shown(&eight), "1 4 8 12 16 20 24 28 | 0");
    let own: Vec<Option<u32>> = (0..8).map(Some).collect();
    assert_eq!(eight.memory, own);
    let two = one(&two_nodes().read(), "8n");
    assert_eq!(two.memory, [0, 0, 0, 0, 1, 1, 1, 1].map(Some));
    assert_eq!(one(&two_nodes().read(), "1s1c").memory, [Some(0)]);
    assert!(one(&smt(12).read(), "8n").memory.is_empty());
    let wide = one(&eight_nodes().read(), "1s6c");
    assert!(wide.memory.is_empty());
    assert_eq!(wide.notes, ["the guest's nodes do not fit the host's: no memory is bound"]);
}

#[test]
fn a_node_without_enough_memory_or_leave_to_use_it_is_passed_over() {
    let small = FakeHost::online("0-7").node(0, "0-3", 256, "10 20").node(1, "4-7", 8192, "20 10");
    assert_eq!(shown(&one(&small.read(), "1s2c")), "4 5 | 6");
    let denied = FakeHost::online("0-7")
        .node(0, "0-3", 8192, "10 20")
        .node(1, "4-7", 8192, "20 10")
        .file("proc/self/status", "Cpus_allowed_list:\t0-7\nMems_allowed_list:\t1");
    assert_eq!(one(&denied.read(), "1s2c").memory, [Some(1)]);
}

#[test]
fn cpus_that_are_not_there_yet_need_no_place() {
    let growing = Topology { present: Some(3), ..guest("2s2c") };
    let placed = place(&two_nodes().read(), &growing, 1, false).unwrap().remove(0);
    assert_eq!(shown(&placed), "1 2 12 | 0,24");
}

#[test]
fn kinds_of_cores_are_never_mixed() {
    let laptop = hybrid().read();
    assert_eq!(shown(&one(&laptop, "1s2c")), "2 4 | 0-1");
    assert_eq!(shown(&one(&laptop, "1s4c")), "0 2 4 6 | 8");
    let slow = one(&laptop, "1s6c");
    assert_eq!(shown(&slow), "8 9 10 11 12 13 | 0-1");
    assert_eq!(slow.notes, ["vCPUs run on the slower kind of cores"]);
    assert!(place(&laptop, &guest("1s9c"), 1, false).is_err());
    insta::assert_snapshot!(picture(&laptop, &[one(&laptop, "1s2c")]).join("\n"), @r"
        2 vCPUs on CPUs 2,4, the rest of QEMU on CPUs 0-1
        node 0, package 0, fast cores, 16384 MiB
          core  0    2    4    6
          runs  q/q  0/-  1/-  ./.
        node 0, package 0, slow cores, 16384 MiB
          core  8   9   10  11  12  13  14  15
          runs  .   .   .   .   .   .   .   .
        0, 1: a vCPU  *: any vCPU  q: rest of QEMU  -: kept idle  .: free  x: not to be used
        ");
}

#[test]
fn only_what_may_be_used_is() {
    let given = smt(8).allowed("3,5,11").read();
    assert_eq!(shown(&one(&given, "1s1c")), "3 | 5");
    assert_eq!(one(&given, "1s1c").held.to_string(), "3,5,11,13");
    let isolated = plain(8).file("sys/devices/system/cpu/isolated", "6-7").read();
    assert_eq!(shown(&one(&isolated, "1s2c")), "6 7 | 0");
    let gone = FakeHost::online("1-3").file("sys/devices/system/cpu/offline", "0").read();
    assert_eq!(shown(&one(&gone, "1s2c")), "1 2 | 3");
}

#[test]
fn no_shape_puts_two_guests_on_one_core_or_mixes_kinds() {
    let hosts = [plain(5), smt(6), two_nodes(), eight_nodes(), hybrid()];
    let shapes = ["1s1c", "1s2c", "1s2c2t", "2s1c", "2s4c", "1s4c2t", "4s1c2t", "8n", "numa-q-16"];
    let mut placed = 0;
    for host in hosts.map(|host| host.read()) {
        for (name, guests) in shapes.iter().flat_map(|name| [(name, 1), (name, 2)]) {
            let Ok(all) = place(&host, &guest(name), guests, false) else { continue };
            placed += 1;
            assert_apart(&host, &all, &format!("{name} x {guests}: {all:?}"));
        }
    }
    assert!(placed > 40, "{placed}");
}

fn assert_apart(host: &HostTopology, all: &[Placement], what: &str) {
    let core = |cpu: u32| host.cpus.iter().find(|known| known.id == cpu).unwrap();
    let cores = |placement: &Placement| -> CpuList {
        placement.vcpus.iter().flat_map(CpuList::iter).map(|cpu| core(cpu).core).collect()
    };
    let sets: Vec<CpuList> = all.iter().map(cores).collect();
    let together: CpuList = sets.iter().flat_map(CpuList::iter).collect();
    assert_eq!(together.len(), sets.iter().map(CpuList::len).sum::<usize>(), "{what}");
    let kinds: CpuList = together.iter().map(|cpu| core(cpu).class).collect();
    assert_eq!(kinds.len(), 1, "{what}");
    let on: Vec<u32> = all.iter().flat_map(|p| &p.vcpus).flat_map(CpuList::iter).collect();
    let distinct: CpuList = on.iter().copied().collect();
    assert_eq!(distinct.len(), on.len(), "{what}");
    assert!(all.iter().all(|p| p.emulator.iter().all(|cpu| !distinct.contains(cpu))), "{what}");
}
