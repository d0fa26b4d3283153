//! `kernbench`: make of a kernel tree that lies in the guest's image.

use std::path::{Path, PathBuf};

use kduel_protocol::{Better, CommandSpec, KERNBENCH, TrialProblem};

use super::command::execute::{Place, Program, TIMES};
use super::{Iteration, Params, Value, Window, Workload, failed, image};
use crate::process;

/// Where the image has its trees, and for each size a file with the name of its tree and make's targets.
const TREES: &str = "/usr/src/kernbench";

/// What a job of make takes: the compiler at its largest, and some to spare.
const JOB_MIB: u64 = 96;

/// A tree and the program that builds it.
pub struct Kernbench {
    root: &'static Path,
    /// Makes it as it was before a build.
    clean: String,
    program: Program,
}

impl Kernbench {
    /// Takes the workload's parameters; copies the tree if it is to be in memory.
    pub fn new(params: &Params<'_>) -> Result<Self, TrialProblem> {
        let root = image::root().ok_or_else(|| unsupported("no image is mounted"))?;
        let size = params.word("size")?;
        let listed = format!("{}{TREES}/{size}", root.display());
        let listed = std::fs::read_to_string(listed)
            .map_err(|_| unsupported(&format!("the image has no tree of size {size}")))?;
        let mut words = listed.split_whitespace().map(str::to_owned);
        let source = Path::new(TREES).join(words.next().unwrap_or_default());
        let folder = match params.word("tree")? {
            "tmpfs" => in_memory(root, &source)?,
            _ => source,
        };
        let jobs = match params.integer("jobs")? {
            0 => usual_jobs(cpus(), memory_mib()?),
            jobs => jobs,
        };
        let fixed = ["make", "-s", "--no-print-directory"].map(str::to_owned);
        let argv = fixed.into_iter().chain([format!("-j{jobs}")]).chain(words).collect();
        let spec = CommandSpec {
            argv,
            // Who builds where and when would be part of what is built.
            env: [
                "TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
                "USER=kduel",
                "HOST=kduel",
                "VERSION=1",
            ]
            .map(|word| format!("KBUILD_BUILD_{word}"))
            .to_vec(),
            setup: Vec::new(),
            teardown: Vec::new(),
            cpus: None,
            cgroup: None,
            nice: None,
            metrics: Vec::new(),
        };
        let program = Program::new(&spec, Some(Place { root, folder: &folder }))?;
        let clean = format!("cd {} && sh {TREES}/clean {size}", folder.display());
        Ok(Self { root, clean, program })
    }
}

impl Workload for Kernbench {
    fn fixed_ops(&self) -> Option<u64> {
        Some(1)
    }

    fn iterate(&mut self, ops: u64, window: Window) -> Result<Iteration, TrialProblem> {
        let mut all: Option<Iteration> = None;
        for _ in 0..ops.max(1) {
            in_image(self.root, &self.clean)?;
            let execution = self.program.execute(window)?;
            let one = iteration(execution.wall_ns, &execution.times());
            all = Some(match all {
                Some(before) => before.and(one),
                None => one,
            });
        }
        all.ok_or_else(|| failed(KERNBENCH, "nothing was built"))
    }
}

/// The samples of a build: [`TIMES`], and how busy it kept the CPUs.
fn iteration(elapsed_ns: u64, times: &[f64]) -> Iteration {
    let value = |metric: &str, unit: &str, better, value| Value {
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        better,
        value,
        ops: 1,
    };
    let mut values: Vec<Value> = TIMES
        .iter()
        .zip(times)
        .map(|((metric, unit), time)| value(metric, unit, Better::Lower, *time))
        .collect();
    if let [wall, user, system, ..] = times {
        let percent = 100.0 * (user + system) / wall.max(1.0);
        values.push(value("percent-cpu", "%", Better::Higher, percent));
    }
    Iteration { elapsed_ns, values, singles: Vec::new() }
}

fn unsupported(why: &str) -> TrialProblem {
    let message =
        format!("{KERNBENCH} needs compiler and kernel tree, and {why}: `image: {KERNBENCH}`");
    TrialProblem::Unsupported { message }
}

/// A copy of the tree at `source` in memory.
fn in_memory(root: &Path, source: &Path) -> Result<PathBuf, TrialProblem> {
    let copy = Path::new("/tmp").join(KERNBENCH);
    let (from, to) = (source.display(), copy.display());
    in_image(root, &format!("rm -rf {to} && cp -a {from} {to}"))?;
    Ok(copy)
}

fn in_image(root: &Path, line: &str) -> Result<(), TrialProblem> {
    let (status, output) =
        process::shell(line, &[], Some(root)).map_err(|error| failed(line, error))?;
    if status.success() { Ok(()) } else { Err(failed(line, format!("{status}\n{output}"))) }
}

/// Sixteen for each CPU, as many as fit into memory, at least one.
fn usual_jobs(cpus: u64, memory_mib: u64) -> u64 {
    (16 * cpus).min(memory_mib / JOB_MIB).max(1)
}

fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)
}

fn memory_mib() -> Result<u64, TrialProblem> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib / 1024).ok_or_else(|| failed("/proc/meminfo", "no MemTotal in it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_fit_processors_and_memory() {
        assert_eq!(usual_jobs(1, 4096), 16);
        assert_eq!(usual_jobs(16, 2000), 20);
        assert_eq!(usual_jobs(1, 50), 1);
    }

    #[test]
    fn a_build_that_keeps_two_processors_busy_has_two_hundred_percent() {
        let made = iteration(10, &[10.0, 15.0, 5.0, 7.0]);
        let values: Vec<(&str, f64)> =
            made.values.iter().map(|value| (value.metric.as_str(), value.value)).collect();
        assert_eq!(values[3..], [("context-switches", 7.0), ("percent-cpu", 200.0)]);
    }
}
