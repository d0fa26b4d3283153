//! What a comparison was made of, boot by boot: for those who want to see more than its summary. Pure.

use kduel_protocol::TrialSpec;

use super::contamination::{contamination, is_superseded};
use super::series::{Metric, Unusable, boot_summary, latest, latest_results, sentinel_pair};
use super::sides::result;
use super::{Comparison, Ecdf};
use crate::collect::{BootOutcome, BootRecord, BootResult};
use crate::plan::{Block, Measure, Plan, PlannedExperiment, series_label};

/// Everything that one comparison rests on.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Points {
    /// Of a timed run, in the order of the blocks.
    pub pairs: Vec<PairPoint>,
    /// Of an exact run, of the base and of the candidate: by seed, the windows' values.
    pub windows: [Vec<Vec<f64>>; 2],
    /// Where single operations were kept, of the base and of the candidate.
    pub operations: [Option<Ecdf>; 2],
}

/// One boot of the base and one of the candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct PairPoint {
    /// From 0.
    pub block: usize,
    /// Of the base.
    pub base: Half,
    /// Of the candidate.
    pub value: Half,
    /// Whether the base was booted first.
    pub base_first: bool,
    /// Whether it counts.
    pub fate: Fate,
}

/// One boot of a pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Half {
    /// The boot summary, in the metric's unit; absent if the boot gave none.
    pub value: Option<f64>,
    /// When the boot was started; absent if it never was.
    pub started: Option<jiff::Timestamp>,
}

/// What became of a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It counts.
    Valid,
    /// A boot gave nothing: why.
    Dropped(String),
    /// The host was busy with something else: with what.
    Contaminated(String),
    /// The same side twice; it tells how far the host can be trusted.
    Sentinel,
}

/// The points behind `comparison`, which is of the run that `plan` and `records` are of. Empty where
/// the plan does not know the series.
pub fn points(plan: &Plan, records: &[BootRecord], comparison: &Comparison) -> Points {
    let named = |one: &&PlannedExperiment| one.name == comparison.series.experiment;
    let Some(experiment) = plan.experiments.iter().find(named) else { return Points::default() };
    let Some(trial) = trial_of(experiment, comparison) else { return Points::default() };
    let Some(base) = experiment.sides.first() else { return Points::default() };
    let asked = Asked { experiment, records, trial, comparison };
    let sides = [base.name.as_str(), comparison.side.as_str()];
    let mut points = Points { operations: sides.map(|side| asked.ecdf(side)), ..Points::default() };
    match plan.measure {
        Measure::Time => points.pairs = asked.pairs(sides),
        Measure::Instructions => points.windows = sides.map(|side| asked.windows(side)),
    }
    points
}

/// The series of an exact run may be those of one CPU model among several.
fn trial_of<'a>(
    experiment: &'a PlannedExperiment,
    comparison: &Comparison,
) -> Option<&'a TrialSpec> {
    experiment.trials.iter().find(|trial| {
        let rest = comparison.series.workload.strip_prefix(&series_label(trial));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" cpu="))
    })
}

struct Asked<'a> {
    experiment: &'a PlannedExperiment,
    records: &'a [BootRecord],
    trial: &'a TrialSpec,
    comparison: &'a Comparison,
}

impl Asked<'_> {
    fn blocks(&self) -> impl Iterator<Item = &Block> {
        let cpu = self.comparison.exact.as_ref().map(|exact| exact.cpu.as_str());
        let blocks = self.experiment.blocks.iter();
        blocks.filter(move |block| cpu.is_none() || block.cpu.as_deref() == cpu)
    }

    fn results(&self, side: &str) -> Vec<&BootResult> {
        let boots = latest_results(self.records, &self.experiment.name, side);
        self.blocks().filter_map(|block| boots.get(&block.index).copied()).collect()
    }

    fn windows(&self, side: &str) -> Vec<Vec<f64>> {
        let metric = &self.comparison.series.metric;
        let of = |boot: &BootResult| -> Vec<f64> {
            let own = boot.samples.iter();
            let own = own.filter(|s| s.trial == self.trial.id && s.metric == *metric);
            own.map(|sample| sample.value).collect()
        };
        self.results(side).into_iter().map(of).filter(|values| !values.is_empty()).collect()
    }

    fn ecdf(&self, side: &str) -> Option<Ecdf> {
        let metric = &self.comparison.series.metric;
        let kept: Vec<_> = self
            .results(side)
            .into_iter()
            .flat_map(|boot| &boot.distributions)
            .filter(|kept| kept.trial == self.trial.id && kept.metric == *metric)
            .collect();
        let unit = &kept.first()?.unit;
        Ecdf::of(kept.iter().flat_map(|kept| kept.values.iter().copied()).collect(), unit)
    }

    fn pairs(&self, sides: [&str; 2]) -> Vec<PairPoint> {
        let boots = sides.map(|side| latest(self.records, &self.experiment.name, side));
        let place = |name: &str| self.experiment.sides.iter().position(|side| side.name == name);
        let [first, second] = sides.map(place);
        let mut pairs = Vec::new();
        for block in self.blocks() {
            let booted_at = |side: Option<usize>| block.order.iter().position(|o| Some(*o) == side);
            let base_first = booted_at(first) < booted_at(second);
            for records in self.spoilt(sides, block.index) {
                pairs.extend(self.pair(sides, records.map(Some), base_first));
            }
            let latest = boots.each_ref().map(|boots| boots.get(&block.index).copied());
            pairs.extend(self.pair(sides, latest, base_first));
            for (boots, side) in boots.iter().zip(sides) {
                let own = boots.get(&block.index).copied();
                pairs.extend(own.and_then(|own| self.sentinel(own, side)));
            }
        }
        pairs
    }

    /// None while a good boot still waits for its other half.
    fn pair(
        &self,
        sides: [&str; 2],
        records: [Option<&BootRecord>; 2],
        base_first: bool,
    ) -> Option<PairPoint> {
        let halves = records.map(|record| record.map(|record| self.half(record)));
        let over = match &halves {
            [Some(_), Some(_)] => true,
            [Some(half), None] | [None, Some(half)] => half.is_err(),
            [None, None] => false,
        };
        let half = |of: usize| Half {
            value: halves[of].as_ref().and_then(|half| half.as_ref().ok()).copied(),
            started: records[of].map(|record| record.started),
        };
        let spoilt = sides.iter().zip(records).filter_map(|(side, record)| {
            Some(format!("{side}: {}", contamination(record?, self.trial.id)?))
        });
        let spoilt: Vec<String> = spoilt.collect();
        let block = records.into_iter().flatten().next()?.block;
        over.then(|| PairPoint {
            block,
            base: half(0),
            value: half(1),
            base_first,
            fate: match fate(sides, &halves) {
                Fate::Valid if !spoilt.is_empty() => Fate::Contaminated(spoilt.join("; ")),
                fate => fate,
            },
        })
    }

    /// Earlier boots of both sides that the host spoilt and that were repeated.
    fn spoilt(&self, sides: [&str; 2], block: usize) -> Vec<[&BootRecord; 2]> {
        let own = |side: &str| -> Vec<&BootRecord> {
            let own = self.records.iter().filter(|r| r.experiment == self.experiment.name);
            let own = own.filter(|r| r.side == side && r.block == block && !r.sentinel);
            own.filter(|record| is_superseded(record, self.records)).collect()
        };
        let [base, value] = sides.map(own);
        let pairs = base.into_iter().filter_map(|base| {
            let other = value.iter().find(|other| other.attempt == base.attempt)?;
            Some([base, *other])
        });
        let spoilt = |record: &BootRecord| contamination(record, self.trial.id).is_some();
        pairs.filter(|pair| pair.iter().any(|record| spoilt(record))).collect()
    }

    /// The boots of a side that are only compared with each other in the block of `own`.
    fn sentinel(&self, own: &BootRecord, side: &str) -> Option<PairPoint> {
        let pair = sentinel_pair(own, self.records)?;
        let point = self.pair([side, side], pair.map(Some), true)?;
        Some(PairPoint { fate: Fate::Sentinel, ..point })
    }

    /// The boot summary, or why there is none.
    fn half(&self, record: &BootRecord) -> Result<f64, String> {
        let Some(result) = result(record) else {
            return Err(match &record.outcome {
                BootOutcome::Failed(failure) => failure.class.words().to_owned(),
                BootOutcome::Completed(_) => "gave nothing".to_owned(),
            });
        };
        let Comparison { series, unit, better, primary, .. } = self.comparison;
        let metric = Metric {
            name: series.metric.clone(),
            unit: unit.clone(),
            better: *better,
            primary: *primary,
        };
        match boot_summary(result, self.trial, &metric) {
            Ok(summary) => Ok(summary.exp()),
            Err(Unusable::Missing) => Err(format!("no {} was measured", series.metric)),
            Err(Unusable::Boot(why) | Unusable::Series(why)) => Err(why),
        }
    }
}

/// Whether the pair counts, as far as its boots tell.
fn fate(sides: [&str; 2], halves: &[Option<Result<f64, String>>; 2]) -> Fate {
    let lost = |(side, half): (&str, &Option<Result<f64, String>>)| match half {
        Some(Err(why)) => Some(format!("{side}: {why}")),
        Some(Ok(_)) | None => None,
    };
    let lost: Vec<String> = sides.into_iter().zip(halves).filter_map(lost).collect();
    if lost.is_empty() { Fate::Valid } else { Fate::Dropped(lost.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::collect::TrialNoise;
    use crate::collect::testing::{failed, pairs, plan};
    use crate::fault::FailureClass;
    use crate::host::noise::HostNoise;

    #[test]
    fn pairs_are_those_that_the_comparison_counts() {
        let plan = plan(&["base", "patched"], 4);
        let mut records = pairs("patched", &[1.1, 1.2, 1.3, 1.4]);
        records[3] = failed("fork", "patched", 1, FailureClass::SilentHang, "no progress");
        // Of the last block only the base is done.
        records.pop();
        let analysis = analyse(&plan, &records);
        let comparison = &analysis.comparisons[0];
        let Points { pairs, windows, operations } = points(&plan, &records, comparison);
        assert_eq!((comparison.pairs, comparison.dropped), (2, 1));
        assert_eq!(pairs.len(), 3);
        assert_eq!(pairs[0].fate, Fate::Valid);
        assert!(matches!(&pairs[1].fate, Fate::Dropped(why) if why.starts_with("patched: ")));
        assert!(pairs[1].base.value.is_some() && pairs[1].value.value.is_none());
        assert!(pairs[0].base_first && !pairs[1].base_first);
        let ratio = pairs[2].value.value.unwrap() / pairs[2].base.value.unwrap();
        assert!((ratio - 1.3).abs() < 1e-9, "{ratio}");
        assert_eq!((windows, operations), (Default::default(), Default::default()));
    }

    #[test]
    fn what_the_host_spoilt_and_sentinels_are_marked() {
        let plan = plan(&["base", "patched"], 3);
        let mut records = pairs("patched", &[1.1, 1.2, 1.3]);
        let steal = |record: &mut BootRecord| {
            let BootOutcome::Completed(result) = &mut record.outcome else { panic!("completed") };
            let host = HostNoise { steal: Some(0.5), ..HostNoise::default() };
            result.noise = vec![TrialNoise { trial: 0, host }];
        };
        // The second block was spoilt and repeated, the third was spoilt and not.
        let mut again = [records[2].clone(), records[3].clone()];
        again.iter_mut().for_each(|record| record.attempt = 1);
        steal(&mut records[2]);
        steal(&mut records[5]);
        let mut sentinel = records[0].clone();
        (sentinel.sentinel, sentinel.slot) = (true, 2);
        records.extend(again);
        records.push(sentinel);
        let comparison = &analyse(&plan, &records).comparisons[0];
        let found = points(&plan, &records, comparison).pairs;
        let fates: Vec<(usize, bool)> =
            found.iter().map(|p| (p.block, matches!(p.fate, Fate::Contaminated(_)))).collect();
        assert_eq!(fates, [(0, false), (0, false), (1, true), (1, false), (2, true)]);
        assert_eq!(found[1].fate, Fate::Sentinel);
        assert_eq!((comparison.pairs, comparison.dropped), (2, 1));
    }
}
