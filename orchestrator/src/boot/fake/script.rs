use std::collections::BTreeMap;
use std::path::Path;

use kduel_protocol::TrialProblem;
use serde::Deserialize;

use super::tamper::Tamper;
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;

/// What fake guests do. Without anything, all sides give the same values.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Script {
    /// By side.
    pub sides: BTreeMap<String, SideScript>,
    /// By workload, the value of every metric on a side with factor 1; 1000 where absent.
    pub values: BTreeMap<String, f64>,
    /// Half the relative spread of samples; boots spread as much again. The same script, side,
    /// block and trial always give the same numbers.
    pub noise: f64,
    /// How many single operations are told of each sample; some take much longer than the others.
    pub operations: usize,
    /// Of all that fit a boot, the first is played.
    pub boots: Vec<BootScript>,
}

/// What is particular to a side.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct SideScript {
    /// By workload, or `all`: what the side's values are multiplied by.
    pub factor: BTreeMap<String, f64>,
    /// By workload and metric: the samples themselves, one per kept iteration, from the start again
    /// when they are used up.
    pub samples: BTreeMap<String, BTreeMap<String, Vec<f64>>>,
    /// Metrics that the agent does not report.
    pub missing: Vec<String>,
    /// What the agent reports of the guest.
    pub facts: FactsScript,
}

/// Facts that differ from what the specification of the guest asks for.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct FactsScript {
    /// `uname -r`; made of the side's name if absent.
    pub release: Option<String>,
    /// Of the kernel; made of the side's name if absent.
    pub build_id: Option<String>,
    /// How many CPUs the guest sees.
    pub cpus: Option<usize>,
}

/// What happens in a boot.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct BootScript {
    /// Only of this side.
    pub side: Option<String>,
    /// Only in this block, from 0.
    pub block: Option<usize>,
    /// Only at this attempt, from 0.
    pub attempt: Option<u32>,
    /// Lines on the console before the guest is ready.
    pub console: Vec<String>,
    /// How long the boot takes.
    pub ready_after_ms: u64,
    /// The boot ends with this.
    pub boot_failure: Option<Failure>,
    /// It does not stop when asked to.
    pub deaf: bool,
    /// Before every line of output.
    pub line_after_ms: u64,
    /// Lines on the console while the command runs.
    pub console_running: Vec<String>,
    /// The command ends with a failure.
    pub cut_off: Option<CutOff>,
    /// After its last line the command hangs until it is stopped.
    pub hang: bool,
    /// What is done to the output, in this order.
    pub tamper: Vec<Tamper>,
    /// Names of knobs that read back differently.
    pub knobs_not_taken: Vec<String>,
    /// Trials that do not give their samples.
    pub problems: Vec<ProblemScript>,
    /// The agent gives up with this message after its facts.
    pub agent_failed: Option<String>,
    /// The command's exit status.
    pub status: i32,
    /// The signal that ends the command.
    pub signal: Option<String>,
    /// The part of the vCPU's time that the host takes away, in percent.
    pub steal: u64,
    /// Stopping the guest ends with this.
    pub stop_failure: Option<Failure>,
}

/// A failure in the middle of a command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CutOff {
    /// After this many lines of output.
    pub after_lines: usize,
    /// With this.
    pub failure: Failure,
}

/// A trial that does not give its samples.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProblemScript {
    /// Of this workload.
    pub workload: String,
    /// Why.
    pub problem: TrialProblem,
}

impl Script {
    /// Reads a YAML (or JSON) file.
    ///
    /// # Errors
    ///
    /// [`FailureClass::HostIo`] with the place of what is wrong in it.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::host_io("read", path, &error))?;
        serde_yaml::from_str(&text).map_err(|error| {
            Failure::new(
                FailureClass::HostIo,
                format!("failed to read the script {}: {error}", path.display()),
            )
        })
    }

    /// What happens in `boot` of `side`.
    pub fn boot(&self, boot: &BootId, side: &str) -> BootScript {
        let (block, attempt) = place(boot, side).unwrap_or_default();
        let fits = |script: &&BootScript| {
            script.side.as_deref().is_none_or(|name| name == side)
                && script.block.is_none_or(|number| number == block)
                && script.attempt.is_none_or(|number| number == attempt)
        };
        self.boots.iter().find(fits).cloned().unwrap_or_default()
    }

    /// The value of a workload on a side before noise.
    pub(super) fn value(&self, side: &str, workload: &str) -> f64 {
        let base = self.values.get(workload).copied().unwrap_or(1000.0);
        let factors = self.sides.get(side).map(|side| &side.factor);
        let factor = factors.and_then(|by| by.get(workload).or_else(|| by.get("all")));
        base * factor.copied().unwrap_or(1.0)
    }
}

/// Block and attempt of a boot of `side`, from its name.
pub(super) fn place(boot: &BootId, side: &str) -> Option<(usize, u32)> {
    let at = boot.0.rfind(&format!("-{side}"))?;
    let block = boot.0[..at].rsplit_once("-b")?.1.parse().ok()?;
    let rest = boot.0[at + 1 + side.len()..].trim_end_matches("+sentinel");
    let attempt = match rest.strip_prefix("-r") {
        Some(number) => number.parse().ok()?,
        None => 0,
    };
    Some((block, attempt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boots_place_is_read_from_its_name() {
        for (block, attempt) in [(0, 0), (12, 3), (100, 1)] {
            let boot = BootId::new("fork-b01-x", block, "a-b02-c", attempt);
            assert_eq!(place(&boot, "a-b02-c"), Some((block, attempt)));
            assert_eq!(place(&boot.sentinel(), "a-b02-c"), Some((block, attempt)));
        }
    }

    #[test]
    fn the_first_boot_that_fits_is_played() {
        let script: Script = serde_yaml::from_str(
            "boots:\n- {side: b, block: 1, attempt: 0, status: 1}\n- {side: b, status: 2}\n- {block: 0, status: 3}\n",
        )
        .unwrap();
        let status = |side, block, attempt| {
            script.boot(&BootId::new("x", block, side, attempt), side).status
        };
        assert_eq!(
            [status("b", 1, 0), status("b", 1, 1), status("a", 0, 0), status("a", 1, 0)],
            [1, 2, 3, 0]
        );
    }

    #[test]
    fn a_slip_in_a_script_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script.yaml");
        std::fs::write(&path, "boots:\n- {stauts: 1}\n").unwrap();
        let failure = Script::load(&path).unwrap_err();
        assert!(failure.title.contains("stauts") && failure.title.contains("line 2"), "{failure}");
    }
}
