//! What decides the bits of a sealed guest, as one digest. Two guests with the same one are the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::boot::sealed_args::{SealedDescriptors, sealed_command_line};
use crate::boot::{PluginFiles, SealedSpec};
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::host::tool::Tool;
use crate::id::BootId;
use crate::provision::{Kernel, sha256_of, sha256_of_file};

/// The input that is the digest of the kernel's symbols.
pub const SYMBOLS: &str = "symbols";

/// QEMU's own file among the inputs of a boot.
const QEMU: &str = "qemu";

/// The counting plugin's.
const PLUGIN: &str = "plugin";

/// What begins the names of files that QEMU brings along.
const FIRMWARE: &str = "firmware ";

/// Digests of what all guests of a run share: the machine itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDigests {
    inputs: BTreeMap<String, String>,
}

impl MachineDigests {
    /// Reads QEMU's program, everything of its data folders that may reach a guest, and the plugin.
    ///
    /// # Errors
    ///
    /// `HostIo`, or QEMU does not say where its data is.
    pub fn read(qemu: &Qemu, plugin: &Path) -> Result<Self, Failure> {
        let digest = |path: &Path| {
            sha256_of_file(path).map_err(|error| Failure::host_io("read", path, &error))
        };
        let mut inputs = BTreeMap::new();
        inputs.insert(QEMU.to_owned(), digest(&qemu.program)?);
        inputs.insert(PLUGIN.to_owned(), digest(plugin)?);
        let folders = data_folders(qemu)?;
        for name in qemu.architecture.firmware {
            let found = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            let sum = found.map_or_else(|| Ok("none".to_owned()), |path| digest(&path))?;
            inputs.insert(format!("{FIRMWARE}{name}"), sum);
        }
        Ok(Self { inputs })
    }

    /// What of the machine is not what it was when boots with the inputs `then` were done, by name.
    pub fn other_than<'a>(
        &self,
        then: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
    ) -> BTreeSet<String> {
        let differing = |inputs| {
            let names = different_inputs(inputs, &self.inputs).into_iter();
            names.filter(|name| is_machine(name)).map(str::to_owned)
        };
        then.into_iter().flat_map(differing).collect()
    }

    /// Everything that goes into the guest of `spec`, by name.
    ///
    /// # Errors
    ///
    /// `HostIo` if the symbols cannot be read.
    pub fn inputs(
        &self,
        spec: &SealedSpec,
        kernel: &Kernel,
        qemu: &Qemu,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut inputs = self.inputs.clone();
        inputs.insert("kernel".to_owned(), kernel.image_sha256.clone());
        inputs.insert("initramfs".to_owned(), kernel.initramfs_sha256.clone());
        if let Some(disk) = &spec.disk {
            inputs.insert("image".to_owned(), disk.sha256.clone());
        }
        inputs.insert("plan and files".to_owned(), sha256_of(&spec.overlay));
        let symbols = spec.plugin.as_ref().and_then(|plugin| plugin.symbols.as_deref());
        if let Some(path) = symbols {
            let sum = sha256_of_file(path).map_err(|e| Failure::host_io("read", path, &e))?;
            inputs.insert(SYMBOLS.to_owned(), sum);
        }
        inputs.insert("arguments".to_owned(), arguments(spec, qemu));
        Ok(inputs)
    }
}

/// Whether the input of this name is the same for all guests: QEMU, what it brings, the plugin.
pub fn is_machine(name: &str) -> bool {
    name == QEMU || name == PLUGIN || name.starts_with(FIRMWARE)
}

/// Names of the inputs that two boots do not share.
pub fn different_inputs<'a>(
    one: &'a BTreeMap<String, String>,
    other: &'a BTreeMap<String, String>,
) -> BTreeSet<&'a str> {
    let names = one.keys().chain(other.keys()).map(String::as_str);
    names.filter(|name| one.get(*name) != other.get(*name)).collect()
}

/// The digest over all inputs, lower-case hex.
pub fn identity(inputs: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> =
        inputs.iter().map(|(name, value)| format!("{name}: {value}\n")).collect();
    sha256_of(lines.concat().as_bytes())
}

/// QEMU's command line with what is only the host's replaced: paths, descriptors, the boot's name.
fn arguments(spec: &SealedSpec, qemu: &Qemu) -> String {
    let mut spec = SealedSpec { boot: BootId("any".to_owned()), ..spec.clone() };
    // Following call chains changes no bit of the guest.
    spec.plugin = spec.plugin.map(|plugin| PluginFiles { chains: false, ..plugin });
    let fds = SealedDescriptors::nominal(&spec);
    sealed_command_line(&spec, Path::new("qemu"), qemu.architecture, &fds).join(" ")
}

fn data_folders(qemu: &Qemu) -> Result<Vec<PathBuf>, Failure> {
    let output = Tool::new(&qemu.program).args(["-L", "help"]).run(Duration::from_secs(20))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let folders: Vec<PathBuf> = text.lines().map(|line| PathBuf::from(line.trim())).collect();
    if folders.is_empty() {
        let title = format!("{} -L help names no folder", qemu.program.display());
        return Err(Failure::new(FailureClass::QemuFailed, title));
    }
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::ImageFile;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::boot::sealed::testing::spec;
    use crate::host::Version;

    fn inputs(of: &[(&str, &str)]) -> BTreeMap<String, String> {
        of.iter().map(|(name, sum)| ((*name).to_owned(), (*sum).to_owned())).collect()
    }

    #[test]
    fn another_machine_is_told_from_another_guest() {
        let now = [("firmware qboot.rom", "b"), ("plugin", "c"), ("qemu", "a")];
        let machine = MachineDigests { inputs: inputs(&now) };
        let same = [now[0], now[1], now[2], ("kernel", "k")];
        let other = [("firmware vgabios.bin", "v"), now[1], ("qemu", "x"), ("kernel", "other")];
        assert_eq!(machine.other_than([&inputs(&same)]), BTreeSet::new());
        let found = machine.other_than([&inputs(&same), &inputs(&other)]);
        let names: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(names, ["firmware qboot.rom", "firmware vgabios.bin", "qemu"]);
    }

    fn disk(sha256: &str) -> ImageFile {
        ImageFile { path: "/any".into(), sha256: sha256.into(), bytes: 2 << 20 }
    }

    fn identity_of(change: impl Fn(&mut SealedSpec)) -> String {
        let program = PathBuf::from("/anywhere/qemu");
        let qemu = Qemu { program, version: Version(10, 0, 2), architecture: &ARCHITECTURES[0] };
        let mut spec = spec();
        change(&mut spec);
        let machine = MachineDigests { inputs: BTreeMap::new() };
        identity(&machine.inputs(&spec, &Kernel::scripted(), &qemu).unwrap())
    }

    #[test]
    fn everything_that_reaches_the_guest_counts_and_nothing_else() {
        let same = identity_of(|_| {});
        assert_eq!(same, identity_of(|spec| spec.boot.0 = "other-b07-patched".into()));
        assert_eq!(same, identity_of(|spec| spec.side = "patched".into()));
        assert_eq!(same, identity_of(|spec| spec.image = "/elsewhere/bzImage".into()));
        let follow = |spec: &mut SealedSpec| {
            spec.plugin.as_mut().expect("it counts").chains = true;
        };
        assert_eq!(same, identity_of(follow));
        let changes: &[fn(&mut SealedSpec)] = &[
            |spec| spec.overlay = vec![1],
            |spec| spec.cmdline.push_str(" quiet"),
            |spec| spec.topology.memory_mib = 1024,
            |spec| spec.topology.cores = 2,
            |spec| spec.cpu = "Nehalem-v1".into(),
            |spec| spec.cpu_flags.clear(),
            |spec| spec.shift = 0,
            |spec| spec.seed = 2,
            |spec| spec.translation_mib = 256,
            |spec| spec.plugin = None,
            |spec| spec.disk = Some(disk("ab")),
            |spec| spec.disk = Some(disk("cd")),
        ];
        let mut seen = vec![same];
        for change in changes {
            let other = identity_of(change);
            assert!(!seen.contains(&other), "after {} changes", seen.len());
            seen.push(other);
        }
    }
}
