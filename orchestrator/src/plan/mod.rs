//! What a run will do, decided before it starts: blocks, trials, order, seeds. Touches nothing.

mod build;
mod claim;
pub mod cost;
mod exact;
mod expectation;
mod margin;
mod matrix;
mod pairing;
pub mod placement;
pub mod random;
mod schedule;
pub mod shape;
pub mod topology;

pub use build::{DEFAULT_PAIRS, QUICK_PAIRS, build};
pub use claim::{Claim, Prognosis};
pub use exact::{FIRST_SEED, exact_metric, machine_of};
pub use expectation::{Expectation, Expected, OUTCOMES, RANGE_HELP, Range, Subject, Wanted};
pub use margin::{CalibratedSeries, MARGIN_HELP, MarginTerms, parse_margin};
pub use matrix::{series_label, shown};
pub use pairing::{NoPlace, Pairing, settle};
pub use placement::{NoRoom, Placement, place};
pub use schedule::blocks;

use kduel_protocol::{Knobs, Monitor, MonitorTerms, Topology, TrialSpec};
use serde::{Deserialize, Serialize};

use crate::boot::{Grants, ImageFile};

use crate::config::KernelSpec;
use crate::provision::image::Recipe;

/// Everything that was decided before the first boot. Stored as `plan.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// `kduel-plan/1`.
    pub format: String,
    /// What is measured.
    pub measure: Measure,
    /// Draws orders and layout seeds; recorded so that a resumed run goes on with the same schedule.
    pub seed: u64,
    /// One look at the end with Student's t instead of the rank interval.
    pub quick: bool,
    /// What a timed run is decided by, unless it is quick.
    #[serde(default, skip_serializing_if = "Statistic::is_default")]
    pub statistic: Statistic,
    /// Sides may be the same kernel with the same knobs: an A/A run.
    pub aa: bool,
    /// An A/A run that says what the host can be trusted with: one look, at the last pair.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub calibrate: bool,
    /// In order.
    pub experiments: Vec<PlannedExperiment>,
}

/// What a timed run is decided by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// Ranks of pairs, at planned looks.
    #[default]
    SignedRank,
    /// Student's t over pairs, at planned looks.
    T,
    /// Welch's t over boots, at planned looks.
    Welch,
    /// A confidence sequence over pairs, looked at after each.
    Anytime,
}

impl Statistic {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::SignedRank, Self::T, Self::Welch, Self::Anytime];

    /// As documents and the command line say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SignedRank => "signed-rank",
            Self::T => "t",
            Self::Welch => "welch",
            Self::Anytime => "anytime",
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The format of [`Plan`].
pub const PLAN_FORMAT: &str = "kduel-plan/1";

/// What is measured; one run has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Wall time in the guest; several boots per side.
    Time,
    /// Instructions in a deterministic guest.
    Instructions,
}

/// One experiment: sides that are compared under the same workloads and topology.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedExperiment {
    /// As named in the document, `adhoc` without one.
    pub name: String,
    /// Base first; at least two.
    pub sides: Vec<PlannedSide>,
    /// What the guests look like.
    pub topology: Topology,
    /// What the user called it: `1s1c`, `numa-4x4`.
    pub topology_name: String,
    /// What runs in every boot, in this order.
    pub trials: Vec<TrialSpec>,
    /// Files of the user's own that go into every guest: path on the host, path in the guest.
    pub files: Vec<UserFile>,
    /// What the guests mount besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<PlannedImage>,
    /// What is read beside the samples.
    pub monitors: Vec<Monitor>,
    /// How often they look.
    #[serde(default, skip_serializing_if = "MonitorTerms::is_default")]
    pub monitor_terms: MonitorTerms,
    /// The longest wait for an idle guest, in seconds.
    pub settle_s: u32,
    /// What the user allows a guest instead of the accelerator's deadlines.
    #[serde(default)]
    pub patience: Patience,
    /// What guests get of the host for themselves.
    #[serde(default, skip_serializing_if = "Grants::is_empty")]
    pub grants: Grants,
    /// One boot of every side each, in order.
    pub blocks: Vec<Block>,
    /// The change that matters, where the user said it.
    #[serde(default, skip_serializing_if = "MarginTerms::is_empty")]
    pub margin: MarginTerms,
    /// What this host was calibrated to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibrated: Vec<CalibratedSeries>,
    /// What only exact runs have.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exact: Option<ExactTerms>,
    /// How the boots of a block follow one another, in timed runs.
    #[serde(default, skip_serializing_if = "Pairing::is_default")]
    pub pairing: Pairing,
    /// Where the guests of a timed run are, found when it begins: one for all of them, or with
    /// [`Pairing::Duet`] one for each of a block's boots in their order. Empty: nowhere in particular.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<Placement>,
    /// What a report says of the sides.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub claims: Vec<Claim>,
}

impl PlannedExperiment {
    /// Where the boot at this place of its block is.
    pub fn placement(&self, slot: usize) -> Option<&Placement> {
        match self.pairing {
            Pairing::Duet => self.placements.get(slot),
            Pairing::Auto | Pairing::Interleave => self.placements.first(),
        }
    }

    /// The file that its guests have as a disk.
    pub fn disk(&self) -> Option<&ImageFile> {
        self.image.as_ref()?.file.as_ref()
    }

    /// Whether its guests share CPUs with one another or with the rest of QEMU.
    pub fn is_overcommitted(&self) -> bool {
        self.placements.iter().any(|placement| placement.overcommitted)
    }
}

/// How the guests of an exact run are made; all but `chains` is part of what identifies them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExactTerms {
    /// An instruction takes 2^shift nanoseconds of guest time.
    pub shift: u8,
    /// The memory layout of processes is drawn anew for each seed, not held fixed.
    pub sampled: bool,
    /// Call chains are followed, too; no sample knows.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub chains: bool,
}

/// Deadlines of the user's own; absent: by the accelerator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Patience {
    /// From the start of a guest until it can be reached, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub boot_s: Option<u32>,
    /// Without any sign of progress, in seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub progress_s: Option<u32>,
}

/// One side of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedSide {
    /// `base`, `patched`, ….
    pub name: String,
    /// What the user called the kernel: a name of the document or a SPEC.
    pub kernel_name: String,
    /// Where the kernel comes from.
    pub kernel: KernelSpec,
    /// What makes the side differ besides.
    pub knobs: Knobs,
}

/// A file system with programs that guests do not have themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedImage {
    /// What the user called it.
    pub name: String,
    /// What it is made of.
    pub recipe: Recipe,
    /// What was made of it when the run began; absent before that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<ImageFile>,
}

/// A file of the user's own that goes into every guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UserFile {
    /// Absolute path on the host.
    pub host: String,
    /// Absolute path in the guest.
    pub guest: String,
    /// SHA-256 of what it held when the run began, lower-case hex; absent before that.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sha256: Option<String>,
}

/// One boot of every side at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Block {
    /// From 0.
    pub index: usize,
    /// Indices into [`PlannedExperiment::sides`], in boot order.
    pub order: Vec<usize>,
    /// Mixed into the guests' random pools; the same for all sides of the block.
    pub layout_seed: u64,
    /// QEMU's name of the guests' processor, in exact runs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu: Option<String>,
    /// The side that is compared with itself: it boots once more right before or after itself, or, in
    /// a duet, twice more at once. An index into [`PlannedExperiment::sides`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sentinel: Option<usize>,
}

/// One boot of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// An index into [`PlannedExperiment::sides`].
    pub side: usize,
    /// It is only compared with its own side.
    pub sentinel: bool,
    /// Its place in the block, or, in a duet, among the guests that are there at once.
    pub slot: usize,
}

impl Block {
    /// The boots: those that are there at once, one such group after the other.
    pub fn waves(&self, pairing: Pairing) -> Vec<Vec<Turn>> {
        let at_once = |turns: Vec<(usize, bool)>| -> Vec<Turn> {
            let turns = turns.into_iter().enumerate();
            turns.map(|(slot, (side, sentinel))| Turn { side, sentinel, slot }).collect()
        };
        let mut turns: Vec<(usize, bool)> = self.order.iter().map(|side| (*side, false)).collect();
        if pairing == Pairing::Duet {
            let twice = self.sentinel.map(|side| vec![(side, true); 2]);
            return [Some(turns), twice].into_iter().flatten().map(at_once).collect();
        }
        match self.sentinel {
            // Two boots side by side, as those of a pair are.
            Some(side) if self.order.first() == Some(&side) => turns.insert(0, (side, true)),
            Some(side) => turns.push((side, true)),
            None => {}
        }
        at_once(turns).into_iter().map(|turn| vec![turn]).collect()
    }

    /// How many boots that are.
    pub fn boots(&self, pairing: Pairing) -> usize {
        self.waves(pairing).iter().map(Vec::len).sum()
    }
}
