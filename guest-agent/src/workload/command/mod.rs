//! `command`: the user's own benchmark, started and waited for.

pub(super) mod execute;
mod metrics;

use std::path::Path;

use kduel_protocol::{Better, CommandSpec, FILES_DIR, TrialProblem};

use super::image;
use super::{Iteration, Value, Window, Workload, failed};
use crate::process;
use execute::{Execution, Place, Program};
use metrics::Extractor;

/// A program of the user's, executed `repeat` times per iteration.
pub struct Command {
    program: Program,
    extractors: Vec<Extractor>,
    env: Vec<String>,
    teardown: Vec<String>,
    repeat: u64,
}

impl Command {
    /// Prepares the program and runs its set-up.
    pub fn new(spec: &CommandSpec, repeat: u64) -> Result<Self, TrialProblem> {
        // What the user named relative to their own folder lies there.
        let files = Path::new(FILES_DIR);
        let place = image::root().map(|root| Place { root, folder: files });
        if place.is_none() && files.is_dir() {
            rustix::process::chdir(FILES_DIR)
                .map_err(|error| failed(&format!("entering {FILES_DIR}"), error))?;
        }
        let extractors = spec.metrics.iter().map(Extractor::new).collect::<Result<_, _>>();
        let this = Self {
            program: Program::new(spec, place)?,
            extractors: extractors.map_err(|message| failed("the metrics", message))?,
            env: spec.env.clone(),
            teardown: spec.teardown.clone(),
            repeat: repeat.max(1),
        };
        run_all("set-up", &spec.setup, &this.env)?;
        Ok(this)
    }

    /// The values of one execution, in the order of the metrics.
    fn values(&self, execution: &Execution) -> Result<Vec<f64>, TrialProblem> {
        if self.extractors.is_empty() {
            return Ok(execution.times());
        }
        if execution.is_cut {
            let most = format!("more than {} MiB to read metrics from", execute::OUTPUT_MIB);
            return Err(failed("standard output", most));
        }
        let output = String::from_utf8_lossy(&execution.output);
        let read = |extractor: &Extractor| extractor.read(&output);
        self.extractors.iter().map(read).collect::<Result<_, _>>().map_err(|message| {
            failed("standard output", format!("{message}\n{}", execution.last_words()))
        })
    }

    /// A sum of values made into the mean that is sent.
    fn value(&self, index: usize, sum: f64) -> Value {
        let value = sum / self.repeat as f64;
        let (metric, unit, better) = match self.extractors.get(index) {
            Some(extractor) => extractor.describe(),
            None => {
                let (metric, unit) = execute::TIMES[index.min(execute::TIMES.len() - 1)];
                (metric, unit, Better::Lower)
            }
        };
        Value { metric: metric.to_owned(), unit: unit.to_owned(), better, value, ops: self.repeat }
    }
}

/// Runs shell commands one after another until one fails.
fn run_all(what: &str, lines: &[String], env: &[String]) -> Result<(), TrialProblem> {
    for line in lines {
        let doing = format!("{what} \"{line}\"");
        let (status, output) =
            process::shell(line, env, image::root()).map_err(|error| failed(&doing, error))?;
        if !status.success() {
            return Err(failed(&doing, format!("{status}\n{output}").trim_end()));
        }
    }
    Ok(())
}

impl Workload for Command {
    fn fixed_ops(&self) -> Option<u64> {
        Some(self.repeat)
    }

    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let mut elapsed_ns = 0;
        let mut sums: Vec<f64> = Vec::new();
        for _ in 0..ops {
            let execution = self.program.execute(window)?;
            elapsed_ns += execution.wall_ns;
            let values = self.values(&execution)?;
            sums.resize(values.len(), 0.0);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        let values = (0..).zip(sums).map(|(index, sum)| self.value(index, sum)).collect();
        Ok(Iteration { elapsed_ns, values, singles: Vec::new() })
    }

    fn finish(&mut self) -> Result<(), TrialProblem> {
        run_all("teardown", &self.teardown, &self.env)
    }
}
