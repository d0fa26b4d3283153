//! One loop that owns the state of a run: which boot is next, what came of the others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::guest::GuestRecipe;
use super::progress::SideState;
use super::trial::{BootEnd, BootLabel, run_boot};
use super::{Backend, Recorder};
use crate::analyse;
use crate::boot::{Accel, Listener, Watch};
use crate::clock::{self, Deadline};
use crate::collect::{BootOutcome, BootRecord};
use crate::config::KernelSpec;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass, Fault};
use crate::id::BootId;
use crate::plan::{Block, Plan, PlannedExperiment, cost, series_label};
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

/// One boot of a block.
#[derive(Clone, Copy)]
struct Place<'a> {
    block: &'a Block,
    slot: usize,
    side: usize,
    sentinel: bool,
    /// It was booted before, and the host spoilt it or its other half.
    again: bool,
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
            for (slot, (side, sentinel)) in block.boots().into_iter().enumerate() {
                if states[side].is_out() || (again && sentinel) {
                    continue;
                }
                let place = Place { block, slot, side, sentinel, again };
                self.side_of_block(experiment, place, records, recorder).await?;
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

    /// One side's boot of one block, repeated while the rig spoils it.
    async fn side_of_block(
        &self,
        experiment: &Arc<PlannedExperiment>,
        place: Place<'_>,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        let name = &experiment.sides[place.side].name;
        let earlier = records.iter().filter(|record| {
            record.experiment == experiment.name
                && record.block == place.block.index
                && record.side == *name
                && record.sentinel == place.sentinel
        });
        let mut attempt = 0;
        for record in earlier {
            if !is_rig_fault(record) && !place.again {
                return Ok(());
            }
            attempt = attempt.max(record.attempt + 1);
        }
        let last_attempt = attempt + RIG_RETRIES;
        loop {
            let record = self.boot(experiment, place, attempt, recorder).await?;
            let failure = match &record.outcome {
                BootOutcome::Completed(_) => None,
                BootOutcome::Failed(failure) => Some((**failure).clone()),
            };
            let boot = record.boot.clone();
            records.push(record);
            let Some(failure) = failure else { return Ok(()) };
            let retried = failure.fault() == Fault::Rig
                && !would_happen_again(failure.class)
                && attempt < last_attempt;
            (self.listener)(RunEvent::BootFailed {
                boot,
                side: name.clone(),
                failure: Box::new(failure.clone()),
                retried,
            });
            match failure.fault() {
                Fault::KernelUnderTest | Fault::Workload => return Ok(()),
                Fault::Rig if retried => attempt += 1,
                Fault::Rig | Fault::Config | Fault::Internal => {
                    return Err(CutShort::BootFailed(name.clone(), failure.into()));
                }
            }
        }
    }

    /// Boots once, in a thread that lives as long as the guest, and records what came of it.
    async fn boot(
        &self,
        experiment: &Arc<PlannedExperiment>,
        place: Place<'_>,
        attempt: u32,
        recorder: &mut dyn Recorder,
    ) -> Result<BootRecord, CutShort> {
        let Place { block, slot, side, sentinel, again: _ } = place;
        let recipe = self.recipe(experiment, side)?;
        let boot = BootId::new(&experiment.name, block.index, &recipe.side().name, attempt);
        let boot = if sentinel { boot.sentinel() } else { boot };
        let (plan, spec) = recipe.named_boot(boot, block).map_err(CutShort::Failed)?;
        let label = BootLabel {
            boot: spec.boot.clone(),
            side: recipe.side().name.clone(),
            block: block.index,
        };
        let watch = Watch { listener: self.listener.clone(), stop: self.stop.clone() };
        let workloads = experiment.trials.iter().map(series_label).collect::<Vec<_>>();
        let (backend, wanted) = (self.backend.clone(), experiment.topology.clone());
        let started = clock::now();
        let thread_label = label.clone();
        let end = in_own_thread(move || {
            let mut machine = backend.machine(spec, &plan, watch.clone());
            run_boot(machine.as_mut(), &plan, &wanted, &workloads, &thread_label, &watch)
        })
        .await
        .map_err(CutShort::Failed)?;
        if is_interrupted(&end) {
            return Err(CutShort::Interrupted);
        }
        let console = end.console.clone();
        let record = BootRecord {
            boot: label.boot,
            experiment: experiment.name.clone(),
            side: label.side,
            block: block.index,
            attempt,
            slot,
            sentinel,
            started,
            ready_ms: end.ready.map(millis),
            first_sample_ms: end.first_sample.map(millis),
            took_ms: millis(end.took),
            accel: self.accel,
            exact: None,
            placement: experiment.placement.clone(),
            outcome: outcome_of(end),
        };
        recorder.record(&record, &console).map_err(CutShort::Failed)?;
        Ok(record)
    }

    fn recipe(
        &self,
        experiment: &Arc<PlannedExperiment>,
        side: usize,
    ) -> Result<GuestRecipe, CutShort> {
        let spec = &experiment.sides[side].kernel;
        let Some(kernel) = self.kernels.get(spec) else {
            let title = format!("no kernel was made ready for {spec:?}");
            return Err(CutShort::Failed(Failure::new(FailureClass::Internal, title)));
        };
        Ok(GuestRecipe {
            experiment: experiment.clone(),
            side,
            kernel: kernel.clone(),
            accel: self.accel,
            architecture: self.backend.architecture(),
        })
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
        let block = took.iter().sum::<u64>() / boots * experiment.sides.len() as u64;
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
        let factor = u32::try_from(boots).unwrap_or(u32::MAX);
        (self.listener)(RunEvent::ExperimentBegins {
            experiment: experiment.name.clone(),
            sides: experiment.sides.iter().map(|side| side.name.clone()).collect(),
            pairs: experiment.blocks.len(),
            boots,
            expected: cost::boot(experiment, self.accel).saturating_mul(factor),
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

/// Runs `work` in a thread of its own: a guest dies with the thread that started it.
async fn in_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let spawned = std::thread::Builder::new().name("guest".to_owned()).spawn(move || {
        // The receiver is gone only if the run itself was dropped.
        let _ = sender.send(work());
    });
    if let Err(error) = spawned {
        let title = format!("failed to start a thread for a guest: {error}");
        return Err(Failure::new(FailureClass::HostIo, title));
    }
    receiver.await.map_err(|_| {
        Failure::new(FailureClass::Internal, "the thread of a guest ended without a result")
            .hint("run again with RUST_BACKTRACE=1 and report what it prints")
    })
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

fn is_interrupted(end: &BootEnd) -> bool {
    matches!(&end.result, Err(failure) if failure.class == FailureClass::Interrupted)
}

fn outcome_of(end: BootEnd) -> BootOutcome {
    match end.result {
        Ok(result) => BootOutcome::Completed(Box::new(result)),
        Err(failure) => BootOutcome::Failed(Box::new(failure)),
    }
}

pub(super) fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
