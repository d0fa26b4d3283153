use kduel_protocol::{Parallelism, TrialSpec, workload};
use kduel_stats::Margin;

use crate::boot::Accel;
use crate::plan::{CalibratedSeries, PlannedExperiment, series_label};

/// The change that matters where the user has not said otherwise, relative: 0.1 is 10 %.
///
/// Emulated numbers are of QEMU's translator, so only what is large is worth a verdict. On hardware
/// loops of one task repeat closely, tasks that meet on several CPUs do not, and tails least of all.
pub fn default_margin(accel: Accel, workload_name: &str, metric: &str) -> f64 {
    let parallel =
        workload(workload_name).is_none_or(|info| info.parallel == Parallelism::Parallel);
    match accel {
        Accel::Tcg => 0.10,
        Accel::Kvm if metric.ends_with("p99") => 0.10,
        Accel::Kvm if parallel => 0.03,
        Accel::Kvm => 0.01,
    }
}

/// What the host was calibrated to for one series, if it was.
pub fn calibrated<'a>(
    experiment: &'a PlannedExperiment,
    trial: &TrialSpec,
    metric: &str,
) -> Option<&'a CalibratedSeries> {
    let label = series_label(trial);
    let mut all = experiment.calibrated.iter();
    all.find(|series| series.workload == label && series.metric == metric)
}

/// The margin of one series of a timed run: the user's, else that of the calibration, else the usual
/// one. `unit` is the metric's.
pub fn timed_margin(
    experiment: &PlannedExperiment,
    trial: &TrialSpec,
    (metric, unit): (&str, &str),
    accel: Accel,
) -> Margin {
    let usual = || default_margin(accel, &trial.workload, metric);
    let found = calibrated(experiment, trial, metric).map(|series| series.margin);
    experiment.margin.of(unit, Margin::relative(found.unwrap_or_else(usual)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_follow_accelerator_workload_and_metric() {
        assert_eq!(default_margin(Accel::Tcg, "syscall", "time"), 0.10);
        assert_eq!(default_margin(Accel::Kvm, "syscall", "time"), 0.01);
        assert_eq!(default_margin(Accel::Kvm, "hackbench", "time"), 0.03);
        assert_eq!(default_margin(Accel::Kvm, "syscall", "time-p99"), 0.10);
    }
}
