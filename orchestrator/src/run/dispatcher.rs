//! One loop that owns the state of a run: which boot is next, what came of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::progress::SideState;
use super::wave::Wave;
use super::{Backend, Recorder};
use crate::analyse;
use crate::boot::{Accel, Listener};
use crate::clock::Deadline;
use crate::collect::{BootOutcome, BootRecord};
use crate::config::KernelSpec;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass, Fault};
use crate::plan::{Block, Pairing, Plan, PlannedExperiment, Turn, cost};
use crate::provision::Kernel;
use crate::text::count;

/// A boot that the rig spoilt is repeated this often before the run gives up.
const RIG_RETRIES: u32 = 2;

/// Carries out a plan.
pub struct Dispatcher<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// A kernel for every spec in the plan.
    pub kernels: &'a BTreeMap<KernelSpec, Kernel>,
    /// What executes the guests, one for the whole run.
    pub accel: Accel,
    /// What boots them.
    pub backend: &'a Backend,
    /// Takes what happens.
    pub listener: Listener,
    /// Set by the first Ctrl-C.
    pub stop: Arc<AtomicBool>,
    /// No block begins that would end later.
    pub budget: Option<Deadline>,
}

/// How a run ended.
#[derive(Debug)]
pub struct RunEnd {
    /// All boots, those of earlier parts of a resumed run included, in the order they ended.
    pub records: Vec<BootRecord>,
    /// Why it ended before the plan did.
    pub cut_short: Option<CutShort>,
}

/// Why a run ended before its plan did.
#[derive(Debug)]
pub enum CutShort {
    /// The user stopped it; `kduel run --resume` goes on.
    Interrupted,
    /// Nothing that follows could count.
    Failed(Failure),
    /// A boot of this side failed, and nothing that follows could count.
    BootFailed(String, Box<Failure>),
}

impl Dispatcher<'_> {
    /// Does what is not in `records` yet, and records each boot as it ends.
    pub async fn run(&self, records: Vec<BootRecord>, recorder: &mut dyn Recorder) -> RunEnd {
        let mut records = records;
        let mut cut_short = None;
        for experiment in &self.plan.experiments {
            let experiment = Arc::new(experiment.clone());
            if let Err(cut) = self.experiment(&experiment, &mut records, recorder).await {
                cut_short = Some(cut);
                break;
            }
        }
        RunEnd { records, cut_short }
    }

    async fn experiment(
        &self,
        experiment: &Arc<PlannedExperiment>,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        self.tell_beginning(experiment, records);
        for block in &experiment.blocks {
            if analyse::is_decided(self.plan, experiment, records, block.index) {
                self.tell_decided(experiment, block.index);
                break;
            }
            if self.is_beyond_budget(experiment, records) {
                let why = budget_used_up(experiment, block.index);
                recorder.ends_early(&why).map_err(CutShort::Failed)?;
                (self.listener)(RunEvent::Note(why));
                break;
            }
            let states = SideState::of(experiment, records);
            if let Some(failure) = SideState::hopeless(experiment, &states) {
                (self.listener)(RunEvent::Note(failure));
                break;
            }
            self.block(experiment, block, &states, records, recorder).await?;
            if !self.plan.aa {
                refuse_same_sides(experiment, records).map_err(CutShort::Failed)?;
            }
            (self.listener)(RunEvent::BlockDone {
                block: block.index,
                of: experiment.blocks.len(),
            });
            self.tell_estimates(&experiment.name, records);
        }
        Ok(())
    }

    /// The boots of one block, all again while the host spoils one and repetitions are left.
    async fn block(
        &self,
        experiment: &Arc<PlannedExperiment>,
        block: &Block,
        states: &[SideState],
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        let mut again = false;
        loop {
            for turns in block.waves(experiment.pairing) {
                let skip = |turn: &Turn| states[turn.side].is_out() || (again && turn.sentinel);
                let turns: Vec<Turn> = turns.into_iter().filter(|turn| !skip(turn)).collect();
                if !turns.is_empty() {
                    let wave = Wave { block, turns, again };
                    self.wave(experiment, &wave, records, recorder).await?;
                }
            }
            again = analyse::worth_repeating(experiment, records, block.index);
            if !again {
                return Ok(());
            }
            let (name, pair) = (&experiment.name, block.index + 1);
            let why = format!("{name}: pair {pair} again, for what the host did to it");
            (self.listener)(RunEvent::Note(why));
        }
    }

    /// The boots of one wave, all repeated while the rig spoils one.
    async fn wave(
        &self,
        experiment: &Arc<PlannedExperiment>,
        wave: &Wave<'_>,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        let of_turn = |turn: &Turn, record: &BootRecord| {
            record.experiment == experiment.name
                && record.block == wave.block.index
                && record.side == experiment.sides[turn.side].name
                && record.sentinel == turn.sentinel
                && (!turn.sentinel || record.slot == turn.slot)
        };
        let earlier = |turn: &Turn| records.iter().filter(|record| of_turn(turn, record)).collect();
        let earlier: Vec<Vec<&BootRecord>> = wave.turns.iter().map(earlier).collect();
        let last = earlier.iter().flatten().map(|record| record.attempt).max();
        let is_done = |of_turn: &Vec<&BootRecord>| {
            of_turn.iter().any(|record| Some(record.attempt) == last && !is_rig_fault(record))
        };
        if !wave.again && earlier.iter().all(is_done) {
            return Ok(());
        }
        let mut attempt = last.map_or(0, |last| last + 1);
        let last_attempt = attempt + RIG_RETRIES;
        loop {
            let ended = self.boot_wave(experiment, wave, attempt, recorder).await?;
            records.extend(ended.iter().cloned());
            if !self.failures(&ended, attempt < last_attempt)? {
                return Ok(());
            }
            attempt += 1;
        }
    }

    /// Tells what failed, and whether to boot again.
    fn failures(&self, ended: &[BootRecord], may_repeat: bool) -> Result<bool, CutShort> {
        let mut again = false;
        let mut fatal = None;
        for record in ended {
            let BootOutcome::Failed(failure) = &record.outcome else { continue };
            let retried =
                may_repeat && failure.fault() == Fault::Rig && !would_happen_again(failure.class);
            (self.listener)(RunEvent::BootFailed {
                boot: record.boot.clone(),
                side: record.side.clone(),
                failure: failure.clone(),
                retried,
            });
            match failure.fault() {
                Fault::KernelUnderTest | Fault::Workload => {}
                Fault::Rig if retried => again = true,
                Fault::Rig | Fault::Config | Fault::Internal => {
                    fatal = Some(CutShort::BootFailed(record.side.clone(), failure.clone()));
                }
            }
        }
        fatal.map_or(Ok(again), Err)
    }

    /// By the boots so far.
    fn is_beyond_budget(&self, experiment: &PlannedExperiment, records: &[BootRecord]) -> bool {
        let Some(budget) = self.budget else { return false };
        let took: Vec<u64> = records
            .iter()
            .filter(|record| record.experiment == experiment.name)
            .map(|record| record.took_ms)
            .collect();
        let boots = took.len().max(1) as u64;
        let in_turn = match experiment.pairing {
            Pairing::Duet => 1,
            Pairing::Auto | Pairing::Interleave => experiment.sides.len() as u64,
        };
        let block = took.iter().sum::<u64>() / boots * in_turn;
        budget.passed() || budget.left() < Duration::from_millis(block)
    }

    fn tell_decided(&self, experiment: &PlannedExperiment, blocks: usize) {
        let (name, most) = (&experiment.name, experiment.blocks.len());
        (self.listener)(RunEvent::Note(format!(
            "{name}: decided after {blocks} of up to {most} pairs, no further boots"
        )));
    }

    fn tell_beginning(&self, experiment: &PlannedExperiment, records: &[BootRecord]) {
        let done = records
            .iter()
            .filter(|record| record.experiment == experiment.name && !is_rig_fault(record))
            .count();
        let boots = cost::of_experiment(experiment, self.accel).boots.saturating_sub(done);
        let left = boots as f64 / cost::of_experiment(experiment, self.accel).boots.max(1) as f64;
        (self.listener)(RunEvent::ExperimentBegins {
            experiment: experiment.name.clone(),
            sides: experiment.sides.iter().map(|side| side.name.clone()).collect(),
            pairs: experiment.blocks.len(),
            boots,
            expected: cost::of_experiment(experiment, self.accel).total.mul_f64(left),
        });
    }

    fn tell_estimates(&self, experiment: &str, records: &[BootRecord]) {
        for comparison in analyse::analyse(self.plan, records).comparisons {
            if comparison.series.experiment != experiment || !comparison.primary {
                continue;
            }
            if let Some(change) = comparison.change {
                (self.listener)(RunEvent::Estimate {
                    series: format!(
                        "{} {}, {}",
                        comparison.series.workload, comparison.series.metric, comparison.side
                    ),
                    change,
                    interval: comparison.low.zip(comparison.high),
                });
            }
        }
    }
}

fn budget_used_up(experiment: &PlannedExperiment, blocks: usize) -> String {
    let (name, most) = (&experiment.name, experiment.blocks.len());
    format!("{name}: the budget was used up after {blocks} of up to {}", count(most, "pair"))
}

/// Two sides that turn out to be the same are an error, not a result.
pub(super) fn refuse_same_sides(
    experiment: &PlannedExperiment,
    records: &[BootRecord],
) -> Result<(), Failure> {
    let result_of = |side: &str| {
        records.iter().rev().find_map(|record| match &record.outcome {
            BootOutcome::Completed(result)
                if record.experiment == experiment.name && record.side == side =>
            {
                Some(result)
            }
            _ => None,
        })
    };
    let Some(base) = result_of(&experiment.sides[0].name) else { return Ok(()) };
    for side in &experiment.sides[1..] {
        if result_of(&side.name).is_some_and(|other| analyse::sides_same(base, other)) {
            let title = format!(
                "{} and {} are the same kernel ({}) with the same command line and knobs",
                experiment.sides[0].name, side.name, base.facts.release
            );
            return Err(Failure::new(FailureClass::SidesSame, title)
                .hint("to measure the noise of this host on purpose, add --aa"));
        }
    }
    Ok(())
}

/// Faults of the rig that no repetition mends.
fn would_happen_again(class: FailureClass) -> bool {
    matches!(
        class,
        FailureClass::WrongHostKey
            | FailureClass::ToolMissing
            | FailureClass::QemuTooOld
            | FailureClass::AcceleratorBroken
            | FailureClass::TopologyMismatch
    )
}

fn is_rig_fault(record: &BootRecord) -> bool {
    match &record.outcome {
        BootOutcome::Completed(_) => false,
        BootOutcome::Failed(failure) => failure.fault() == Fault::Rig,
    }
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
