//! Which sealed boots there are to do, and doing several of them at once.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use super::boot::{ExactBootJob, ExactEnd, Extent};
use super::identity::{MachineDigests, SYMBOLS, identity};
use super::recipe::{SealedRecipe, terms_of};
use super::symbols::{read_symbols, symbols_path};
use crate::boot::{Accel, Listener, PluginFiles, Watch};
use crate::clock;
use crate::collect::{BootOutcome, BootRecord, ExactBoot, KnownBoots};
use crate::config::KernelSpec;
use crate::event::RunEvent;
use crate::fault::{Failure, FailureClass, Fault};
use crate::host::Qemu;
use crate::id::BootId;
use crate::plan::{Block, Plan, PlannedExperiment, PlannedSide, cost, series_label};
use crate::provision::Kernel;
use crate::run::dispatcher::{millis, refuse_same_sides};
use crate::run::{CutShort, Recorder, RunEnd};

/// What exact boots need beside kernels.
#[derive(Debug, Clone)]
pub struct ExactRig {
    /// What boots them.
    pub qemu: Qemu,
    /// The counting plugin.
    pub plugin: PathBuf,
    /// Digests of both.
    pub digests: MachineDigests,
    /// Where kernels' symbols are kept.
    pub symbols: PathBuf,
    /// Results of earlier boots.
    pub known: KnownBoots,
    /// Whether those are used.
    pub use_known: bool,
    /// Guests at one time.
    pub at_once: usize,
}

/// Carries out the plan of an exact run.
pub struct ExactDispatcher<'a> {
    /// What to do.
    pub plan: &'a Plan,
    /// A kernel for every spec in the plan.
    pub kernels: &'a BTreeMap<KernelSpec, Kernel>,
    /// With what.
    pub rig: &'a ExactRig,
    /// The run's id.
    pub run: String,
    /// Takes what happens.
    pub listener: Listener,
    /// Set by the first Ctrl-C.
    pub stop: Arc<AtomicBool>,
}

/// One boot to do.
struct Job<'a> {
    recipe: SealedRecipe<'a>,
    slot: usize,
    extent: Extent,
    exact: ExactBoot,
    boot: BootId,
}

/// What came of a job.
struct Done {
    record: BootRecord,
    console: String,
    counts: Vec<u8>,
    interrupted: bool,
}

impl ExactDispatcher<'_> {
    /// Does what is not in `records` yet, and records each boot as it ends. Blocks.
    pub fn run(&self, records: Vec<BootRecord>, recorder: &mut dyn Recorder) -> RunEnd {
        let mut records = records;
        let cut_short = self.boots(&mut records, recorder).err();
        RunEnd { records, cut_short }
    }

    fn boots(
        &self,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        self.read_symbols()?;
        for experiment in &self.plan.experiments {
            let cost = cost::of_experiment(experiment, Accel::Tcg);
            (self.listener)(RunEvent::ExperimentBegins {
                experiment: experiment.name.clone(),
                sides: experiment.sides.iter().map(|side| side.name.clone()).collect(),
                pairs: experiment.blocks.len(),
                boots: cost.boots,
                expected: self.expected(experiment),
            });
            let jobs = self.jobs(experiment, records, recorder)?;
            self.carry_out(jobs, records, recorder)?;
            if !self.plan.aa {
                refuse_same_sides(experiment, records).map_err(CutShort::Failed)?;
            }
        }
        Ok(())
    }

    /// How long an experiment takes, its guests side by side.
    fn expected(&self, experiment: &PlannedExperiment) -> Duration {
        let cost = cost::of_experiment(experiment, Accel::Tcg);
        let processors = u32::try_from(self.rig.at_once.saturating_sub(1)).unwrap_or(1).max(1);
        (cost.total / processors).max(cost::boot(experiment, Accel::Tcg))
    }

    /// Every kernel's symbols, each in a boot of its own if they are not known yet. A kernel that has
    /// none is counted without.
    ///
    /// # Errors
    ///
    /// What the host or the user did; a kernel that fails is told later.
    pub fn read_symbols(&self) -> Result<(), CutShort> {
        let mut missing: BTreeMap<PathBuf, SealedRecipe<'_>> = BTreeMap::new();
        for (experiment, block, side) in self.all_sides() {
            let recipe = self.recipe(experiment, block, side)?;
            let path = symbols_path(&self.rig.symbols, recipe.kernel);
            if !path.is_file() {
                missing.entry(path).or_insert(recipe);
            }
        }
        for recipe in missing.values() {
            let what = format!("the symbols of kernel {}", recipe.side.kernel_name);
            (self.listener)(RunEvent::Provisioning { what });
        }
        let failures = self.in_parallel(missing.into_iter().collect(), |(path, recipe)| {
            let spec = recipe.symbols_boot()?;
            let watch = self.watch();
            read_symbols(&spec, &path, &self.rig.qemu, &watch).map_err(|failure| {
                let title = format!("{}: {}", recipe.side.kernel_name, failure.title);
                Failure { title, ..failure }
            })
        });
        for failure in failures.into_iter().filter_map(Result::err) {
            match failure.class {
                FailureClass::Interrupted => return Err(CutShort::Interrupted),
                // The boots that follow say better what is wrong with a kernel.
                _ if failure.fault() == Fault::KernelUnderTest => {}
                FailureClass::OutputMalformed | FailureClass::WorkloadFailed => {
                    let note = format!("no symbols, so functions stay unnamed: {}", failure.title);
                    (self.listener)(RunEvent::Note(note));
                }
                _ => return Err(CutShort::Failed(failure)),
            }
        }
        Ok(())
    }

    /// What would decide the bits of each boot now, by boot.
    ///
    /// # Errors
    ///
    /// A kernel is missing, or a file cannot be read.
    pub fn identities(&self) -> Result<BTreeMap<BootId, ExactBoot>, CutShort> {
        let mut found = BTreeMap::new();
        for experiment in &self.plan.experiments {
            for block in &experiment.blocks {
                for (slot, index) in block.order.iter().copied().enumerate() {
                    let recipe = self.recipe(experiment, block, &experiment.sides[index])?;
                    let job = self.job(recipe, slot).map_err(CutShort::Failed)?;
                    found.insert(job.boot, job.exact);
                }
            }
        }
        Ok(found)
    }

    fn all_sides(&self) -> impl Iterator<Item = (&PlannedExperiment, &Block, &PlannedSide)> {
        self.plan.experiments.iter().flat_map(|experiment| {
            let sides = move |block| experiment.sides.iter().map(move |s| (experiment, block, s));
            experiment.blocks.iter().take(1).flat_map(sides)
        })
    }

    fn recipe<'b>(
        &'b self,
        experiment: &'b PlannedExperiment,
        block: &'b Block,
        side: &'b PlannedSide,
    ) -> Result<SealedRecipe<'b>, CutShort> {
        let Some(kernel) = self.kernels.get(&side.kernel) else {
            let title = format!("no kernel was made ready for {:?}", side.kernel);
            return Err(CutShort::Failed(Failure::new(FailureClass::Internal, title)));
        };
        let symbols = symbols_path(&self.rig.symbols, kernel);
        let symbols = symbols.is_file().then_some(symbols);
        let (library, chains) = (self.rig.plugin.clone(), terms_of(experiment).chains);
        let plugin = Some(PluginFiles { library, symbols, chains });
        let architecture = self.rig.qemu.architecture;
        Ok(SealedRecipe { experiment, side, block, kernel, architecture, plugin })
    }

    /// The boots of `experiment` that are still to do. What is known already is recorded at once; the
    /// first that is not is done twice as far as its first trial goes, or if all are done and none was
    /// twice, the first of them.
    fn jobs<'b>(
        &'b self,
        experiment: &'b PlannedExperiment,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<VecDeque<Job<'b>>, CutShort> {
        let mut jobs = VecDeque::new();
        let mut done_once = None;
        for block in &experiment.blocks {
            for (slot, index) in block.order.iter().copied().enumerate() {
                let recipe = self.recipe(experiment, block, &experiment.sides[index])?;
                let job = self.job(recipe, slot).map_err(CutShort::Failed)?;
                let is_done = |record: &&BootRecord| record.boot == job.boot && !is_rig(record);
                if let Some(done) = records.iter().find(is_done) {
                    if done.exact.as_ref().is_some_and(|exact| exact.cached.is_none()) {
                        done_once.get_or_insert(job);
                    }
                    continue;
                }
                if let (Some(digest), Some(path)) = (job.exact.inputs.get(SYMBOLS), job.symbols()) {
                    recorder.symbols(digest, path).map_err(CutShort::Failed)?;
                }
                match self.known(&job) {
                    Some((record, counts)) => {
                        recorder.counts(&record.boot, &counts).map_err(CutShort::Failed)?;
                        recorder.record(&record, "").map_err(CutShort::Failed)?;
                        records.push(record);
                    }
                    None => jobs.push_back(job),
                }
            }
        }
        if let Some(first) = jobs.front().or(done_once.as_ref())
            && !records.iter().any(|record| record.is_again() && !is_rig(record))
        {
            let again = first.again();
            jobs.insert(jobs.len().min(experiment.sides.len()), again);
        }
        Ok(jobs)
    }

    fn job<'b>(&self, recipe: SealedRecipe<'b>, slot: usize) -> Result<Job<'b>, Failure> {
        let (_, spec) = recipe.boot()?;
        let inputs = self.rig.digests.inputs(&spec, recipe.kernel, &self.rig.qemu)?;
        let exact = ExactBoot {
            identity: identity(&inputs),
            inputs,
            cpu: spec.cpu.clone(),
            shift: spec.shift,
            seed: spec.seed,
            chains: spec.plugin.as_ref().is_some_and(|plugin| plugin.chains),
            ..ExactBoot::default()
        };
        Ok(Job { recipe, slot, extent: Extent::Whole, exact, boot: spec.boot })
    }

    /// The same boot done before, in another run.
    fn known(&self, job: &Job<'_>) -> Option<(BootRecord, Vec<u8>)> {
        if !self.rig.use_known || self.plan.aa {
            return None;
        }
        let (known, counts) = self.rig.known.find(&job.exact)?;
        let mut record = known.record;
        record.boot = job.boot.clone();
        record.experiment.clone_from(&job.recipe.experiment.name);
        record.side.clone_from(&job.recipe.side.name);
        (record.block, record.slot) = (job.recipe.block.index, job.slot);
        if let Some(exact) = &mut record.exact {
            exact.cached = Some(known.run);
        }
        Some((record, counts))
    }

    fn carry_out(
        &self,
        jobs: VecDeque<Job<'_>>,
        records: &mut Vec<BootRecord>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        let mut fresh: Vec<(BootRecord, Vec<u8>)> = Vec::new();
        let mut cut_short = None;
        let give_up = AtomicBool::new(false);
        self.each_as_it_ends(
            jobs.into(),
            |job| {
                (!give_up.load(Ordering::Relaxed) && !self.stop.load(Ordering::Relaxed))
                    .then(|| self.boot(&job))
            },
            |done| {
                let Some(done) = done.filter(|done| !done.interrupted) else {
                    cut_short.get_or_insert(CutShort::Interrupted);
                    return;
                };
                if let Err(cut) = self.take(done, records, &mut fresh, recorder) {
                    give_up.store(true, Ordering::Relaxed);
                    cut_short = Some(cut);
                }
            },
        );
        if let Some(cut) = cut_short {
            return Err(cut);
        }
        self.remember(&fresh, records).map_err(CutShort::Failed)
    }

    /// Records a boot that ended.
    fn take(
        &self,
        done: Done,
        records: &mut Vec<BootRecord>,
        fresh: &mut Vec<(BootRecord, Vec<u8>)>,
        recorder: &mut dyn Recorder,
    ) -> Result<(), CutShort> {
        let Done { record, console, counts, .. } = done;
        recorder.counts(&record.boot, &counts).map_err(CutShort::Failed)?;
        recorder.record(&record, &console).map_err(CutShort::Failed)?;
        let mut cut = Ok(());
        if let BootOutcome::Failed(failure) = &record.outcome {
            (self.listener)(RunEvent::BootFailed {
                boot: record.boot.clone(),
                side: record.side.clone(),
                failure: failure.clone(),
                retried: false,
            });
            // The same inputs give the same failure: nothing is gained by another try.
            if matches!(failure.fault(), Fault::Rig | Fault::Config | Fault::Internal) {
                cut = Err(CutShort::Failed((**failure).clone()));
            }
        }
        records.push(record.clone());
        fresh.push((record, counts));
        cut
    }

    /// Keeps what was booted, unless what was done twice came out differently.
    fn remember(
        &self,
        fresh: &[(BootRecord, Vec<u8>)],
        records: &[BootRecord],
    ) -> Result<(), Failure> {
        if crate::analyse::self_test(self.plan, records).is_err() {
            return Ok(());
        }
        for (record, counts) in fresh.iter().filter(|(record, _)| !record.is_again()) {
            self.rig.known.keep(&self.run, record, counts)?;
        }
        Ok(())
    }

    fn boot(&self, job: &Job<'_>) -> Done {
        let started = clock::now();
        let end = match job.recipe.boot() {
            Ok((plan, mut spec)) => {
                spec.boot = job.boot.clone();
                let workloads: Vec<String> =
                    job.recipe.experiment.trials.iter().map(series_label).collect();
                let boot = ExactBootJob {
                    spec: &spec,
                    plan: &plan,
                    block: job.recipe.block.index,
                    workloads: &workloads,
                    extent: job.extent,
                    qemu: &self.rig.qemu,
                };
                boot.run(&self.watch())
            }
            Err(failure) => ExactEnd::failed(failure),
        };
        job.done(started, end)
    }

    fn watch(&self) -> Watch {
        Watch { listener: self.listener.clone(), stop: self.stop.clone() }
    }

    fn in_parallel<T: Send, R: Send>(&self, items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
        let mut results = Vec::new();
        self.each_as_it_ends(items, work, |result| results.push(result));
        results
    }

    /// Does `work` on every item, several at once, each in a thread that lives as long as its guest;
    /// hands results over in the caller's thread.
    fn each_as_it_ends<T: Send, R: Send>(
        &self,
        items: Vec<T>,
        work: impl Fn(T) -> R + Sync,
        mut take: impl FnMut(R),
    ) {
        let threads = self.rig.at_once.clamp(1, items.len().max(1));
        let queue = Mutex::new(VecDeque::from(items));
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads {
                let (sender, next, work) = (sender.clone(), &next, &work);
                scope.spawn(move || {
                    while let Some(item) = next() {
                        if sender.send(work(item)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            receiver.into_iter().for_each(&mut take);
        });
    }
}

impl<'a> Job<'a> {
    fn symbols(&self) -> Option<&Path> {
        self.recipe.plugin.as_ref()?.symbols.as_deref()
    }

    /// The same once more, up to the end of its first trial. Never follows call chains: that they
    /// change nothing is tested, too.
    fn again(&self) -> Job<'a> {
        let mut recipe = self.recipe.clone();
        recipe.plugin = recipe.plugin.map(|plugin| PluginFiles { chains: false, ..plugin });
        Job {
            recipe,
            slot: self.slot,
            extent: Extent::FirstTrial,
            exact: ExactBoot { again: true, chains: false, ..self.exact.clone() },
            boot: BootId(format!("{}-again", self.boot)),
        }
    }

    fn done(&self, started: jiff::Timestamp, end: ExactEnd) -> Done {
        let interrupted =
            matches!(&end.result, Err(failure) if failure.class == FailureClass::Interrupted);
        let record = BootRecord {
            sentinel: false,
            boot: self.boot.clone(),
            experiment: self.recipe.experiment.name.clone(),
            side: self.recipe.side.name.clone(),
            block: self.recipe.block.index,
            attempt: 0,
            slot: self.slot,
            started,
            ready_ms: end.ready.map(millis),
            first_sample_ms: end.first_sample.map(millis),
            took_ms: millis(end.took),
            accel: Accel::Tcg,
            exact: Some(Box::new(ExactBoot {
                lost: end.lost,
                dropped: end.dropped,
                ..self.exact.clone()
            })),
            placement: None,
            outcome: match end.result {
                Ok(result) => BootOutcome::Completed(Box::new(result)),
                Err(failure) => BootOutcome::Failed(Box::new(failure)),
            },
        };
        Done { record, console: end.console, counts: end.counts, interrupted }
    }
}

fn is_rig(record: &BootRecord) -> bool {
    matches!(&record.outcome, BootOutcome::Failed(failure) if failure.fault() == Fault::Rig)
}
