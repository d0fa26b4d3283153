//! What one boot of one side carries: its plan, its keys, its command line.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kduel_protocol::{GuestImage, GuestPlan, PROTOCOL, Settle, Transport};
use sha2::{Digest, Sha256};

use super::exact;
use crate::boot::qemu_args::{self, Architecture, DISK, Descriptors, default_cmdline};
use crate::boot::{Accel, Deadlines, GuestSpec, SshIdentity};
use crate::fault::Failure;
use crate::host::Qemu;
use crate::id::BootId;
use crate::plan::{Block, PlannedExperiment, PlannedSide};
use crate::provision::{GuestKeys, Kernel, Overlay, keys};

/// Beyond the longest wait for idleness, for the agent to say how it ended.
const SETTLED: Duration = Duration::from_secs(5);

/// What all boots of one side have in common.
#[derive(Debug, Clone)]
pub struct GuestRecipe {
    /// The experiment.
    pub experiment: Arc<PlannedExperiment>,
    /// The side, an index into the experiment's sides.
    pub side: usize,
    /// Its kernel.
    pub kernel: Kernel,
    /// What executes it.
    pub accel: Accel,
    /// What kind of machine it is.
    pub architecture: &'static Architecture,
}

impl GuestRecipe {
    /// The side.
    pub fn side(&self) -> &PlannedSide {
        &self.experiment.sides[self.side]
    }

    /// The plan and the guest of one boot.
    ///
    /// # Errors
    ///
    /// `HostIo` if a file of the user's cannot be read or no keys can be drawn.
    pub fn boot(&self, block: &Block, attempt: u32) -> Result<(GuestPlan, GuestSpec), Failure> {
        let boot = BootId::new(&self.experiment.name, block.index, &self.side().name, attempt);
        self.named_boot(boot, block, 0, false)
    }

    /// As [`GuestRecipe::boot`], of the boot with this name and place. `together`: other guests run
    /// the same trials at the same time.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn named_boot(
        &self,
        boot: BootId,
        block: &Block,
        slot: usize,
        together: bool,
    ) -> Result<(GuestPlan, GuestSpec), Failure> {
        let side = self.side();
        let plan = GuestPlan {
            protocol: PROTOCOL,
            nonce: nonce_of(&boot, block.layout_seed),
            knobs: side.knobs.clone(),
            transport: Transport::Ssh,
            settle: Settle::first_quiet_second(self.experiment.settle_s),
            deadline_s: None,
            together,
            image: guest_image(&self.experiment, DISK),
            trials: self.experiment.trials.clone(),
            monitors: self.experiment.monitors.clone(),
            monitor_terms: self.experiment.monitor_terms,
        };
        let (ssh, host_key) = keys::generate()?;
        let overlay = Overlay {
            plan: &plan,
            keys: Some(GuestKeys { host_key: &host_key, authorized_key: &ssh.client_public_line }),
            files: &self.experiment.files,
        }
        .to_bytes()?;
        let spec = GuestSpec {
            boot,
            side: side.name.clone(),
            image: self.kernel.image.clone(),
            initramfs: self.kernel.initramfs.clone(),
            overlay,
            disk: self.experiment.disk().cloned(),
            cmdline: self.cmdline(block.layout_seed),
            topology: self.experiment.topology.clone(),
            cpu_flags: side.knobs.cpu_flags.clone(),
            accel: self.accel,
            grants: self.experiment.grants,
            nonce: plan.nonce.clone(),
            ssh,
            deadlines: self.deadlines(),
            placement: self.experiment.placement(slot).cloned(),
        };
        Ok((plan, spec))
    }

    fn deadlines(&self) -> Deadlines {
        let usual = Deadlines::of(self.accel);
        let patience = &self.experiment.patience;
        let seconds = |s: Option<u32>| s.map(|s| Duration::from_secs(s.into()));
        // An agent that waits for the guest to become idle says nothing until it is over.
        let settling = Duration::from_secs(self.experiment.settle_s.into()) + SETTLED;
        Deadlines {
            boot: seconds(patience.boot_s).unwrap_or(usual.boot),
            progress: seconds(patience.progress_s).unwrap_or(usual.progress).max(settling),
            ..usual
        }
    }

    /// The kernel command line of a boot with this layout seed.
    pub fn cmdline(&self, layout_seed: u64) -> String {
        let mut words = vec![format!("kduel.seed={layout_seed:#018x}")];
        words.extend_from_slice(&self.side().knobs.cmdline);
        default_cmdline(self.architecture, self.accel, &words)
    }
}

/// The QEMU command line of a side, for showing: descriptors and boot name stand for any boot's.
pub fn nominal_command_line(
    qemu: &Qemu,
    experiment: &PlannedExperiment,
    side: &PlannedSide,
    accel: Accel,
) -> Vec<String> {
    if let (Some(_), Some(block)) = (&experiment.exact, experiment.blocks.first()) {
        return exact::nominal_command_line(qemu, experiment, side, block);
    }
    let nothing = SshIdentity {
        host_key_blob: Vec::new(),
        client_private_pem: String::new(),
        client_public_line: String::new(),
    };
    let spec = GuestSpec {
        boot: BootId::new(&experiment.name, 0, &side.name, 0),
        side: side.name.clone(),
        image: PathBuf::new(),
        initramfs: PathBuf::new(),
        overlay: Vec::new(),
        disk: experiment.disk().cloned(),
        cmdline: default_cmdline(qemu.architecture, accel, &side.knobs.cmdline),
        topology: experiment.topology.clone(),
        cpu_flags: side.knobs.cpu_flags.clone(),
        accel,
        grants: experiment.grants,
        nonce: String::new(),
        ssh: nothing,
        deadlines: Deadlines::of(accel),
        placement: experiment.placement(0).cloned(),
    };
    qemu_args::command_line(&spec, &qemu.program, qemu.architecture, &Descriptors::nominal(&spec))
}

/// What a guest is told of its image, which it has as the block device `device`.
pub fn guest_image(experiment: &PlannedExperiment, device: &str) -> Option<GuestImage> {
    let sha256 = experiment.disk()?.sha256.clone();
    Some(GuestImage { sha256, device: device.to_owned() })
}

/// The nonce of one boot: unguessable for a kernel that did not read its plan, the same again when
/// the same boot of the same plan is repeated.
pub fn nonce_of(boot: &BootId, layout_seed: u64) -> String {
    let digest = Sha256::digest(format!("{boot} {layout_seed:016x}"));
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::collect::testing::plan;
    use crate::plan::Patience;

    fn progress_s(settle_s: u32, asked: Option<u32>) -> u64 {
        let experiment = plan(&["base", "x"], 1).experiments.remove(0);
        let patience = Patience { progress_s: asked, ..Patience::default() };
        let recipe = GuestRecipe {
            experiment: Arc::new(PlannedExperiment { settle_s, patience, ..experiment }),
            side: 0,
            kernel: Kernel::scripted(),
            accel: Accel::Kvm,
            architecture: &ARCHITECTURES[0],
        };
        recipe.deadlines().progress.as_secs()
    }

    #[test]
    fn a_guest_that_settles_does_not_count_as_hanging() {
        assert_eq!(progress_s(10, None), 20);
        assert_eq!(progress_s(30, None), 35);
        assert_eq!(progress_s(0, Some(8)), 8);
        assert_eq!(progress_s(10, Some(8)), 15);
    }
}
