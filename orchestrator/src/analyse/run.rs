use serde::{Deserialize, Serialize};

use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::exit_code;
use crate::fault::Fault;
use crate::plan::{Measure, Plan, PlannedExperiment, Statistic};

use super::decide::{judge_all, rule};
use super::distribution::distributions;
use super::exact::{compare_exact, not_exact};
use super::monitors::{LogFinding, MonitorTable, kernel_log, monitors};
use super::pairing::compare_experiment;
use super::series::latest_results;
use super::sides::summarise;
use super::warnings::warn;
use super::{Comparison, DistributionSummary, SideSummary, Verdict};

/// Everything that follows from the boots of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Analysis {
    /// What executed the guests; absent before the first boot.
    pub accel: Option<Accel>,
    /// What estimate and interval are, in one sentence.
    pub basis: String,
    /// Experiment by experiment, in the plan's order; a series' primary metric first.
    pub comparisons: Vec<Comparison>,
    /// Experiment by experiment, base first.
    pub sides: Vec<SideSummary>,
    /// Of the series for which single operations were kept.
    pub distributions: Vec<DistributionSummary>,
    /// What was watched beside the trials.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub monitors: Vec<MonitorTable>,
    /// What the guests' kernels complained of meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub kernel_log: Vec<LogFinding>,
    /// What the reader should know before believing the numbers.
    pub warnings: Vec<String>,
    /// The worst verdict of the primary series; `Invalid` if there is nothing.
    pub worst: Verdict,
}

impl Analysis {
    /// The exit code of the command that shows this. `strict`: inconclusive is no success.
    pub fn exit_code(&self, strict: bool) -> u8 {
        let kernel_failed = || {
            let faults = self.sides.iter().flat_map(|side| &side.failures);
            faults.into_iter().any(|failure| failure.fault == Fault::KernelUnderTest)
        };
        match self.worst {
            Verdict::Fails => exit_code::KERNEL_FAILED,
            Verdict::Regression => exit_code::REGRESSION,
            Verdict::Invalid if kernel_failed() => exit_code::KERNEL_FAILED,
            Verdict::Invalid => exit_code::RIG,
            Verdict::Inconclusive if strict => exit_code::INCONCLUSIVE,
            Verdict::Inconclusive | Verdict::Improvement | Verdict::NoChange => exit_code::DONE,
        }
    }
}

/// Compares every candidate with its base, series by series. The records may be those of a run that
/// is still going on or was cut short; their order does not matter.
pub fn analyse(plan: &Plan, records: &[BootRecord]) -> Analysis {
    let mixed = records.windows(2).any(|pair| pair[0].accel != pair[1].accel);
    let (mut comparisons, mut open) = (Vec::new(), Vec::new());
    let mut sides = Vec::new();
    let mut warnings = Vec::new();
    if mixed {
        warnings.push("boots of this run were executed by different accelerators".to_owned());
    }
    for experiment in &plan.experiments {
        let summaries: Vec<SideSummary> =
            experiment.sides.iter().map(|side| summarise(experiment, side, records)).collect();
        warn(experiment, &summaries, records, &mut warnings);
        sides.extend(summaries);
        match plan.measure {
            Measure::Time => open.extend(compare_experiment(plan, experiment, records, mixed)),
            Measure::Instructions => comparisons.extend(compare_exact(plan, experiment, records)),
        }
    }
    comparisons.extend(judge_all(open));
    if plan.measure == Measure::Instructions {
        warnings.extend(not_exact(plan, records).map(|why| format!("not exact: {why}")));
        warnings.extend(lost(records));
    }
    let pairs = count_pairs(plan, records, &comparisons);
    if !records.is_empty() && pairs.done < pairs.planned {
        let PairCount { done, planned } = pairs;
        warnings.push(format!("{done} of {planned} planned pairs of boots are complete"));
    }
    if comparisons.iter().any(|c: &Comparison| c.dropped * 5 > c.dropped + c.pairs) {
        warnings.push("more than 20 % of the pairs of a series were dropped".to_owned());
    }
    let verdicts = |primary| {
        comparisons.iter().filter(move |c: &&Comparison| c.primary == primary).map(|c| c.verdict)
    };
    let worst = verdicts(true).min().or_else(|| verdicts(false).min()).unwrap_or(Verdict::Invalid);
    Analysis {
        accel: records.first().map(|record| record.accel),
        basis: basis(plan, comparisons.len()),
        distributions: distributions(plan, records),
        comparisons,
        sides,
        monitors: monitors(plan, records),
        kernel_log: kernel_log(plan, records),
        warnings,
        worst,
    }
}

/// What the plugin could not count, each once for a side.
fn lost(records: &[BootRecord]) -> Vec<String> {
    let mut lost: Vec<String> = Vec::new();
    for record in records {
        for what in record.exact.iter().flat_map(|exact| &exact.lost) {
            let line = format!("{}: {what}", record.side);
            if !lost.contains(&line) {
                lost.push(line);
            }
        }
    }
    lost
}

fn basis(plan: &Plan, comparisons: usize) -> String {
    let exact = plan.experiments.iter().filter_map(|experiment| experiment.exact.as_ref());
    if plan.measure == Measure::Instructions {
        let words = match exact.into_iter().any(|terms| terms.sampled) {
            true => {
                "layouts sampled; value is the mean of the seeds, change the two-sample \
                 Hodges-Lehmann estimate over seeds, interval exact rank sum, at least 95 %"
            }
            false => {
                "deterministic; value is the mean of the windows, change their ratio, no interval: \
                 the same run gives the same bits; it holds for these two binaries in this layout"
            }
        };
        return words.to_owned();
    }
    // What stands out among several has to stand out further.
    let wider =
        if comparisons > 1 { ", wider where several series are judged at once" } else { "" };
    if plan.quick {
        return format!(
            "quick, one look; value is the median of the boots, change the mean of the logarithms over \
             pairs of boots (so not quite a ratio of values), interval Student's t at 95 %{wider}"
        );
    }
    let (change, interval) = match plan.statistic {
        Statistic::SignedRank => {
            ("the Hodges-Lehmann estimate over pairs of boots", "exact Wilcoxon signed-rank")
        }
        Statistic::T => ("the mean of the logarithms over pairs of boots", "Student's t"),
        Statistic::Welch => ("the difference of the boots' mean logarithms", "Welch's t"),
        Statistic::Anytime => {
            ("the mean of the logarithms over pairs of boots", "t-mixture confidence sequence")
        }
    };
    let (looks, level) = match looks(plan) {
        Some(looks) => (looks, "at least 95 % over all looks"),
        None => ("one look".to_owned(), "at least 95 %"),
    };
    format!(
        "{looks}; value is the median of the boots, change {change} (so not quite a ratio of \
         values), interval {interval}, {level}{wider}"
    )
}

/// When the run was or would have been looked at, if more than once.
fn looks(plan: &Plan) -> Option<String> {
    if plan.statistic == Statistic::Anytime {
        return Some("looks after every pair".to_owned());
    }
    let each = plan.experiments.iter().map(|experiment| looks_at(plan, experiment));
    let longest = each.max_by_key(|looks| looks.last().copied())?;
    let at: Vec<String> = longest.iter().map(ToString::to_string).collect();
    match at.split_last() {
        Some((last, before)) if !before.is_empty() => {
            Some(format!("looks at {} and {last} pairs", before.join(", ")))
        }
        _ => None,
    }
}

/// After how many pairs `experiment` of a timed run is looked at.
pub fn looks_at(plan: &Plan, experiment: &PlannedExperiment) -> Vec<usize> {
    rule(plan, experiment).looks.all().iter().map(|look| look.pairs).collect()
}

/// Whether `experiment` may end after its first `blocks` blocks: it is time for a look, and that look
/// leaves no primary series open.
pub fn is_decided(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    blocks: usize,
) -> bool {
    is_look(plan, experiment, blocks) && is_settled(experiment, &analyse(plan, records).comparisons)
}

fn is_look(plan: &Plan, experiment: &PlannedExperiment, blocks: usize) -> bool {
    looks_at(plan, experiment).contains(&blocks)
}

fn is_settled(experiment: &PlannedExperiment, comparisons: &[Comparison]) -> bool {
    let mut primary = comparisons
        .iter()
        .filter(|c| c.primary && c.series.experiment == experiment.name)
        .peekable();
    primary.peek().is_some() && primary.all(|c| c.verdict != Verdict::Inconclusive)
}

/// Blocks that `experiment` takes: all of its plan's, unless a look ended it before.
fn blocks_needed(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    comparisons: &[Comparison],
) -> usize {
    let own = records.iter().filter(|record| record.experiment == experiment.name);
    let begun = own.map(|record| record.block + 1).max().unwrap_or(0);
    let ended = plan.measure == Measure::Time
        && is_look(plan, experiment, begun)
        && is_settled(experiment, comparisons);
    if ended { begun } else { experiment.blocks.len() }
}

/// Pairs of a run, over all experiments and candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCount {
    /// Both boots completed.
    pub done: usize,
    /// In the schedule, up to where a look ended it.
    pub planned: usize,
}

/// Counts the pairs of a run, of which `comparisons` is what was found.
pub fn count_pairs(plan: &Plan, records: &[BootRecord], comparisons: &[Comparison]) -> PairCount {
    let mut pairs = PairCount { done: 0, planned: 0 };
    for experiment in &plan.experiments {
        let Some((base, candidates)) = experiment.sides.split_first() else { continue };
        let base_boots = latest_results(records, &experiment.name, &base.name);
        for side in candidates {
            pairs.planned += blocks_needed(plan, experiment, records, comparisons);
            let boots = latest_results(records, &experiment.name, &side.name);
            pairs.done += boots.keys().filter(|block| base_boots.contains_key(block)).count();
        }
    }
    pairs
}
