//! Boots that are there at once, each in a thread of its own.

use std::sync::Arc;

use super::dispatcher::{Dispatcher, millis};
use super::guest::GuestRecipe;
use super::trial::{BootEnd, BootLabel, run_boot};
use super::{CutShort, Recorder, Seat, seats};
use crate::boot::{Accel, Watch};
use crate::clock;
use crate::collect::{BootOutcome, BootRecord};
use crate::fault::{Failure, FailureClass};
use crate::id::BootId;
use crate::plan::{Block, Pairing, PlannedExperiment, Turn, series_label};

/// Boots of a block that are there at once.
pub(super) struct Wave<'a> {
    pub block: &'a Block,
    pub turns: Vec<Turn>,
    /// They were booted before, and the host spoilt one of them.
    pub again: bool,
}

impl Dispatcher<'_> {
    /// Boots everything of a wave once, and records what came of it in the order of its turns.
    pub(super) async fn boot_wave(
        &self,
        experiment: &Arc<PlannedExperiment>,
        wave: &Wave<'_>,
        attempt: u32,
        recorder: &mut dyn Recorder,
    ) -> Result<Vec<BootRecord>, CutShort> {
        let together = wave.turns.len() > 1;
        let seats = wave.turns.iter().zip(seats(wave.turns.len()));
        let begun: Vec<_> = seats
            .map(|(turn, seat)| {
                self.begin(experiment, wave.block, *turn, attempt, together.then_some(seat))
            })
            .collect();
        let mut ended = Vec::new();
        // Each is waited for, whatever came of the others: no guest outlives its wave.
        for one in begun {
            ended.push(match one {
                Ok(begun) => begun.end(experiment, self.accel).await,
                Err(cut) => Err(cut),
            });
        }
        let mut records = Vec::new();
        for (record, console) in ended.into_iter().collect::<Result<Vec<_>, _>>()? {
            recorder.record(&record, &console).map_err(CutShort::Failed)?;
            records.push(record);
        }
        Ok(records)
    }

    /// Starts a boot in a thread that lives as long as the guest.
    fn begin(
        &self,
        experiment: &Arc<PlannedExperiment>,
        block: &Block,
        turn: Turn,
        attempt: u32,
        seat: Option<Seat>,
    ) -> Result<Begun, CutShort> {
        let recipe = self.recipe(experiment, turn.side)?;
        let side = recipe.side().name.clone();
        let boot = BootId::new(&experiment.name, block.index, &side, attempt);
        let boot = match (turn.sentinel, experiment.pairing, turn.slot) {
            (false, ..) => boot,
            (true, Pairing::Duet, 1..) => boot.twin(),
            (true, ..) => boot.sentinel(),
        };
        let (plan, spec) = recipe
            .named_boot(boot.clone(), block, turn.slot, seat.is_some())
            .map_err(CutShort::Failed)?;
        let label = BootLabel { boot, side, block: block.index };
        let watch = Watch { listener: self.listener.clone(), stop: self.stop.clone() };
        let workloads = experiment.trials.iter().map(series_label).collect::<Vec<_>>();
        let (backend, wanted) = (self.backend.clone(), experiment.topology.clone());
        let started = clock::now();
        let thread_label = label.clone();
        let end = in_own_thread(move || {
            let mut machine = backend.machine(spec, &plan, watch.clone());
            run_boot(machine.as_mut(), &plan, &wanted, &workloads, seat, &thread_label, &watch)
        })
        .map_err(CutShort::Failed)?;
        Ok(Begun { label, turn, attempt, started, end })
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
}

/// A boot whose thread runs.
struct Begun {
    label: BootLabel,
    turn: Turn,
    attempt: u32,
    started: jiff::Timestamp,
    end: tokio::sync::oneshot::Receiver<BootEnd>,
}

impl Begun {
    /// Waits for its end; the record, and the raw console.
    async fn end(
        self,
        experiment: &PlannedExperiment,
        accel: Accel,
    ) -> Result<(BootRecord, String), CutShort> {
        let end = self.end.await.map_err(|_| {
            let title = "the thread of a guest ended without a result";
            let failure = Failure::new(FailureClass::Internal, title);
            CutShort::Failed(
                failure.hint("run again with RUST_BACKTRACE=1 and report what it prints"),
            )
        })?;
        if is_interrupted(&end) {
            return Err(CutShort::Interrupted);
        }
        let console = end.console.clone();
        let record = BootRecord {
            boot: self.label.boot,
            experiment: experiment.name.clone(),
            side: self.label.side,
            block: self.label.block,
            attempt: self.attempt,
            slot: self.turn.slot,
            sentinel: self.turn.sentinel,
            started: self.started,
            ready_ms: end.ready.map(millis),
            first_sample_ms: end.first_sample.map(millis),
            took_ms: millis(end.took),
            accel,
            exact: None,
            placement: experiment.placement(self.turn.slot).cloned(),
            outcome: outcome_of(end),
        };
        Ok((record, console))
    }
}

/// Runs `work` in a thread of its own: a guest dies with the thread that started it.
fn in_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<tokio::sync::oneshot::Receiver<T>, Failure> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let spawned = std::thread::Builder::new().name("guest".to_owned()).spawn(move || {
        // The receiver is gone only if the run itself was dropped.
        let _ = sender.send(work());
    });
    match spawned {
        Ok(_) => Ok(receiver),
        Err(error) => {
            let title = format!("failed to start a thread for a guest: {error}");
            Err(Failure::new(FailureClass::HostIo, title))
        }
    }
}

fn outcome_of(end: BootEnd) -> BootOutcome {
    match end.result {
        Ok(result) => BootOutcome::Completed(Box::new(result)),
        Err(failure) => BootOutcome::Failed(Box::new(failure)),
    }
}

fn is_interrupted(end: &BootEnd) -> bool {
    matches!(&end.result, Err(failure) if failure.class == FailureClass::Interrupted)
}
