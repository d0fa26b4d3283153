//! What a timed run could show, said before it starts.

use std::time::Duration;

use kduel_protocol::{Parallelism, TrialSpec, workload};
use kduel_stats::{Cost, Effort, Levels, StatsError, best_effort, smallest_detectable};

use super::decide::rule;
use super::margin::{calibrated, timed_margin};
use super::series::promised;
use crate::boot::Accel;
use crate::plan::{Plan, PlannedExperiment, cost, series_label};

/// What the plan's pairs can show of one primary series.
#[derive(Debug, Clone, PartialEq)]
pub struct Sight {
    /// Workload and metric.
    pub series: String,
    /// The change that matters, relative.
    pub margin: f64,
    /// Most pairs.
    pub pairs: usize,
    /// The smallest change that is seen with a chance of 80 %, relative; absent if so few pairs
    /// decide nothing.
    pub detectable: Option<f64>,
    /// Variances of iterations and boots.
    pub levels: Levels,
    /// Iterations a boot.
    pub iterations: u32,
    /// The run that the variances were measured in; without one they are what is usual.
    pub calibration: Option<String>,
}

impl Sight {
    /// Whether a change as large as the margin would be seen.
    pub fn is_enough(&self) -> bool {
        // A margin of 0 asks for no size; what counts is then absolute, of a base not yet known.
        self.margin == 0.0 || self.detectable.is_some_and(|detectable| detectable <= self.margin)
    }
}

/// Standard deviations of boots and of iterations within a boot, of logarithms, where this host was
/// not calibrated: seen with Debian's cloud kernels on quiet hosts.
fn usual_levels(accel: Accel, workload_name: &str) -> Levels {
    let (boot, iteration) = match accel {
        Accel::Tcg => (0.045, 0.03),
        Accel::Kvm => (0.003, 0.008),
    };
    let parallel =
        workload(workload_name).is_none_or(|info| info.parallel == Parallelism::Parallel);
    // Tasks that meet on several CPUs never meet twice in the same way.
    let boot: f64 = if parallel { 1.5 * boot } else { boot };
    let iteration: f64 = iteration;
    Levels { boot: boot.powi(2), iteration: iteration.powi(2) }
}

/// What each primary series of `experiment` could show.
pub fn sights(plan: &Plan, experiment: &PlannedExperiment, accel: Accel) -> Vec<Sight> {
    let of_trial = |trial: &TrialSpec| -> Vec<Sight> {
        let primary = promised(trial).into_iter().filter(|metric| metric.primary);
        primary
            .map(|metric| {
                let names = (metric.name.as_str(), metric.unit.as_str());
                let found = calibrated(experiment, trial, &metric.name);
                let levels = found.map_or_else(
                    || usual_levels(accel, &trial.workload),
                    |c| Levels { boot: c.boot_variance, iteration: c.iteration_variance },
                );
                Sight {
                    series: format!("{} {}", series_label(trial), metric.name),
                    margin: timed_margin(experiment, trial, names, accel).relative,
                    pairs: experiment.blocks.len(),
                    detectable: detectable(plan, experiment, levels.pair_sd(trial.iterations)),
                    levels,
                    iterations: trial.iterations,
                    calibration: found.map(|calibrated| calibrated.run.clone()),
                }
            })
            .collect()
    };
    experiment.trials.iter().flat_map(of_trial).collect()
}

fn detectable(plan: &Plan, experiment: &PlannedExperiment, pair_sd: f64) -> Option<f64> {
    let (rule, pairs) = (rule(plan, experiment), experiment.blocks.len());
    let look = *rule.looks.all().last()?;
    rule.statistic.fewest(look.alpha).ok().filter(|fewest| *fewest <= pairs)?;
    Some(smallest_detectable(pair_sd, pairs, look.alpha).ok()?.exp_m1())
}

/// The best use of `budget` for an experiment in which `sight` is the one that sees least.
///
/// # Errors
///
/// Variances that are no numbers.
pub fn best_within(
    budget: Duration,
    experiment: &PlannedExperiment,
    sight: &Sight,
    accel: Accel,
) -> Result<Effort, StatsError> {
    let one = |trial: &TrialSpec| TrialSpec { warmup: 0, iterations: 1, ..trial.clone() };
    let iteration: Duration = experiment.trials.iter().map(|t| cost::trial(&one(t), accel)).sum();
    let kept: u32 = experiment.trials.iter().map(|trial| trial.iterations).max().unwrap_or(1);
    let boot = cost::boot(experiment, accel).saturating_sub(iteration * kept);
    let cost =
        Cost { boot: boot.as_secs_f64().max(1e-3), iteration: iteration.as_secs_f64().max(1e-3) };
    best_effort(budget.as_secs_f64(), cost, sight.levels, crate::plan::DEFAULT_PAIRS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::plan;
    use crate::plan::CalibratedSeries;

    #[test]
    fn more_pairs_and_quieter_hosts_see_more() {
        let of = |pairs| {
            let plan = plan(&["base", "patched"], pairs);
            sights(&plan, &plan.experiments[0], Accel::Tcg).remove(0)
        };
        let (few, many) = (of(8), of(30));
        assert!(few.detectable > many.detectable && many.is_enough(), "{few:?} {many:?}");
        assert_eq!((many.series.as_str(), many.margin), ("fork-exit time", 0.1));
        assert_eq!((of(5).detectable, of(5).is_enough()), (None, false));
        let mut quiet = plan(&["base", "patched"], 8);
        quiet.experiments[0].calibrated.push(CalibratedSeries {
            workload: "fork-exit".into(),
            metric: "time".into(),
            margin: 0.02,
            iteration_variance: 1e-6,
            boot_variance: 1e-4,
            run: "r".into(),
        });
        let quiet = sights(&quiet, &quiet.experiments[0], Accel::Tcg).remove(0);
        assert_eq!((quiet.margin, quiet.calibration.as_deref()), (0.02, Some("r")));
        assert!(quiet.detectable.unwrap() < 0.02, "{quiet:?}");
    }

    #[test]
    fn a_budget_buys_pairs() {
        let plan = plan(&["base", "patched"], 8);
        let experiment = &plan.experiments[0];
        let sight = &sights(&plan, experiment, Accel::Tcg)[0];
        let of = |minutes: u64| {
            best_within(Duration::from_secs(60 * minutes), experiment, sight, Accel::Tcg).unwrap()
        };
        assert!(of(20).pairs > of(5).pairs && of(60 * 24).pairs == 30);
        assert!(of(20).detectable.unwrap() < 0.1);
    }
}
