//! QEMU's command line for a sealed guest. Pure.

use std::os::fd::RawFd;
use std::path::Path;

use super::qemu_args::{Architecture, escaped};
use super::{SealedSpec, topology_args};
use crate::fault::{Failure, FailureClass};

/// Numbers of the descriptors that QEMU inherits. All are files in memory: none of them can make
/// QEMU wait, since what the host does would reach the guest through the wait.
#[derive(Debug, Clone, Copy)]
pub struct SealedDescriptors {
    /// The first serial port.
    pub console: RawFd,
    /// The second serial port, over which the agent tells its events.
    pub results: RawFd,
    /// The kernel.
    pub image: RawFd,
    /// Base initramfs and overlay, one behind the other.
    pub initramfs: RawFd,
    /// The guest's disk, which is memory to it.
    pub disk: Option<RawFd>,
    /// What the plugin reads and writes, if there is one.
    pub plugin: Option<PluginDescriptors>,
}

/// Of the counting plugin.
#[derive(Debug, Clone, Copy)]
pub struct PluginDescriptors {
    /// The shared object.
    pub library: RawFd,
    /// Where the counts go.
    pub counts: RawFd,
    /// The kernel's symbols, if there are any.
    pub symbols: Option<RawFd>,
    /// Follow call chains.
    pub chains: bool,
}

impl SealedDescriptors {
    /// Stand for any boot's: for showing a command line, and for telling two boots apart by
    /// everything but their descriptors.
    pub fn nominal(spec: &SealedSpec) -> Self {
        let plugin = spec.plugin.as_ref().map(|plugin| PluginDescriptors {
            library: 7,
            counts: 8,
            symbols: plugin.symbols.as_ref().map(|_| 9),
            chains: plugin.chains,
        });
        let disk = spec.disk.as_ref().map(|_| 10);
        Self { console: 3, results: 4, image: 5, initramfs: 6, disk, plugin }
    }
}

/// The name of the disk in the guest.
pub const SEALED_DISK: &str = "/dev/pmem0";

/// QEMU's name of the memory that a sealed guest's disk is.
const DISK_MEMORY: &str = "memory-backend-file,id=disk,";

/// The kernel command line of a sealed guest: what kduel needs, then a side's own `words`, which win.
///
/// Kernel addresses are fixed, so that they can be named; those of processes are unless the layout is
/// `sampled`. Lock prefixes stay, since nobody measures a kernel with one processor that has none.
pub fn sealed_cmdline(
    architecture: &Architecture,
    seed: u64,
    sampled: bool,
    words: &[String],
) -> String {
    let mut all = vec![
        format!("console={}", architecture.serial),
        "rdinit=/init".to_owned(),
        "panic=-1".to_owned(),
        "cryptomgr.notests".to_owned(),
        "tsc=reliable".to_owned(),
        "nokaslr".to_owned(),
    ];
    if !sampled {
        all.push("norandmaps".to_owned());
    }
    all.push("noreplace-smp".to_owned());
    all.push(format!("kduel.seed={seed}"));
    all.extend_from_slice(words);
    all.join(" ")
}

/// QEMU's command line for `spec`, `program` first.
pub fn sealed_command_line(
    spec: &SealedSpec,
    program: &Path,
    architecture: &Architecture,
    fds: &SealedDescriptors,
) -> Vec<String> {
    let file = |fd: RawFd| format!("/proc/self/fd/{fd}");
    let mut argv = vec![program.display().to_string()];
    let mut add = |name: &str, value: &str| {
        argv.push(format!("-{name}"));
        if !value.is_empty() {
            argv.push(value.to_owned());
        }
    };
    for switch in ["nodefaults", "no-user-config", "no-reboot"] {
        add(switch, "");
    }
    add("name", &format!("kduel-{}", escaped(&spec.boot.0)));
    add("display", "none");
    add("sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    let topology = spec.described();
    let machine = topology_args::machine(&topology);
    let nvdimm = if spec.disk.is_some() { ",nvdimm=on" } else { "" };
    add("machine", &format!("{}{machine}{nvdimm}", architecture.exact_machine));
    add("accel", &format!("tcg,thread=single,tb-size={}", spec.translation_mib));
    add("icount", &format!("shift={},sleep=off", spec.shift));
    add("seed", &spec.seed.to_string());
    add("rtc", "base=2026-01-01T00:00:00,clock=vm");
    add("cpu", &spec.cpu_argument());
    for (name, mut value) in topology_args::options(&topology) {
        if let (Some(disk), "m") = (&spec.disk, name) {
            // Room for the disk beside the memory.
            let most = topology.memory_mib + disk.bytes.div_ceil(1 << 20);
            value += &format!(",slots=1,maxmem={most}M");
        }
        add(name, &value);
    }
    if let (Some(disk), Some(fd)) = (&spec.disk, fds.disk) {
        let (bytes, path) = (disk.bytes, file(fd));
        add("object", &format!("{DISK_MEMORY}size={bytes},mem-path={path},share=off,readonly=on"));
        add("device", "nvdimm,id=nvdimm,memdev=disk,unarmed=on");
    }
    for (id, fd) in [("console", fds.console), ("results", fds.results)] {
        add("chardev", &format!("file,id={id},path={}", file(fd)));
        add("serial", &format!("chardev:{id}"));
    }
    if let Some(plugin) = fds.plugin {
        let symbols = plugin.symbols.map(|fd| format!(",symbols={}", file(fd))).unwrap_or_default();
        let chains = if plugin.chains { ",chains=on" } else { "" };
        let (library, counts) = (file(plugin.library), file(plugin.counts));
        add("plugin", &format!("{library},out={counts}{symbols}{chains}"));
    }
    add("kernel", &file(fds.image));
    add("initrd", &file(fds.initramfs));
    add("append", &spec.cmdline);
    argv
}

/// All that a sealed guest may be made of. Nothing here completes when the host is done: no disk but
/// memory, no network, no monitor.
const SEALED: [&str; 18] = [
    "nodefaults",
    "no-user-config",
    "no-reboot",
    "name",
    "display",
    "sandbox",
    "machine",
    "accel",
    "icount",
    "seed",
    "rtc",
    "cpu",
    "smp",
    "m",
    "numa",
    "kernel",
    "initrd",
    "append",
];

/// Whether a guest with these arguments, program first, is a function of them.
///
/// # Errors
///
/// `Internal` with the first argument through which the host's time would reach it.
pub fn check_sealed(argv: &[String]) -> Result<(), Failure> {
    let mut words = argv.iter().skip(1).map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let name = word.strip_prefix('-').unwrap_or_default();
        let value = words.next_if(|value| !value.starts_with('-') || name == "append");
        let is_sealed = match (name, value.unwrap_or_default()) {
            ("object", value) => {
                value.starts_with("memory-backend-ram,")
                    || value.starts_with(DISK_MEMORY) && value.ends_with(",share=off,readonly=on")
            }
            ("device", value) => value.starts_with("nvdimm,"),
            ("chardev", value) => value.starts_with("file,"),
            ("serial", value) => value.starts_with("chardev:"),
            ("plugin", value) => value.starts_with("/proc/self/fd/"),
            (name, _) => SEALED.contains(&name),
        };
        if !is_sealed {
            let title = format!(
                "{word} {} lets the time of the host into the guest",
                value.unwrap_or_default()
            );
            return Err(Failure::new(FailureClass::Internal, title.replace("  ", " ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::boot::sealed::testing::spec;

    fn shown(spec: &SealedSpec) -> String {
        let fds = SealedDescriptors::nominal(spec);
        let program = Path::new("/usr/bin/qemu-system-x86_64");
        let argv = sealed_command_line(spec, program, &ARCHITECTURES[0], &fds);
        argv.join(" ").replace(" -", "\n-")
    }

    #[test]
    fn an_image_is_memory_that_cannot_be_written() {
        let mut spec = spec();
        let path = "/cache/image".into();
        spec.disk = Some(crate::boot::ImageFile { path, sha256: "ab".into(), bytes: 724 << 20 });
        let shown = shown(&spec);
        let is_disk =
            |line: &&str| ["nvdimm", "id=disk", "-m "].iter().any(|word| line.contains(word));
        let disk: Vec<_> = shown.lines().filter(is_disk).collect();
        insta::assert_snapshot!(disk.join("\n"), @r"
        -machine pc-q35-10.0,firmware=qboot.rom,nvdimm=on
        -m 512M,slots=1,maxmem=1236M
        -object memory-backend-file,id=disk,size=759169024,mem-path=/proc/self/fd/10,share=off,readonly=on
        -device nvdimm,id=nvdimm,memdev=disk,unarmed=on
        ");
        let fds = SealedDescriptors::nominal(&spec);
        let argv = sealed_command_line(&spec, Path::new("qemu"), &ARCHITECTURES[0], &fds);
        check_sealed(&argv).unwrap();
        for shared in ["share=on,readonly=on", "share=off"] {
            let change = |word: &String| word.replace("share=off,readonly=on", shared);
            let changed: Vec<String> = argv.iter().map(change).collect();
            assert!(check_sealed(&changed).is_err(), "{shared}");
        }
    }

    #[test]
    fn a_sealed_guest_has_nothing_that_the_host_could_be_heard_through() {
        insta::assert_snapshot!(shown(&spec()), @r"
        /usr/bin/qemu-system-x86_64
        -nodefaults
        -no-user-config
        -no-reboot
        -name kduel-fork-b00-base
        -display none
        -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny
        -machine pc-q35-10.0,firmware=qboot.rom
        -accel tcg,thread=single,tb-size=512
        -icount shift=2,sleep=off
        -seed 1
        -rtc base=2026-01-01T00:00:00,clock=vm
        -cpu Opteron_G3-v1,monitor=off,-aes
        -smp 1,maxcpus=2,sockets=2,cores=1,threads=1
        -m 512M
        -chardev file,id=console,path=/proc/self/fd/3
        -serial chardev:console
        -chardev file,id=results,path=/proc/self/fd/4
        -serial chardev:results
        -plugin /proc/self/fd/7,out=/proc/self/fd/8,symbols=/proc/self/fd/9
        -kernel /proc/self/fd/5
        -initrd /proc/self/fd/6
        -append console=ttyS0 nokaslr
        ");
    }

    #[test]
    fn what_completes_when_the_host_is_done_is_refused() {
        let mut spec = spec();
        spec.cmdline = "-append that looks like more".into();
        let fds = SealedDescriptors::nominal(&spec);
        let usual = sealed_command_line(&spec, Path::new("qemu"), &ARCHITECTURES[0], &fds);
        assert_eq!(check_sealed(&usual), Ok(()));
        for more in [
            &["-drive", "file=/disk,if=virtio"][..],
            &["-device", "virtio-blk-pci,drive=d"],
            &["-blockdev", "file,node-name=d,filename=/disk"],
            &["-netdev", "user,id=n"],
            &["-nic", "user"],
            &["-device", "virtio-rng-pci"],
            &["-qmp", "unix:/socket"],
            &["-monitor", "stdio"],
            &["-chardev", "socket,id=c,path=/socket"],
            &["-chardev", "pipe,id=c,path=/pipe"],
            &["-serial", "stdio"],
            &["-object", "rng-random,id=r"],
            &["-enable-kvm"],
            &["/disk.img"],
        ] {
            let mut argv = usual.clone();
            argv.extend(more.iter().map(|word| (*word).to_owned()));
            let failure = check_sealed(&argv).unwrap_err();
            assert!(failure.title.starts_with(&more.join(" ")), "{failure}");
        }
    }

    #[test]
    fn several_processors_are_as_many_as_asked_for() {
        let mut spec = spec();
        spec.topology.sockets = 2;
        spec.topology.cores = 2;
        spec.plugin = None;
        let shown = shown(&spec);
        assert!(shown.contains("-smp 4,sockets=2,cores=2,threads=1\n"), "{shown}");
        assert!(!shown.contains("-plugin"), "{shown}");
    }

    #[test]
    fn a_sampled_layout_moves_processes_and_never_the_kernel() {
        let words = ["quiet".to_owned()];
        let fixed = sealed_cmdline(&ARCHITECTURES[0], 7, false, &words);
        assert!(fixed.ends_with("nokaslr norandmaps noreplace-smp kduel.seed=7 quiet"), "{fixed}");
        let sampled = sealed_cmdline(&ARCHITECTURES[0], 7, true, &words);
        assert_eq!(sampled, fixed.replace(" norandmaps", ""));
    }
}
