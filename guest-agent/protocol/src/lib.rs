//! What the orchestrator and the agent say to each other.
//!
//! The orchestrator puts one [`GuestPlan`] into the guest's initramfs. The agent carries it out and
//! writes one [`Event`] per line (JSON, at most [`MAX_LINE_BYTES`]), over an SSH channel in timed
//! runs and over a second serial port in exact ones. The last line is [`Event::End`], which repeats
//! the plan's nonce and proves by count and checksum that every line before it arrived unchanged.

mod event;
mod facts;
mod go;
mod knobs;
mod mark;
mod monitor;
mod plan;
mod topology;
mod transcript;
mod workload;
mod workloads;

pub use event::{After, Event, Phase, Sample, TrialProblem, Unit};
pub use facts::{AccessFacts, CacheFacts, CpuFacts, DomainFacts, Facts, NodeFacts};
pub use go::Go;
pub use knobs::{KnobKind, KnobReading, Knobs};
pub use mark::{MARK_LENGTH, MARK_MAGIC, MARK_OPCODE, Mark};
pub use monitor::{LogKind, Monitor, MonitorTerms};
pub use plan::{
    CommandSpec, GuestImage, GuestPlan, MetricSource, MetricSpec, Settle, Transport, TrialSpec,
    window_number,
};
pub use topology::{Cache, Group, SharedCache, Topology, TopologyNode, ranges};
pub use transcript::{End, Transcript, TranscriptError};
pub use workload::{
    Better, Duet, EXACT_WARMUP, EXACT_WINDOW_MS, EXACT_WINDOWS, ExactMetric, MetricInfo,
    Parallelism, ParamInfo, ParamKind, WorkloadInfo, WorkloadParams,
};
pub use workloads::{COMMAND, KERNBENCH, WORKLOADS, workload};

/// Version of requests and events; a guest that speaks another one is refused.
pub const PROTOCOL: u32 = 3;

/// The longest line either side may send, newline included.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Where the plan lies inside the guest.
pub const PLAN_PATH: &str = "/kduel/plan.json";

/// Where the user's own files lie inside the guest, as they were named on the host.
pub const FILES_DIR: &str = "/kduel/files";

/// Where the root of the guest's image is mounted, if it has one.
pub const IMAGE_ROOT: &str = "/kduel/image/root";

/// The agent's own place inside the guest.
pub const AGENT_PATH: &str = "/kduel/agent";

/// One module per line, in load order, as absolute paths inside the guest.
pub const MODULES_LIST: &str = "/kduel/modules.list";

/// The line that the agent prints on the console when SSH can be reached, before the plan's nonce.
pub const READY_MARKER: &str = "kduel-agent: ready ";

/// What the agent prints on the console before why it gives the guest up and switches it off.
pub const GAVE_UP_MARKER: &str = "kduel-agent: failed: ";

/// Where a sealed guest's events go, and the symbols of a guest that is asked for them.
pub const SEALED_PORT: &str = "/dev/ttyS1";

/// The word on the kernel command line that asks for `/proc/kallsyms` at [`SEALED_PORT`] and
/// nothing else.
pub const KALLSYMS_WORD: &str = "kduel.kallsyms";

/// The line behind the symbols begins with this; SHA-256 (lower-case hex, over all lines before it,
/// each with its newline) and their number follow.
pub const KALLSYMS_END: &str = "kduel-kallsyms-end ";
