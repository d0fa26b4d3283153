//! What one sealed boot of one side carries.

use std::path::PathBuf;
use std::time::Duration;

use kduel_protocol::{GuestPlan, KALLSYMS_WORD, PROTOCOL, Settle, Topology, Transport};

use crate::boot::qemu_args::Architecture;
use crate::boot::sealed::{MAX_OUTPUT_BYTES, TRANSLATION_MIB};
use crate::boot::sealed_args::{
    SEALED_DISK, SealedDescriptors, sealed_cmdline, sealed_command_line,
};
use crate::boot::{Accel, Deadlines, PluginFiles, SealedSpec};
use crate::fault::{Failure, FailureClass};
use crate::host::Qemu;
use crate::id::BootId;
use crate::plan::{Block, ExactTerms, Patience, PlannedExperiment, PlannedSide};
use crate::provision::{Kernel, Overlay, sha256_of};
use crate::run::guest::guest_image;

/// What one boot of one side is made of.
#[derive(Debug, Clone)]
pub struct SealedRecipe<'a> {
    /// The experiment.
    pub experiment: &'a PlannedExperiment,
    /// The side.
    pub side: &'a PlannedSide,
    /// Seed and CPU model.
    pub block: &'a Block,
    /// The side's kernel.
    pub kernel: &'a Kernel,
    /// What kind of machine it is.
    pub architecture: &'static Architecture,
    /// The counting plugin, and the kernel's symbols where they are known.
    pub plugin: Option<PluginFiles>,
}

/// Beside the trials' own deadlines, in seconds of guest time: knobs, settling, the way down.
const OTHERWISE_S: u32 = 300;

impl SealedRecipe<'_> {
    /// The plan and the guest of the boot.
    ///
    /// # Errors
    ///
    /// `HostIo` if a file of the user's cannot be read.
    pub fn boot(&self) -> Result<(GuestPlan, SealedSpec), Failure> {
        let plan = self.plan()?;
        let overlay = Overlay { plan: &plan, keys: None, files: &self.experiment.files };
        let spec = self.spec(overlay.to_bytes()?, &self.side.knobs.cmdline);
        Ok((plan, spec))
    }

    /// A guest that tells its kernel's symbols and nothing else.
    ///
    /// # Errors
    ///
    /// As [`SealedRecipe::boot`].
    pub fn symbols_boot(&self) -> Result<SealedSpec, Failure> {
        let mut words = self.side.knobs.cmdline.clone();
        words.push(KALLSYMS_WORD.to_owned());
        let plan = self.plan()?;
        let overlay = Overlay { plan: &plan, keys: None, files: &[] }.to_bytes()?;
        let mut spec = self.spec(overlay, &words);
        spec.plugin = None;
        spec.boot = BootId(format!("{}-symbols", spec.boot));
        Ok(spec)
    }

    /// The nonce comes of the plan itself: the same plan has the same one.
    fn plan(&self) -> Result<GuestPlan, Failure> {
        let trials = &self.experiment.trials;
        let deadlines = trials.iter().map(|trial| trial.deadline_s);
        let mut plan = GuestPlan {
            protocol: PROTOCOL,
            nonce: String::new(),
            knobs: self.side.knobs.clone(),
            transport: Transport::Sealed,
            settle: Settle::SEALED,
            deadline_s: Some(deadlines.fold(OTHERWISE_S, u32::saturating_add)),
            together: false,
            image: guest_image(self.experiment, SEALED_DISK),
            trials: trials.clone(),
            monitors: self.experiment.monitors.clone(),
            monitor_terms: self.experiment.monitor_terms,
        };
        let json = serde_json::to_vec(&plan).map_err(|error| {
            Failure::new(FailureClass::Internal, format!("the guest's plan: {error}"))
        })?;
        plan.nonce = sha256_of(&json).chars().take(24).collect();
        Ok(plan)
    }

    fn spec(&self, overlay: Vec<u8>, words: &[String]) -> SealedSpec {
        let terms = terms_of(self.experiment);
        let cpu = self.block.cpu.as_deref().unwrap_or(self.architecture.exact_cpu);
        let seed = self.block.layout_seed;
        SealedSpec {
            boot: BootId::new(&self.experiment.name, self.block.index, &self.side.name, 0),
            side: self.side.name.clone(),
            image: self.kernel.image.clone(),
            initramfs: self.kernel.initramfs.clone(),
            overlay,
            disk: self.experiment.disk().cloned(),
            cmdline: sealed_cmdline(self.architecture, seed, terms.sampled, words),
            topology: self.experiment.topology.clone(),
            cpu: cpu.to_owned(),
            cpu_flags: self.side.knobs.cpu_flags.clone(),
            shift: terms.shift,
            seed,
            translation_mib: TRANSLATION_MIB,
            output_bytes: MAX_OUTPUT_BYTES,
            plugin: self.plugin.clone(),
            deadlines: deadlines(terms.shift, &self.experiment.topology, self.experiment.patience),
        }
    }
}

/// How its boots are made.
pub fn terms_of(experiment: &PlannedExperiment) -> ExactTerms {
    experiment.exact.clone().unwrap_or(ExactTerms { shift: 0, sampled: false, chains: false })
}

/// How long what may take in time of the host, beside the agent's own deadlines in guest time. vCPUs
/// take turns, and at shift 0 a second of guest time is a thousand million instructions. They decide no
/// digit, so they are no part of the identity.
fn deadlines(shift: u8, topology: &Topology, patience: Patience) -> Deadlines {
    let slow = if shift >= 2 { 1 } else { 4 };
    let timed = Deadlines::of(Accel::Tcg);
    let seconds = |s: Option<u32>| s.map(|s| Duration::from_secs(s.into()));
    let boot = timed.boot * 2 + Duration::from_secs(20) * topology.cpus();
    Deadlines {
        boot: seconds(patience.boot_s).unwrap_or(boot),
        progress: seconds(patience.progress_s).unwrap_or(timed.progress * 3 * slow),
        ..timed
    }
}

/// The QEMU command line of a side, for showing: descriptors and files stand for any boot's.
pub fn nominal_command_line(
    qemu: &Qemu,
    experiment: &PlannedExperiment,
    side: &PlannedSide,
    block: &Block,
) -> Vec<String> {
    let nothing = PathBuf::new();
    let plugin = PluginFiles {
        library: nothing.clone(),
        symbols: Some(nothing),
        chains: terms_of(experiment).chains,
    };
    let recipe = SealedRecipe {
        experiment,
        side,
        block,
        kernel: &Kernel::scripted(),
        architecture: qemu.architecture,
        plugin: Some(plugin),
    };
    let spec = recipe.spec(Vec::new(), &side.knobs.cmdline);
    let fds = SealedDescriptors::nominal(&spec);
    sealed_command_line(&spec, &qemu.program, qemu.architecture, &fds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boot::qemu_args::ARCHITECTURES;
    use crate::collect::testing::plan;

    #[test]
    fn the_end_marker_comes_of_the_plan_and_of_nothing_else() {
        let made = plan(&["base", "patched"], 2);
        let experiment = &made.experiments[0];
        let (image, kernel) = ("/elsewhere/bzImage".into(), Kernel::scripted());
        let elsewhere = Kernel { image, ..kernel.clone() };
        let boot = |side: usize, kernel| {
            let recipe = SealedRecipe {
                experiment,
                side: &experiment.sides[side],
                block: &experiment.blocks[0],
                kernel,
                architecture: &ARCHITECTURES[0],
                plugin: None,
            };
            recipe.boot().unwrap()
        };
        let ((first, spec), (second, other)) = (boot(0, &kernel), boot(0, &elsewhere));
        assert_eq!((first.nonce.len(), &first.nonce), (24, &second.nonce));
        assert_eq!(spec.overlay, other.overlay);
        // Another side with the same knobs has the same plan: its kernel may be the same, too.
        assert_eq!(boot(1, &kernel).0.nonce, first.nonce);
        let mut changed = made.clone();
        changed.experiments[0].trials[0].iterations += 1;
        let changed = SealedRecipe {
            experiment: &changed.experiments[0],
            side: &changed.experiments[0].sides[0],
            block: &changed.experiments[0].blocks[0],
            kernel: &kernel,
            architecture: &ARCHITECTURES[0],
            plugin: None,
        };
        assert_ne!(changed.boot().unwrap().0.nonce, first.nonce);
    }

    #[test]
    fn the_users_own_patience_counts() {
        let topology = &plan(&["base"], 1).experiments[0].topology;
        let usual = deadlines(2, topology, Patience::default());
        assert_eq!(usual.progress * 4, deadlines(0, topology, Patience::default()).progress);
        let own = deadlines(2, topology, Patience { boot_s: Some(7), progress_s: Some(9) });
        let seconds = Duration::from_secs;
        assert_eq!((own.boot, own.progress, own.qmp), (seconds(7), seconds(9), usual.qmp));
    }
}
