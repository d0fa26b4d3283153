//! QEMU's command line for a guest. Pure.

use std::os::fd::RawFd;
use std::path::Path;

use super::{Accel, GuestSpec, topology_args};

/// What differs between processor architectures.
#[derive(Debug, Clone, Copy)]
pub struct Architecture {
    /// As `uname -m` says it.
    pub name: &'static str,
    /// QEMU's program.
    pub program: &'static str,
    /// The Debian package that has it.
    pub package: &'static str,
    /// QEMU's machine. On x86 with a firmware that does nothing but start the kernel: half a second
    /// less than SeaBIOS, and it passes on all ACPI tables, those about NUMA included.
    pub machine: &'static str,
    /// The machine of exact runs: of one version, so that another QEMU's is the same.
    pub exact_machine: &'static str,
    /// The processor of exact runs where nobody says another: of the server models the one on which
    /// kernels differ least in what is not theirs.
    ///
    /// - QEMU's translator lacks one feature of it, misaligned SSE. Of EPYC-v1 it lacks six, of later
    ///   ones up to twenty; of Westmere-v1 and older ones of Intel none.
    /// - Like the servers of today it is not open to Meltdown, so that a system call does not change
    ///   page tables: 3.9 writes of CR3 for a fork+exit, 25.9 on Westmere, where the suite of small
    ///   workloads takes twice the time.
    /// - Every kernel chooses the same mitigations for it. On EPYC 6.1 and 6.12 return by a thunk that
    ///   7.2 does without, and 7.2 reads 15 % above 6.1 where 6.12 reads 20 %; on EPYC-Milan 6.12 is
    ///   the one without, and reads 9 %.
    /// - It has no ERMS, so `rep` strings do not hide work.
    pub exact_cpu: &'static str,
    /// What QEMU reads from its data folders for an exact guest: all of it can reach the guest.
    pub firmware: &'static [&'static str],
    /// The kernel's name of the first serial port.
    pub serial: &'static str,
}

/// The architectures that guests may have.
pub const ARCHITECTURES: &[Architecture] = &[Architecture {
    name: "x86_64",
    program: "qemu-system-x86_64",
    package: "qemu-system-x86",
    machine: "q35,firmware=qboot.rom",
    exact_machine: "pc-q35-10.0,firmware=qboot.rom",
    exact_cpu: "Opteron_G3-v1",
    firmware: &[
        "qboot.rom",
        "linuxboot_dma.bin",
        "linuxboot.bin",
        "multiboot_dma.bin",
        "multiboot.bin",
        "pvh.bin",
        "kvmvapic.bin",
    ],
    serial: "ttyS0",
}];

/// The architecture of this host, if guests may have it.
pub fn host_architecture() -> Option<&'static Architecture> {
    ARCHITECTURES.iter().find(|known| known.name == std::env::consts::ARCH)
}

/// Numbers of the descriptors that QEMU inherits.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors {
    /// The writing end of a pipe: the guest's first serial port. No socket: QEMU writes single bytes,
    /// of which a socket holds a few hundred, and drops what does not fit.
    pub console: RawFd,
    /// A stream socket: QMP.
    pub control: RawFd,
    /// The kernel.
    pub image: RawFd,
    /// Base initramfs and overlay, one behind the other.
    pub initramfs: RawFd,
    /// `/dev/kvm`, opened by us, so that QEMU's own user needs no right to it.
    pub kvm: Option<RawFd>,
    /// The guest's disk.
    pub disk: Option<RawFd>,
}

/// The name of the disk in the guest.
pub const DISK: &str = "/dev/vda";

impl Descriptors {
    /// For showing a command line that is not carried out.
    pub fn nominal(spec: &GuestSpec) -> Self {
        let kvm = (spec.accel == Accel::Kvm).then_some(7);
        let disk = spec.disk.as_ref().map(|_| 8);
        Self { console: 3, control: 4, image: 5, initramfs: 6, kvm, disk }
    }
}

/// The kernel command line of a guest: what kduel needs, then a side's own `words`, which win.
///
/// `tsc=reliable` under TCG: all vCPUs read the host's counter, but the kernel does not know and
/// would turn to the HPET, whose reading is a trip through QEMU. `cryptomgr.notests` saves a tenth
/// of the boot.
pub fn default_cmdline(architecture: &Architecture, accel: Accel, words: &[String]) -> String {
    let mut all = vec![
        format!("console={}", architecture.serial),
        "rdinit=/init".to_owned(),
        "panic=-1".to_owned(),
        "random.trust_cpu=on".to_owned(),
        "cryptomgr.notests".to_owned(),
    ];
    if accel == Accel::Tcg {
        all.push("tsc=reliable".to_owned());
    }
    all.extend_from_slice(words);
    all.join(" ")
}

/// QEMU's command line for `spec`, `program` first.
pub fn command_line(
    spec: &GuestSpec,
    program: &Path,
    architecture: &Architecture,
    fds: &Descriptors,
) -> Vec<String> {
    let mut argv = vec![program.display().to_string()];
    let mut add = |name: &str, value: &str| {
        argv.push(format!("-{name}"));
        if !value.is_empty() {
            argv.push(value.to_owned());
        }
    };
    for switch in ["nodefaults", "no-user-config", "no-reboot", "S"] {
        add(switch, "");
    }
    add("name", &format!("kduel-{},debug-threads=on", escaped(&spec.boot.0)));
    add("display", "none");
    add("sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    add("machine", &format!("{}{}", architecture.machine, topology_args::machine(&spec.topology)));
    for (name, value) in accelerator(spec.accel, fds) {
        add(name, &value);
    }
    add("cpu", &cpu(spec));
    let bound = spec.placement.as_ref().map_or(&[][..], |placement| &placement.memory);
    let options = bound_memory(topology_args::options(&spec.topology), &spec.topology, bound);
    let own_memory = options.iter().any(|(name, _)| *name == "object");
    for (name, value) in options {
        add(name, &if name == "object" { spec.grants.object(&value) } else { value });
    }
    for (name, value) in spec.grants.options(spec.accel, spec.topology.memory_mib, own_memory) {
        add(name, &value);
    }
    add("add-fd", &format!("fd={},set=2", fds.console));
    add("chardev", "file,id=console,path=/dev/fdset/2,append=on");
    add("serial", "chardev:console");
    add("chardev", &format!("socket,id=control,fd={}", fds.control));
    add("mon", "chardev=control,mode=control");
    add("netdev", "user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22");
    add("device", "virtio-net-pci,netdev=net,romfile=");
    if let Some(fd) = fds.disk {
        add("add-fd", &format!("fd={fd},set=3"));
        let file = "driver=file,node-name=disk,filename=/dev/fdset/3,read-only=on,locking=off";
        add("blockdev", file);
        add("device", "virtio-blk-pci,drive=disk");
    }
    add("kernel", &format!("/proc/self/fd/{}", fds.image));
    add("initrd", &format!("/proc/self/fd/{}", fds.initramfs));
    add("append", &spec.cmdline);
    argv
}

fn accelerator(accel: Accel, fds: &Descriptors) -> Vec<(&'static str, String)> {
    match (accel, fds.kvm) {
        (Accel::Tcg, _) => vec![("accel", "tcg,thread=multi".to_owned())],
        (Accel::Kvm, None) => vec![("accel", "kvm".to_owned())],
        (Accel::Kvm, Some(fd)) => vec![
            ("add-fd", format!("fd={fd},set=1")),
            ("accel", "kvm,device=/dev/fdset/1".to_owned()),
        ],
    }
}

fn cpu(spec: &GuestSpec) -> String {
    let mut cpu = match spec.accel {
        Accel::Kvm => "host,migratable=off".to_owned(),
        Accel::Tcg => format!("max{}", topology_args::emulated_vendor(&spec.topology, "max")),
    };
    for flag in &spec.cpu_flags {
        cpu.push(',');
        cpu.push_str(&escaped(flag));
    }
    cpu
}

/// The arguments of the topology with the memory of each node on the host node that it is placed on.
fn bound_memory(
    mut args: Vec<(&'static str, String)>,
    topology: &kduel_protocol::Topology,
    nodes: &[Option<u32>],
) -> Vec<(&'static str, String)> {
    let policy = |node: u32| format!(",host-nodes={node},policy=bind,prealloc=on");
    if let ([Some(node)], true) = (nodes, topology.nodes.is_empty()) {
        let backend = format!("memory-backend-ram,id=ram,size={}M", topology.memory_mib);
        args.push(("object", backend + &policy(*node)));
        args.push(("machine", "memory-backend=ram".to_owned()));
        return args;
    }
    for (id, node) in nodes.iter().enumerate() {
        let start = format!("memory-backend-ram,id=ram{id},");
        let backend = args.iter_mut().find(|(_, value)| value.starts_with(&start));
        if let (Some(node), Some((_, value))) = (node, backend) {
            value.push_str(&policy(*node));
        }
    }
    args
}

/// A value within one of QEMU's comma-separated lists.
pub(super) fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use kduel_protocol::{Topology, TopologyNode};

    use super::*;
    use crate::boot::{Deadlines, Grants, HugePages, SshIdentity};
    use crate::id::BootId;

    const X86: &Architecture = &ARCHITECTURES[0];

    fn spec(accel: Accel, topology: Topology) -> GuestSpec {
        GuestSpec {
            boot: BootId("adhoc-b00-base".into()),
            side: "base".into(),
            image: "/cache/bzImage".into(),
            initramfs: "/cache/initramfs".into(),
            overlay: Vec::new(),
            disk: None,
            cmdline: default_cmdline(X86, accel, &["quiet".into()]),
            topology,
            cpu_flags: vec!["-erms".into()],
            accel,
            grants: Grants::default(),
            nonce: "abc".into(),
            ssh: SshIdentity {
                host_key_blob: Vec::new(),
                client_private_pem: String::new(),
                client_public_line: String::new(),
            },
            deadlines: Deadlines::of(accel),
            placement: None,
        }
    }

    fn plain(cpus: u32, threads: u32) -> Topology {
        Topology { cores: cpus / threads, threads, ..Topology::default() }
    }

    /// One option per line.
    fn shown(spec: &GuestSpec) -> String {
        let fds = Descriptors::nominal(spec);
        let argv = command_line(spec, Path::new("/usr/bin/qemu-system-x86_64"), X86, &fds);
        argv.join(" ").replace(" -", "\n-")
    }

    #[test]
    fn a_plain_emulated_guest() {
        insta::assert_snapshot!(shown(&spec(Accel::Tcg, plain(2, 1))), @r"
        /usr/bin/qemu-system-x86_64
        -nodefaults
        -no-user-config
        -no-reboot
        -S
        -name kduel-adhoc-b00-base,debug-threads=on
        -display none
        -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
        -machine q35,firmware=qboot.rom
        -accel tcg,thread=multi
        -cpu max,-erms
        -smp 2,sockets=1,cores=2,threads=1
        -m 512M
        -add-fd fd=3,set=2
        -chardev file,id=console,path=/dev/fdset/2,append=on
        -serial chardev:console
        -chardev socket,id=control,fd=4
        -mon chardev=control,mode=control
        -netdev user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22
        -device virtio-net-pci,netdev=net,romfile=
        -kernel /proc/self/fd/5
        -initrd /proc/self/fd/6
        -append console=ttyS0 rdinit=/init panic=-1 random.trust_cpu=on cryptomgr.notests tsc=reliable quiet
        ");
    }

    #[test]
    fn an_image_is_a_disk_that_cannot_be_written() {
        let mut spec = spec(Accel::Tcg, plain(1, 1));
        let path = "/cache/image".into();
        spec.disk = Some(crate::boot::ImageFile { path, sha256: "ab".into(), bytes: 2 << 20 });
        let shown = shown(&spec);
        let disk: Vec<_> =
            shown.lines().filter(|line| line.contains("disk") || line.contains("set=3")).collect();
        insta::assert_snapshot!(disk.join("\n"), @r"
        -add-fd fd=8,set=3
        -blockdev driver=file,node-name=disk,filename=/dev/fdset/3,read-only=on,locking=off
        -device virtio-blk-pci,drive=disk
        ");
    }

    #[test]
    fn kvm_is_handed_over_as_a_descriptor() {
        let shown = shown(&spec(Accel::Kvm, plain(2, 2)));
        assert!(shown.contains("-add-fd fd=7,set=1\n-accel kvm,device=/dev/fdset/1\n"));
        assert!(shown.contains("-cpu host,migratable=off,-erms\n"));
        assert!(!shown.contains("tsc=reliable"));
    }

    #[test]
    fn a_guest_may_have_cpus_and_huge_pages_for_itself() {
        let mut spec = spec(Accel::Kvm, plain(2, 1));
        spec.grants = Grants { cpu_pm: true, huge_pages: Some(HugePages::OneGib) };
        spec.cpu_flags = vec!["kvm-hint-dedicated=on".into()];
        insta::assert_snapshot!(shown(&spec), @r"
        /usr/bin/qemu-system-x86_64
        -nodefaults
        -no-user-config
        -no-reboot
        -S
        -name kduel-adhoc-b00-base,debug-threads=on
        -display none
        -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
        -machine q35,firmware=qboot.rom
        -add-fd fd=7,set=1
        -accel kvm,device=/dev/fdset/1
        -cpu host,migratable=off,kvm-hint-dedicated=on
        -smp 2,sockets=1,cores=2,threads=1
        -m 512M
        -overcommit cpu-pm=on
        -object memory-backend-memfd,hugetlb=on,hugetlbsize=1G,prealloc=on,share=off,id=ram,size=512M
        -machine memory-backend=ram
        -add-fd fd=3,set=2
        -chardev file,id=console,path=/dev/fdset/2,append=on
        -serial chardev:console
        -chardev socket,id=control,fd=4
        -mon chardev=control,mode=control
        -netdev user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:0-:22
        -device virtio-net-pci,netdev=net,romfile=
        -kernel /proc/self/fd/5
        -initrd /proc/self/fd/6
        -append console=ttyS0 rdinit=/init panic=-1 random.trust_cpu=on cryptomgr.notests quiet
        ");
        spec.accel = Accel::Tcg;
        assert!(!shown(&spec).contains("cpu-pm"), "it would be a promise that nobody keeps");
    }

    #[test]
    fn each_node_has_huge_pages_of_its_own() {
        let node = |cpu, memory_mib| TopologyNode { cpus: vec![cpu], memory_mib };
        let nodes = vec![node(0, 512), node(1, 256)];
        let mut spec = spec(Accel::Kvm, Topology { sockets: 2, cores: 1, nodes, ..plain(2, 1) });
        spec.grants.huge_pages = Some(HugePages::TwoMib);
        let shown = shown(&spec);
        let objects: Vec<_> = shown.lines().filter(|line| line.starts_with("-object")).collect();
        insta::assert_snapshot!(objects.join("\n"), @r"
        -object memory-backend-memfd,hugetlb=on,hugetlbsize=2M,prealloc=on,share=off,id=ram0,size=512M
        -object memory-backend-memfd,hugetlb=on,hugetlbsize=2M,prealloc=on,share=off,id=ram1,size=256M
        ");
        assert!(!shown.contains("memory-backend=ram\n"));
    }

    #[test]
    fn threads_are_visible_under_emulation_on_an_intel_processor_only() {
        assert!(
            shown(&spec(Accel::Tcg, plain(4, 2))).contains("-cpu max,vendor=GenuineIntel,-erms\n")
        );
    }

    #[test]
    fn memory_is_bound_to_the_nodes_that_it_is_placed_on() {
        let bound = |name: &str, memory: Vec<Option<u32>>| {
            let topology = crate::plan::topology::named(name).unwrap();
            let placement = crate::plan::Placement { memory, ..Default::default() };
            let spec = GuestSpec { placement: Some(placement), ..spec(Accel::Kvm, topology) };
            let lines = shown(&spec);
            let is_memory = |line: &&str| line.contains("memory-backend");
            lines.lines().filter(is_memory).collect::<Vec<_>>().join("\n")
        };
        let policy = "policy=bind,prealloc=on";
        assert_eq!(
            bound("2s1c", vec![Some(1), None]),
            format!(
                "-object memory-backend-ram,id=ram0,size=512M,host-nodes=1,{policy}\n\
                 -object memory-backend-ram,id=ram1,size=512M"
            )
        );
        assert_eq!(
            bound("1s1c", vec![Some(0)]),
            format!(
                "-object memory-backend-ram,id=ram,size=512M,host-nodes=0,{policy}\n\
                 -machine memory-backend=ram"
            )
        );
        assert_eq!(bound("1s1c", Vec::new()), "");
    }

    #[test]
    fn nodes_get_their_memory_processors_and_distances() {
        let node = |cpus: [u32; 2], memory_mib| TopologyNode { cpus: cpus.to_vec(), memory_mib };
        let topology = Topology {
            sockets: 2,
            cores: 1,
            threads: 2,
            memory_mib: 1024,
            nodes: vec![node([0, 1], 1024), node([2, 3], 0)],
            distances: vec![vec![10, 21], vec![21, 10]],
            ..Topology::default()
        };
        let shown = shown(&spec(Accel::Tcg, topology));
        let numa: Vec<_> = shown
            .lines()
            .filter(|line| {
                ["-smp", "-m ", "-obj", "-num"].iter().any(|name| line.starts_with(name))
            })
            .collect();
        insta::assert_snapshot!(numa.join("\n"), @r"
        -smp 4,sockets=2,cores=1,threads=2
        -m 1024M
        -object memory-backend-ram,id=ram0,size=1024M
        -numa node,nodeid=0,memdev=ram0
        -numa cpu,node-id=0,socket-id=0,core-id=0,thread-id=0
        -numa cpu,node-id=0,socket-id=0,core-id=0,thread-id=1
        -numa node,nodeid=1
        -numa cpu,node-id=1,socket-id=1,core-id=0,thread-id=0
        -numa cpu,node-id=1,socket-id=1,core-id=0,thread-id=1
        -numa dist,src=0,dst=0,val=10
        -numa dist,src=0,dst=1,val=21
        -numa dist,src=1,dst=0,val=21
        -numa dist,src=1,dst=1,val=10
        ");
    }
}
