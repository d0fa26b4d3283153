//! The arguments of `run` and `plan`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use kduel_protocol::Monitor;

use crate::boot::HugePages;
use crate::collect::RunRef;
use crate::plan::{MARGIN_HELP, Pairing, Statistic, parse_margin};
use crate::units;

/// Examples shown below the help of `run` and `plan`.
pub const RUN_EXAMPLES: &str = "\
Examples:
  kduel run                                     every experiment of ./kernels.yaml
  kduel run cases/task-classes                  a folder with an experiment, and what must come out of it
  kduel run fork demo --quick                   two of them, with few pairs and one look
  kduel run -a debian:bookworm -b debian:bookworm-backports -w fork-exit,syscall
  kduel run -a debian:bookworm -b debian:bookworm --append-b mitigations=off -w syscall:call=getppid
  kduel run -a ./bzImage-old -b ./bzImage-new -w pipe-roundtrip:bytes=1+4096,hackbench:groups=1:mode=thread
  kduel run -a debian:bookworm -b debian:trixie --cpus 2 --memory 1G -- ./bench -n 1000
  kduel run -w micro                            in a kernel's git tree: what it adds to its upstream
  kduel run -a v6.12 -b . -w fork-exit          its working tree as it is, against a tag
  kduel run -b source:linux-source-6.1@bookworm+fix.mbx -w fork-exit --config-item-b CONFIG_PSI=n
  kduel run -a debian:bookworm -b debian:trixie --image debian -- stress-ng --fork 1 --fork-ops 1000
  kduel run -a host -b ~/src/linux --metric rate:MB/s:higher:'rate=([0-9.]+)' -- ./bench

A SPEC is debian:SUITE[/FLAVOUR][=VERSION], deb:FILE, a path to a bzImage, a path to a built tree, or host.
Or it is built here: a git revision or `.` (the working tree as it is) in a kernel's git tree,
source:PACKAGE@SUITE[=VERSION], a path to a tarball or a source tree; patches on top: SPEC+FILE.mbx,
SPEC+FILE.patch, SPEC+series. In a kernel's git tree -a and -b may be left out.
A WORKLOAD is NAME[:PARAMETER=VALUE[+VALUE…]]…; several values are a sweep. `kduel workloads` lists them.";

/// What is compared, and how. Shared by `run` and `plan`.
#[derive(Debug, Clone, Default, Args)]
pub struct RunArgs {
    /// Experiments of the document; all of them if none is named. A word with a slash is a folder: its
    /// kernels.yaml is the document, its expect.yaml says what must come out; see `kduel cases`.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,

    /// Read this document instead of ./kernels.yaml.
    #[arg(short, long, value_name = "FILE", help_heading = "Document")]
    pub file: Option<PathBuf>,

    /// The base: compare without a document.
    #[arg(short = 'a', value_name = "SPEC", help_heading = "Without a document")]
    pub base: Option<String>,

    /// What is compared against the base; may be given again for more sides (b, c, …).
    #[arg(short = 'b', value_name = "SPEC", help_heading = "Without a document")]
    pub candidates: Vec<String>,

    /// Workloads, separated by commas, each with parameters of its own after colons.
    #[arg(short = 'w', value_name = "WORKLOAD[,…]", help_heading = "Without a document")]
    pub workloads: Vec<String>,

    /// CPUs of every guest.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "topology",
        help_heading = "Without a document"
    )]
    pub cpus: Option<String>,

    /// Memory of every guest: 512M, 1G (binary).
    #[arg(long, value_name = "SIZE", help_heading = "Without a document")]
    pub memory: Option<String>,

    /// Topology of every guest: 2s4c, 1s4c2t, 8n, numa-q-16.
    #[arg(long, value_name = "NAME", help_heading = "Without a document")]
    pub topology: Option<String>,

    /// Image with programs for kernbench and commands: debian, kernbench, or a recipe of your own.
    #[arg(long, value_name = "NAME|FILE.yaml", help_heading = "Without a document")]
    pub image: Option<String>,

    /// Append to the kernel command line of every side.
    #[arg(long, value_name = "K=V", help_heading = "Without a document")]
    pub append: Vec<String>,

    /// Append to the kernel command line of the base.
    #[arg(long, value_name = "K=V", help_heading = "Without a document")]
    pub append_a: Vec<String>,

    /// Append to the kernel command line of every -b side.
    #[arg(long, value_name = "K=V", help_heading = "Without a document")]
    pub append_b: Vec<String>,

    /// Set a sysctl in the base.
    #[arg(long, value_name = "K=V", help_heading = "Without a document")]
    pub sysctl_a: Vec<String>,

    /// Set a sysctl in every -b side.
    #[arg(long, value_name = "K=V", help_heading = "Without a document")]
    pub sysctl_b: Vec<String>,

    /// Config of kernels that are built here: minimal, tree, host or a file; later ones over earlier ones.
    #[arg(long, value_name = "PART", help_heading = "Without a document")]
    pub config: Vec<String>,

    /// An option of kernels that are built here: CONFIG_PSI=y.
    #[arg(long, value_name = "CONFIG_X=V", help_heading = "Without a document")]
    pub config_item: Vec<String>,

    /// The same for the base only.
    #[arg(long, value_name = "CONFIG_X=V", help_heading = "Without a document")]
    pub config_item_a: Vec<String>,

    /// The same for every -b side.
    #[arg(long, value_name = "CONFIG_X=V", help_heading = "Without a document")]
    pub config_item_b: Vec<String>,

    /// Sides that nobody named are called base and patched.
    #[arg(skip)]
    pub by_default: bool,

    /// A file that goes into every guest, below /kduel/files; the command after -- does by itself.
    #[arg(long = "with-file", value_name = "PATH", help_heading = "Without a document")]
    pub with_files: Vec<String>,

    /// A number to read from the command's output: NAME:UNIT:lower|higher:REGEX with one group.
    #[arg(long = "metric", value_name = "METRIC", help_heading = "Without a document")]
    pub metrics: Vec<String>,

    /// Write the document that says the same as these arguments.
    #[arg(long, value_name = "FILE", help_heading = "Without a document")]
    pub save: Option<PathBuf>,

    /// What is measured.
    #[arg(long, value_enum)]
    pub measure: Option<MeasureArg>,

    /// Most boots of every side; 30 if absent. A run ends at the look that decides it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub pairs: Option<u32>,

    /// Iterations kept per trial.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub iterations: Option<u32>,

    /// Longest time from the start of a guest until it can be reached: 90s, 5m.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub boot_deadline: Option<u32>,

    /// Longest time that a guest may show no progress before it counts as hanging.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub progress_deadline: Option<u32>,

    /// Memory layouts per side of an exact run; with more than one they are sampled.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Exact runs")]
    pub seeds: Option<u32>,

    /// CPU models of an exact run, as QEMU names them; the report says where they disagree.
    #[arg(long, value_name = "MODEL", value_delimiter = ',', help_heading = "Exact runs")]
    pub cpu: Vec<String>,

    /// An instruction takes 2^N nanoseconds of guest time; by the workloads if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=10), help_heading = "Exact runs")]
    pub shift: Option<u8>,

    /// Follow call chains, too, for `report --format folded|flamegraph` and `trace`; no sample changes.
    #[arg(long, help_heading = "Exact runs")]
    pub chains: bool,

    /// Let guests idle on the host's CPUs without leaving them, with KVM and CPUs that are theirs alone.
    #[arg(long)]
    pub cpu_pm: bool,

    /// Keep guests' memory in huge pages of this size, which the host must have ready.
    #[arg(long, value_enum, value_name = "SIZE")]
    pub huge_pages: Option<HugePagesArg>,

    /// What to watch beside every workload: vmstat, interrupts, schedstat, psi, rusage, perf-stat,
    /// profile, dmesg.
    #[arg(long = "monitor", value_name = "MONITOR,…", value_delimiter = ',', value_parser = monitor)]
    pub monitors: Vec<Monitor>,

    /// Six pairs and one look with Student's t.
    #[arg(long)]
    pub quick: bool,

    /// What a timed run is decided by.
    #[arg(long, value_enum, value_name = "TEST", conflicts_with = "quick")]
    pub stat: Option<StatArg>,

    /// How the guests of a pair follow one another; auto: at once where the host has cores for all of
    /// them and one more, and no workload is limited by what they share.
    #[arg(long, value_enum, value_name = "HOW")]
    pub pairing: Option<PairingArg>,

    /// Decide by a confidence sequence after every pair, instead of at planned looks.
    #[arg(long, conflicts_with_all = ["quick", "stat"])]
    pub anytime: bool,

    /// The change that matters: 2%, 50ns, 3 instructions; of several the larger one counts.
    #[arg(long, value_name = "MARGIN", value_delimiter = ',', value_parser = margin)]
    pub margin: Vec<String>,

    /// Compare the base with itself, at least 20 pairs, and keep the margins that this host can be
    /// trusted with, for later runs.
    #[arg(long, conflicts_with_all = ["quick", "stat", "anytime", "candidates", "margin", "save"])]
    pub calibrate: bool,

    /// Start no further pair of a timed run once it would end later than this: 20m.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub budget: Option<u32>,

    /// Allow sides that are the same.
    #[arg(long)]
    pub aa: bool,

    /// Seed of the boot order and of memory layouts; drawn and recorded if absent.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// What executes the guests' instructions; auto boots a tiny guest to find out.
    #[arg(long, value_enum, default_value_t)]
    pub accel: AccelArg,

    /// Let threads of timed guests share CPUs where the host has too few; marks every number.
    #[arg(long)]
    pub overcommit: bool,

    /// Use this QEMU.
    #[arg(long, value_name = "PATH")]
    pub qemu: Option<PathBuf>,

    /// Show every boot's command line and log.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Boot scripted machines instead of QEMU's: the name of a script.
    #[arg(long, hide = true, value_name = "BACKEND")]
    pub backend: Option<String>,

    /// A benchmark of your own, run in every guest; a file with a slash in its name is taken along.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// What decides a plan or its folder, and so means nothing to a run that has both.
const PLAN_FLAGS: [&str; 45] = [
    "experiments",
    "file",
    "base",
    "candidates",
    "workloads",
    "cpus",
    "memory",
    "topology",
    "image",
    "append",
    "append_a",
    "append_b",
    "sysctl_a",
    "sysctl_b",
    "config",
    "config_item",
    "config_item_a",
    "config_item_b",
    "with_files",
    "metrics",
    "save",
    "measure",
    "pairs",
    "iterations",
    "boot_deadline",
    "progress_deadline",
    "seeds",
    "cpu",
    "shift",
    "chains",
    "cpu_pm",
    "huge_pages",
    "monitors",
    "quick",
    "stat",
    "pairing",
    "anytime",
    "margin",
    "calibrate",
    "aa",
    "seed",
    "overcommit",
    "command",
    "out",
    "label",
];

/// What only `run` takes.
#[derive(Debug, Clone, Default, Args)]
pub struct RunOptions {
    /// Put the run's folder here instead of into the state directory.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Words to find the run again by.
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// Print the report as JSON.
    #[arg(long)]
    pub json: bool,

    /// Exit with 3 if anything is inconclusive.
    #[arg(long)]
    pub strict: bool,

    /// Which regressions make the exit code 1.
    #[arg(long, value_enum, default_value_t)]
    pub fail_on: FailOn,

    /// Go on with a run that was interrupted, with its own plan.
    #[arg(long, value_name = "RUN", conflicts_with_all = PLAN_FLAGS)]
    pub resume: Option<RunRef>,

    /// Begin a timed run although it could not show a change as small as its margin.
    #[arg(long)]
    pub anyway: bool,

    /// Do not wait for another run that measures on the same CPUs.
    #[arg(long)]
    pub no_wait: bool,

    /// Boot every side of an exact run, also those whose result is known.
    #[arg(long)]
    pub no_cache: bool,

    /// Show the console of this side.
    #[arg(long, value_name = "SIDE")]
    pub console: Option<String>,
}

/// A duration of at least a second, in whole seconds.
fn seconds(text: &str) -> Result<u32, String> {
    let ns = units::parse_duration_ns(text)?;
    match u32::try_from(ns / 1_000_000_000) {
        Ok(seconds) if seconds > 0 => Ok(seconds),
        _ => Err("at least one second, such as 90s or 5m".to_owned()),
    }
}

/// A margin, as it was written.
fn monitor(text: &str) -> Result<Monitor, String> {
    let names = || Monitor::ALL.map(Monitor::name).join(", ");
    Monitor::named(text).ok_or_else(|| format!("no such monitor; there are {}", names()))
}

fn margin(text: &str) -> Result<String, String> {
    match parse_margin(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(why) => Err(format!("{why}: {MARGIN_HELP}")),
    }
}

/// `--measure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MeasureArg {
    /// Wall time in the guest.
    Time,
    /// Instructions in a deterministic guest.
    Instructions,
}

/// `--huge-pages`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HugePagesArg {
    /// 2 MiB.
    #[value(name = "2M")]
    TwoMib,
    /// 1 GiB.
    #[value(name = "1G")]
    OneGib,
}

impl HugePagesArg {
    /// As guests get them.
    pub fn pages(self) -> HugePages {
        match self {
            Self::TwoMib => HugePages::TwoMib,
            Self::OneGib => HugePages::OneGib,
        }
    }
}

/// `--stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatArg {
    /// Hodges-Lehmann and Wilcoxon's signed ranks over pairs: the default.
    SignedRank,
    /// Student's t over pairs.
    T,
    /// Welch's t over boots, not paired.
    Welch,
}

/// `--pairing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PairingArg {
    /// A duet where it can be, else one after the other: the default.
    Auto,
    /// At once, on cores of their own, which the sides swap; trials start together.
    Duet,
    /// One after the other, on the same cores.
    Interleave,
}

impl PairingArg {
    /// As plans have it.
    pub fn pairing(self) -> Pairing {
        match self {
            Self::Auto => Pairing::Auto,
            Self::Duet => Pairing::Duet,
            Self::Interleave => Pairing::Interleave,
        }
    }
}

impl RunArgs {
    /// What a timed run is decided by, if it was said.
    pub fn statistic(&self) -> Option<Statistic> {
        match self.stat {
            _ if self.anytime => Some(Statistic::Anytime),
            None => None,
            Some(StatArg::SignedRank) => Some(Statistic::SignedRank),
            Some(StatArg::T) => Some(Statistic::T),
            Some(StatArg::Welch) => Some(Statistic::Welch),
        }
    }
}

/// `--accel`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum AccelArg {
    /// KVM where it works, else TCG.
    #[default]
    Auto,
    /// The host's processor, or an error.
    Kvm,
    /// QEMU's translator.
    Tcg,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Any regression, however small.
    Any,
    /// Regressions beyond the margin.
    #[default]
    Margin,
    /// None.
    Never,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flag that would be silently ignored beside `--resume` is refused.
    #[test]
    fn everything_that_decides_a_plan_conflicts_with_resume() {
        let how_it_is_run = ["budget", "accel", "qemu", "verbose", "backend"];
        let all = RunArgs::augment_args(clap::Command::new("run"));
        let forgotten: Vec<&str> = all
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .filter(|id| !PLAN_FLAGS.contains(id) && !how_it_is_run.contains(id))
            .collect();
        assert_eq!(forgotten, [""; 0]);
        let both = RunOptions::augment_args(all);
        let parse = |words: &[&str]| both.clone().try_get_matches_from(words);
        assert!(parse(&["run", "--resume", "@0", "--accel", "tcg", "--json"]).is_ok());
        assert!(parse(&["run", "--resume", "@0", "--pairs", "20"]).is_err());
        assert!(parse(&["run", "--resume", "@0", "--", "./bench"]).is_err());
    }
}
