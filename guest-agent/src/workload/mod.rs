//! The workloads, and the loop that measures any of them.

mod cgroup_exec;
mod chat;
mod clone_join;
mod command;
mod context_switch;
mod event;
mod file;
mod fork;
mod futex_wake;
mod hackbench;
mod huge_pages;
mod image;
mod kernbench;
mod measure;
mod memory;
mod page_fault;
mod partners;
mod roundtrip;
mod sleep;
mod syscall;
mod window;

use kduel_protocol::{Better, COMMAND, KERNBENCH, TrialProblem, TrialSpec};

pub use measure::{Gate, Send, measure};
use window::Window;

use crate::text;

/// One workload, set up and ready to be repeated.
trait Workload {
    /// Operations per iteration where the definition fixes them; otherwise they are scaled until an
    /// iteration is long enough.
    fn fixed_ops(&self) -> Option<u64> {
        None
    }

    /// Carries out about `ops` operations, at least one; they alone are in the window.
    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem>;

    /// What is left to do after the last iteration.
    fn finish(&mut self) -> Result<(), TrialProblem> {
        Ok(())
    }
}

/// What one iteration gave.
#[derive(Debug)]
struct Iteration {
    /// Time of the timed parts.
    elapsed_ns: u64,
    /// The samples.
    values: Vec<Value>,
    /// The time of each single operation in nanoseconds, where the definition keeps them.
    singles: Vec<f64>,
}

impl Iteration {
    /// The usual: `ops` operations in `elapsed_ns`, as time per operation.
    fn timed(ops: u64, elapsed_ns: u64) -> Self {
        let value = Value::time("time", elapsed_ns as f64 / ops as f64, ops);
        Self { elapsed_ns, values: vec![value], singles: Vec::new() }
    }

    /// How many operations it was made of; `asked` where it does not say.
    fn ops(&self, asked: u64) -> u64 {
        self.values.first().map_or(asked, |value| value.ops)
    }

    /// This and then `next`, as one iteration.
    fn and(mut self, next: Self) -> Self {
        for (value, more) in self.values.iter_mut().zip(next.values) {
            // A rate is a mean over time, everything else one over operations.
            let (weight, added) = match value.better {
                Better::Higher => (self.elapsed_ns as f64, next.elapsed_ns as f64),
                Better::Lower => (value.ops as f64, more.ops as f64),
            };
            value.value = (value.value * weight + more.value * added) / (weight + added).max(1.0);
            value.ops += more.ops;
        }
        self.elapsed_ns += next.elapsed_ns;
        self.singles.extend(next.singles);
        self
    }
}

/// One metric's value for one iteration.
#[derive(Debug)]
struct Value {
    metric: String,
    unit: String,
    better: Better,
    value: f64,
    ops: u64,
}

impl Value {
    /// A time in nanoseconds, the mean of `ops`.
    fn time(metric: &str, value: f64, ops: u64) -> Self {
        let (metric, unit) = (metric.to_owned(), "ns".to_owned());
        Self { metric, unit, better: Better::Lower, value, ops }
    }
}

/// A workload's failure, with what was being done; short enough for one line of the protocol.
fn failed(doing: &str, error: impl std::fmt::Display) -> TrialProblem {
    const MOST: usize = 4000;
    let doing = text::head(doing, MOST);
    TrialProblem::Failed { message: text::head(&format!("{doing}: {error}"), 2 * MOST) }
}

/// Sets the workload of a trial up.
fn build(trial: &TrialSpec) -> Result<Box<dyn Workload>, TrialProblem> {
    let params = Params(trial);
    Ok(match trial.workload.as_str() {
        "fork-exit" => Box::new(fork::Fork::exit(params.integer("mappings")?)?),
        "fork-exec" => Box::new(fork::Fork::exec()?),
        "fork-shell" => Box::new(fork::Fork::shell()?),
        "cgroup-exec" => Box::new(cgroup_exec::CgroupExec::new(
            params.integer("interval")?,
            params.integer("moves")?,
        )?),
        "syscall" => Box::new(syscall::Syscall::new(params.word("call")?)?),
        "pipe-roundtrip" => Box::new(roundtrip::Roundtrip::pipe(params.integer("bytes")?)?),
        "context-switch" => Box::new(context_switch::ContextSwitch::new(params.integer("tasks")?)?),
        "page-fault" => Box::new(page_fault::PageFault::new(params.word("kind")?)?),
        "mmap-munmap" => Box::new(memory::MmapMunmap::new(params.integer("bytes")?)?),
        "memory" => Box::new(memory::Memory::new(params.word("op")?)?),
        "socket-roundtrip" => {
            let (kind, bytes) = (params.word("kind")?, params.integer("bytes")?);
            Box::new(roundtrip::Roundtrip::socket(kind, bytes)?)
        }
        "clone-join" => Box::new(clone_join::CloneJoin),
        "event" => Box::new(event::Event::new(params.word("kind")?)?),
        "file" => Box::new(file::File::new(params.word("op")?)?),
        "sleep" => Box::new(sleep::Sleep(params.integer("interval")?)),
        "futex-wake" => Box::new(futex_wake::FutexWake::new()?),
        "hackbench" => Box::new(hackbench::Hackbench::new(&params)?),
        KERNBENCH => Box::new(kernbench::Kernbench::new(&params)?),
        "chat" => Box::new(chat::Chat::new(&params)?),
        COMMAND => {
            let spec = trial.command.as_ref();
            let spec = spec.ok_or_else(|| failed(COMMAND, "the plan names no command"))?;
            Box::new(command::Command::new(spec, params.integer("repeat")?)?)
        }
        other => {
            return Err(TrialProblem::Unsupported {
                message: format!("this agent has no workload \"{other}\""),
            });
        }
    })
}

/// A trial's parameters; they are complete, so a missing one is an error.
struct Params<'a>(&'a TrialSpec);

impl Params<'_> {
    /// A count, a size in bytes or a duration in nanoseconds.
    fn integer(&self, name: &str) -> Result<u64, TrialProblem> {
        self.0.params.get(name).and_then(serde_json::Value::as_u64).ok_or_else(|| self.bad(name))
    }

    /// One of the words of a choice.
    fn word(&self, name: &str) -> Result<&str, TrialProblem> {
        self.0.params.get(name).and_then(serde_json::Value::as_str).ok_or_else(|| self.bad(name))
    }

    fn bad(&self, name: &str) -> TrialProblem {
        let found =
            self.0.params.get(name).map_or_else(|| "nothing".to_owned(), ToString::to_string);
        let workload = &self.0.workload;
        failed(&format!("parameter \"{name}\" of {workload}"), format!("cannot use {found}"))
    }
}
