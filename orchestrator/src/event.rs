//! What a run tells its watchers: the terminal, the plain lines, `--verbose`. Watchers only consume.

use std::time::Duration;

use crate::fault::Failure;
use crate::id::BootId;

/// One thing that happened during a run.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// A line for the reader that no other event carries (accelerator chosen, fallback, …).
    Note(String),
    /// Kernels and images are being made ready.
    Provisioning {
        /// What is being done, to what.
        what: String,
    },
    /// An experiment begins.
    ExperimentBegins {
        /// Its name.
        experiment: String,
        /// The sides' names, base first.
        sides: Vec<String>,
        /// Pairs planned.
        pairs: usize,
        /// Boots still to do: fewer than planned in a run that is resumed.
        boots: usize,
        /// Time these boots will take, estimated.
        expected: Duration,
    },
    /// A boot enters a phase.
    Boot {
        /// Which boot.
        boot: BootId,
        /// Which side.
        side: String,
        /// Block, from 0.
        block: usize,
        /// Where it is.
        phase: BootPhase,
    },
    /// QEMU is about to start with this command line.
    CommandLine {
        /// Which boot.
        boot: BootId,
        /// Program and arguments.
        argv: Vec<String>,
    },
    /// A line of a guest's console, raw.
    Console {
        /// Which side.
        side: String,
        /// Without its newline, not escaped.
        line: String,
    },
    /// A boot ended without a result.
    BootFailed {
        /// Which boot.
        boot: BootId,
        /// Which side.
        side: String,
        /// Why.
        failure: Box<Failure>,
        /// Whether it will be tried again.
        retried: bool,
    },
    /// All sides of a block have their result.
    BlockDone {
        /// Which, from 0.
        block: usize,
        /// Blocks planned.
        of: usize,
    },
    /// The estimate over the pairs so far: no verdict.
    Estimate {
        /// `fork-exit time, patched`.
        series: String,
        /// value/base - 1.
        change: f64,
        /// Its interval if there are pairs enough.
        interval: Option<(f64, f64)>,
    },
    /// The first Ctrl-C was seen: running boots are stopped, finished pairs are reported.
    Stopping,
}

/// Where a boot is.
#[derive(Debug, Clone, PartialEq)]
pub enum BootPhase {
    /// QEMU starts, the kernel boots.
    Booting,
    /// The guest can be reached.
    Ready {
        /// After how long.
        after: Duration,
    },
    /// Knobs are set and read back.
    Knobs,
    /// Waiting for the guest to become idle.
    Settling,
    /// A trial runs.
    Trial {
        /// The workload with its parameters.
        workload: String,
        /// Iterations done.
        done: u32,
        /// Iterations in all.
        of: u32,
    },
    /// The guest is shut down.
    Stopping,
    /// It is over.
    Done {
        /// How long the boot took from start to proof of its end.
        took: Duration,
        /// Whether it gave a result.
        completed: bool,
    },
}
