//! Whether the guests of a pair are there at once or one after the other.

use std::fmt;

use kduel_protocol::{Duet, TrialSpec, workload};
use serde::{Deserialize, Serialize};

use super::{NoRoom, Placement, PlannedExperiment, place, series_label};
use crate::host::topology::HostTopology;

/// How the boots of a block follow one another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pairing {
    /// A duet where the host has room for it and every workload may run so. Settled when guests are
    /// placed.
    Auto,
    /// One after the other, on the same cores.
    #[default]
    Interleave,
    /// All at once, on cores of their own, which the sides swap from block to block.
    Duet,
}

impl Pairing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Duet, Self::Interleave];

    /// As documents and the command line say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Duet => "duet",
            Self::Interleave => "interleave",
        }
    }

    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Why an experiment cannot be carried out as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoPlace {
    /// Too few CPUs.
    Room(NoRoom),
    /// A duet of these workloads would measure what they share.
    Shared(Vec<String>),
}

impl fmt::Display for NoPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Room(room) => room.fmt(f),
            Self::Shared(workloads) => {
                let workloads = workloads.join(", ");
                write!(f, "a duet would let the guests slow each other: {workloads}")
            }
        }
    }
}

impl std::error::Error for NoPlace {}

/// Settles how the boots of a block follow one another, and where they are. Where nothing was asked
/// for, a duet if the host has a core for each vCPU of all its guests and one more.
///
/// # Errors
///
/// Too few CPUs for what is asked, unless threads may share them (`overcommit`); a duet of workloads
/// that are limited by what guests share.
pub fn settle(
    experiment: &PlannedExperiment,
    host: &HostTopology,
    overcommit: bool,
) -> Result<(Pairing, Vec<Placement>), NoPlace> {
    let at_once =
        |overcommit| place(host, &experiment.topology, experiment.sides.len(), overcommit);
    let in_turn = || place(host, &experiment.topology, 1, overcommit).map_err(NoPlace::Room);
    let shared = limited_by_what_is_shared(&experiment.trials);
    match experiment.pairing {
        Pairing::Duet if !shared.is_empty() => Err(NoPlace::Shared(shared)),
        Pairing::Duet => Ok((Pairing::Duet, at_once(overcommit).map_err(NoPlace::Room)?)),
        Pairing::Auto if shared.is_empty() => match at_once(false) {
            Ok(placements) => Ok((Pairing::Duet, placements)),
            Err(_) => Ok((Pairing::Interleave, in_turn()?)),
        },
        Pairing::Auto | Pairing::Interleave => Ok((Pairing::Interleave, in_turn()?)),
    }
}

/// The trials that guests would slow for one another.
fn limited_by_what_is_shared(trials: &[TrialSpec]) -> Vec<String> {
    let is_limited = |trial: &&TrialSpec| match workload(&trial.workload).map(|info| info.duet) {
        Some(Duet::Yes) => false,
        Some(Duet::No) => true,
        Some(Duet::Asked) | None => {
            trial.params.get("duet").and_then(serde_json::Value::as_str) != Some("yes")
        }
    };
    trials.iter().filter(is_limited).map(series_label).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::testing::plan;
    use crate::host::topology::testing::{plain, two_nodes};

    fn settled(
        pairing: Pairing,
        workloads: &[&str],
        cpus: u32,
        overcommit: bool,
    ) -> Result<(Pairing, usize), String> {
        let mut experiment = plan(&["base", "x"], 1).experiments.remove(0);
        let model = experiment.trials.remove(0);
        experiment.trials = workloads
            .iter()
            .map(|name| TrialSpec { workload: (*name).to_owned(), ..model.clone() })
            .collect();
        experiment.pairing = pairing;
        let settled = settle(&experiment, &plain(cpus).read(), overcommit);
        settled.map(|(pairing, on)| (pairing, on.len())).map_err(|error| error.to_string())
    }

    #[test]
    fn a_duet_is_taken_where_there_are_cores_for_both_and_one_more() {
        let auto = |cpus| settled(Pairing::Auto, &["fork-exit"], cpus, false);
        assert_eq!(auto(3), Ok((Pairing::Duet, 2)));
        assert_eq!(auto(2), Ok((Pairing::Interleave, 1)));
        let marked = settled(Pairing::Auto, &["fork-exit"], 2, true);
        assert_eq!(marked, Ok((Pairing::Interleave, 1)), "never a duet that nobody asked for");
        let asked = |overcommit| settled(Pairing::Duet, &["fork-exit"], 2, overcommit);
        assert!(asked(false).unwrap_err().starts_with("2 cores for vCPUs"));
        assert_eq!(asked(true), Ok((Pairing::Duet, 2)));
        assert_eq!(settled(Pairing::Interleave, &["fork-exit"], 8, false).unwrap().1, 1);
    }

    #[test]
    fn what_is_limited_by_what_guests_share_is_measured_alone() {
        let both = ["fork-exit", "page-fault"];
        assert_eq!(settled(Pairing::Auto, &both, 8, false), Ok((Pairing::Interleave, 1)));
        let refused = settled(Pairing::Duet, &both, 8, false).unwrap_err();
        assert!(refused.contains("slow each other: page-fault"), "{refused}");
        assert!(settled(Pairing::Duet, &["command"], 8, false).is_err(), "nobody knows");
    }

    #[test]
    fn all_sides_of_a_block_are_there_at_once() {
        let mut experiment = plan(&["base", "x", "y"], 1).experiments.remove(0);
        experiment.pairing = Pairing::Auto;
        let (pairing, placements) = settle(&experiment, &two_nodes().read(), false).unwrap();
        assert_eq!((pairing, placements.len()), (Pairing::Duet, 3));
    }
}
