//! What a plan takes in guests and time.

use std::time::Duration;

use kduel_protocol::{COMMAND, KERNBENCH, TrialSpec, WorkloadParams};

use super::{Plan, PlannedExperiment};
use crate::boot::Accel;

/// What a plan takes, estimated before anything of it has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Guests started.
    pub boots: usize,
    /// The time it takes: the lives of all guests that are not there at once.
    pub total: Duration,
}

/// The cost of a whole plan.
pub fn of_plan(plan: &Plan, accel: Accel) -> Cost {
    let costs = plan.experiments.iter().map(|experiment| of_experiment(experiment, accel));
    costs.fold(Cost { boots: 0, total: Duration::ZERO }, |sum, cost| Cost {
        boots: sum.boots + cost.boots,
        total: sum.total + cost.total,
    })
}

/// The cost of one experiment.
pub fn of_experiment(experiment: &PlannedExperiment, accel: Accel) -> Cost {
    let boots = experiment.blocks.iter().map(|block| block.boots(experiment.pairing)).sum();
    let waves: usize =
        experiment.blocks.iter().map(|block| block.waves(experiment.pairing).len()).sum();
    let factor = u32::try_from(waves).unwrap_or(u32::MAX);
    Cost { boots, total: boot(experiment, accel).saturating_mul(factor) }
}

/// How long one guest of an experiment lives: start, settling, trials, shutdown.
pub fn boot(experiment: &PlannedExperiment, accel: Accel) -> Duration {
    if let Some(terms) = &experiment.exact {
        return exact_boot(experiment, terms.shift);
    }
    // Seen with Debian's cloud kernels on two cores; a run's own boots replace these figures.
    let (start_and_stop, settle) = match accel {
        Accel::Kvm => (Duration::from_secs(3), 1),
        Accel::Tcg => (Duration::from_secs(9), 3),
    };
    let settle = Duration::from_secs(settle.min(u64::from(experiment.settle_s)));
    let trials: Duration = experiment.trials.iter().map(|spec| trial(spec, accel)).sum();
    start_and_stop + settle + trials
}

/// A guest's life that is told by its instructions: idle time costs nothing, and the shorter an
/// instruction, the more of them fill a second of guest time.
fn exact_boot(experiment: &PlannedExperiment, shift: u8) -> Duration {
    // Seen with Debian's cloud kernels on two cores: 7 s at shift 2, 13 s at shift 0.
    let start_and_stop = Duration::from_millis(5000 + (8000 >> shift.min(8)));
    let cpus = experiment.topology.cpus().saturating_sub(1);
    let trials: Duration = experiment.trials.iter().map(|trial| exact_trial(trial, shift)).sum();
    start_and_stop + Duration::from_secs(3) * cpus + trials
}

/// How long one trial of an exact run takes.
pub fn exact_trial(spec: &TrialSpec, shift: u8) -> Duration {
    // Some ninety million instructions a second.
    let slow = |ns: u64| Duration::from_nanos(ns).mul_f64(11.0 / f64::from(1_u32 << shift.min(8)));
    let iterations = spec.warmup + spec.iterations;
    if spec.min_interval_ns > 0 {
        return slow(spec.min_interval_ns) * iterations;
    }
    // Fixed operations; what they wait for costs nothing.
    trial(&TrialSpec { params: without_waits(spec), ..spec.clone() }, Accel::Tcg)
}

fn without_waits(spec: &TrialSpec) -> WorkloadParams {
    let mut params = spec.params.clone();
    params.retain(|name, _| name != "interval");
    params
}

/// How long one trial takes.
pub fn trial(trial: &TrialSpec, accel: Accel) -> Duration {
    let slow = match accel {
        Accel::Kvm => 1,
        Accel::Tcg => 10,
    };
    let number =
        |name: &str| trial.params.get(name).and_then(serde_json::Value::as_u64).unwrap_or(1);
    let iteration_ns = match trial.workload.as_str() {
        "cgroup-exec" => {
            let one = number("interval").saturating_add(2_000_000 * slow);
            number("moves").saturating_mul(one)
        }
        "hackbench" => {
            let pairs = number("fds").saturating_mul(number("fds"));
            let messages = number("groups").saturating_mul(pairs).saturating_mul(number("loops"));
            messages.saturating_mul(2_000 * slow)
        }
        KERNBENCH => kernbench_ns(trial).saturating_mul(if accel == Accel::Kvm { 1 } else { 40 }),
        COMMAND => number("repeat").saturating_mul(500_000_000),
        // Finding the length of the inner loop costs about as much as it saves.
        _ => trial.min_interval_ns + trial.min_interval_ns / 2,
    };
    let iterations = u64::from(trial.warmup) + u64::from(trial.iterations);
    Duration::from_nanos(iteration_ns.saturating_mul(iterations))
}

/// Processor time that a build takes natively.
fn kernbench_ns(trial: &TrialSpec) -> u64 {
    let seconds = match trial.params.get("size").and_then(serde_json::Value::as_str) {
        Some("large") => 1500,
        Some("small") => 228,
        Some("one") => 1,
        _ => 10,
    };
    seconds * 1_000_000_000
}

/// When the agent gives a trial up: far beyond what it should take on a slow host.
pub fn trial_deadline_s(spec: &TrialSpec) -> u32 {
    let least = if spec.workload == COMMAND || spec.workload == KERNBENCH { 900 } else { 120 };
    let expected = trial(spec, Accel::Tcg).as_secs().saturating_mul(5);
    u32::try_from(expected.max(least)).unwrap_or(u32::MAX).min(24 * 3600)
}
