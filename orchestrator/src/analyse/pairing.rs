use kduel_stats::{
    Boots, Conditions, Downgrade, Pair, Rule, Series, StatsError, doubts, pair_spread,
};

use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::plan::{Block, Plan, PlannedExperiment, PlannedSide};
use crate::text::count;

use super::comparison::TimedFinding;
use super::contamination::{contamination, is_superseded, steal};
use super::decide::{Open, better, rule};
use super::failures::{KernelBoots, fails};
use super::series::{
    Metric, Summaries, first, happened, latest, latest_results, metrics, sentinel_differences,
};
use super::warnings::undeclared;
use super::{Comparison, SeriesName, Verdict, timed_margin};
use crate::plan::series_label;

/// Every candidate of `experiment` against its base, series by series. `mixed`: the run's boots did
/// not all use the same accelerator, so nothing may be compared.
pub(super) fn compare_experiment(
    plan: &Plan,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    mixed: bool,
) -> Vec<Open> {
    let mut all = Vec::new();
    let Some((base, candidates)) = experiment.sides.split_first() else { return all };
    let rule = rule(plan, experiment);
    let results: Vec<_> = experiment
        .sides
        .iter()
        .flat_map(|side| latest_results(records, &experiment.name, &side.name).into_values())
        .collect();
    let base_kernel = KernelBoots::of(&experiment.name, &base.name, records);
    for trial in &experiment.trials {
        for metric in metrics(trial, &results) {
            let summaries = |side: &PlannedSide| {
                Summaries::of(&latest(records, &experiment.name, &side.name), trial, &metric)
            };
            let base_summaries = summaries(base);
            let accel = records.first().map_or(Accel::Tcg, |record| record.accel);
            let names = (metric.name.as_str(), metric.unit.as_str());
            let margin = timed_margin(experiment, trial, names, accel);
            let with_spoilt = |side: &PlannedSide| {
                Summaries::of_all(&first(records, &experiment.name, &side.name), trial, &metric)
            };
            let repeated = |side: &PlannedSide| {
                let spoilt = |record: &&BootRecord| {
                    contamination(record, trial.id).is_some() && is_superseded(record, records)
                };
                own(records, experiment, side).into_iter().filter(spoilt).count() as u64
            };
            let sentinels = |side: &PlannedSide| {
                let own = latest(records, &experiment.name, &side.name);
                sentinel_differences(&own, records, trial, &metric)
            };
            for (index, side) in candidates.iter().enumerate() {
                let spoilt = [base, side].into_iter().any(|side| {
                    let own = own(records, experiment, side);
                    own.into_iter().any(|record| contamination(record, trial.id).is_some())
                });
                let pairing = Pairing {
                    base_name: &base.name,
                    side_name: &side.name,
                    base: &base_summaries,
                    side: &summaries(side),
                    metric: &metric,
                    margin: base_summaries.location().map_or(margin.relative, |at| margin.of(at)),
                    sentinels: [sentinels(base), sentinels(side)].concat(),
                    undeclared: !undeclared(experiment, &side.name, records).is_empty(),
                    with_spoilt: spoilt.then(|| [with_spoilt(base), with_spoilt(side)]),
                    repeated: [repeated(base), repeated(side)],
                    base_first: &base_first(experiment, index + 1),
                    steal: [base, side]
                        .map(|side| steal(&own(records, experiment, side), trial.id)),
                };
                let series = SeriesName {
                    experiment: experiment.name.clone(),
                    workload: series_label(trial),
                    metric: metric.name.clone(),
                };
                let kernel = KernelBoots::of(&experiment.name, &side.name, records);
                let overruled = match fails(&kernel, &base_kernel) {
                    Some(why) => Some((Verdict::Fails, why)),
                    None if mixed => Some((Verdict::Invalid, "accelerators were mixed".into())),
                    None => None,
                };
                all.push(pairing.open(series, rule.clone(), overruled));
            }
        }
    }
    all
}

/// The boots of `side` that count.
fn own<'a>(
    records: &'a [BootRecord],
    experiment: &PlannedExperiment,
    side: &PlannedSide,
) -> Vec<&'a BootRecord> {
    let own = records.iter().filter(|r| r.experiment == experiment.name && r.side == side.name);
    own.filter(|record| happened(record)).collect()
}

/// Whether the base boots before the side at place `side`, block by block.
fn base_first(experiment: &PlannedExperiment, side: usize) -> Vec<bool> {
    let before = |block: &Block| {
        let place = |side| block.order.iter().position(|other| *other == side);
        place(0) < place(side)
    };
    experiment.blocks.iter().map(before).collect()
}

/// One candidate and its base, for one series.
struct Pairing<'a> {
    base_name: &'a str,
    side_name: &'a str,
    base: &'a Summaries,
    side: &'a Summaries,
    metric: &'a Metric,
    /// Relative.
    margin: f64,
    /// Of both sides.
    sentinels: Vec<f64>,
    undeclared: bool,
    /// Of both sides, where the host spoilt any boot: each block's first boots whatever it did.
    with_spoilt: Option<[Summaries; 2]>,
    /// Boots of either side that the host spoilt and that were repeated.
    repeated: [u64; 2],
    base_first: &'a [bool],
    /// As in [`TimedFinding`], of the base and the side.
    steal: [Option<f64>; 2],
}

impl Pairing<'_> {
    /// `overruled`: what no number stands against.
    fn open(&self, series: SeriesName, rule: Rule, overruled: Option<(Verdict, String)>) -> Open {
        let pairs = self.pairs();
        let valid = self.side.valid.keys().filter(|b| self.base.valid.contains_key(b)).count();
        let comparison = Comparison {
            series,
            side: self.side_name.to_owned(),
            unit: self.metric.unit.clone(),
            better: self.metric.better,
            primary: self.metric.primary,
            base: self.base.location(),
            value: self.side.location(),
            change: None,
            low: None,
            high: None,
            confidence: None,
            margin: self.margin,
            pairs: valid,
            dropped: self.ended() - valid,
            all_pairs: None,
            timed: None,
            verdict: Verdict::Invalid,
            reason: String::new(),
            exact: None,
        };
        let mut open =
            Open { comparison, series: None, all: None, rule, doubts: Vec::new(), overruled };
        match (self.obstacle(valid), self.doubts(&pairs)) {
            (Some(reason), _) => {
                open.comparison.reason = reason;
                if self.spoilt() > 0 {
                    open.comparison.verdict = Verdict::Inconclusive;
                }
            }
            (None, Err(error)) => open.comparison.reason = error.to_string(),
            (None, Ok(doubts)) => {
                open.comparison.timed = Some(self.timed(&pairs).into());
                open.doubts = doubts;
                open.series = Some(self.series(pairs));
            }
        }
        if let Some([base, side]) = self.with_spoilt.as_ref().filter(|_| open.series.is_some()) {
            let all = Pairing { base, side, with_spoilt: None, sentinels: Vec::new(), ..*self };
            open.all = Some(self.series(all.pairs()));
        }
        open
    }

    fn timed(&self, pairs: &[Option<Pair>]) -> TimedFinding {
        let valid: Vec<Pair> = pairs.iter().flatten().copied().collect();
        let spread = pair_spread(&valid);
        let [steal_base, steal] = self.steal;
        TimedFinding {
            steal_base,
            steal,
            pair_sd: spread.map(|spread| spread.paired),
            shuffled_sd: spread.map(|spread| spread.shuffled),
        }
    }

    fn series(&self, pairs: Vec<Option<Pair>>) -> Series {
        Series {
            pairs,
            delta: self.margin.ln_1p(),
            better: better(self.metric.better),
            primary: self.metric.primary,
        }
    }

    /// Boots that the host spoilt and no repetition replaced.
    fn spoilt(&self) -> usize {
        self.base.contaminated + self.side.contaminated
    }

    /// Of the blocks that are over, up to the first that is not.
    fn pairs(&self) -> Vec<Option<Pair>> {
        let of = |block: usize| {
            let base = self.base.valid.get(&block)?;
            let side = self.side.valid.get(&block)?;
            Some(Pair { base: *base, side: *side, base_first: self.base_first[block] })
        };
        (0..self.base_first.len()).take_while(|block| self.is_over(*block)).map(of).collect()
    }

    /// Whether both boots of a block ended, or one of them in a way that spoils the pair. A good boot
    /// that still waits for its other half is not lost.
    fn is_over(&self, block: usize) -> bool {
        let sides = [self.base, self.side];
        let ended = |side: &&Summaries| side.boots.contains(&block);
        let valid = |side: &&Summaries| side.valid.contains_key(&block);
        sides.iter().all(ended) || (sides.iter().any(ended) && !sides.iter().any(valid))
    }

    fn ended(&self) -> usize {
        let blocks = self.base.boots.union(&self.side.boots);
        blocks.filter(|block| self.is_over(**block)).count()
    }

    fn doubts(&self, pairs: &[Option<Pair>]) -> Result<Vec<Downgrade>, StatsError> {
        let boots = |side: &Summaries, repeated: u64| Boots {
            lost: (side.boots.len() - side.valid.len()) as u64 + repeated,
            all: side.boots.len() as u64 + repeated,
        };
        doubts(&Conditions {
            pairs,
            delta: self.margin.ln_1p(),
            sentinels: &self.sentinels,
            base: boots(self.base, self.repeated[0]),
            side: boots(self.side, self.repeated[1]),
            undeclared: self.undeclared,
        })
    }

    /// Why there is nothing to decide.
    fn obstacle(&self, valid: usize) -> Option<String> {
        let sides = [(self.base_name, self.base), (self.side_name, self.side)];
        for (name, summaries) in sides {
            if let Some(why) = &summaries.broken {
                return Some(format!("{name}: {why}"));
            }
        }
        let lacking: Vec<&str> =
            sides.iter().filter(|(_, s)| s.lacks_metric()).map(|(name, _)| *name).collect();
        if !lacking.is_empty() {
            let boots = count(sides.iter().map(|(_, s)| s.missing).sum(), "boot");
            return Some(format!(
                "{} gave no {} in {boots}",
                lacking.join(" and "),
                self.metric.name
            ));
        }
        (valid == 0).then(|| no_pair(&sides))
    }
}

fn no_pair(sides: &[(&str, &Summaries)]) -> String {
    let mut causes = Vec::new();
    for (name, summaries) in sides {
        for (why, boots) in &summaries.reasons {
            causes.push(format!("{name}: {why} ({})", count(*boots, "boot")));
        }
    }
    if causes.is_empty() {
        return "no pair was finished".into();
    }
    format!("no valid pair; {}", causes.join("; "))
}
