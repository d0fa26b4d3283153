//! Which boots the host spoilt: by what the host did, never by what was measured.

use kduel_stats::Host;

use super::series::latest;
use super::sides::result;
use crate::boot::Accel;
use crate::collect::BootRecord;
use crate::plan::PlannedExperiment;
use crate::report::number;

/// Why the host spoilt one trial of a boot, if it did.
pub(super) fn contamination(record: &BootRecord, trial: u32) -> Option<String> {
    let noise = &result(record)?.noise.iter().find(|noise| noise.trial == trial)?.host;
    let limit = steal_limit(record.accel);
    if noise.suspended_ms > 0 {
        return Some("the host was suspended".to_owned());
    }
    if noise.throttled.is_some_and(|times| times > 0) {
        return Some("the host's CPUs were throttled".to_owned());
    }
    noise
        .steal
        .filter(|steal| *steal > limit)
        .map(|_| format!("the host took away more than {} of a vCPU's time", number::margin(limit)))
}

/// The part of its time that may be taken away from a vCPU.
pub(super) fn steal_limit(accel: Accel) -> f64 {
    match accel {
        Accel::Tcg => Host::Emulated,
        Accel::Kvm => Host::KvmShared,
    }
    .steal_limit()
}

/// Whether the host spoilt any trial of a boot.
pub(super) fn is_contaminated(record: &BootRecord) -> bool {
    let trials = result(record).into_iter().flat_map(|result| &result.noise);
    trials.into_iter().any(|noise| contamination(record, noise.trial).is_some())
}

/// Whether to boot a block again because the host spoilt it, and such repetitions are left: a fifth of
/// the plan's pairs.
pub fn worth_repeating(
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    block: usize,
) -> bool {
    let own = || records.iter().filter(|record| record.experiment == experiment.name);
    let spoilt = experiment.sides.iter().any(|side| {
        let boots = latest(records, &experiment.name, &side.name);
        boots.get(&block).is_some_and(|record| is_contaminated(record))
    });
    // A block that was repeated counts once for each time.
    let mut repeated: Vec<(usize, u32)> = own()
        .filter(|record| is_contaminated(record) && is_superseded(record, records))
        .map(|record| (record.block, record.attempt))
        .collect();
    repeated.sort_unstable();
    repeated.dedup();
    let allowed = kduel_stats::retries_allowed(experiment.blocks.len()).unwrap_or(0);
    spoilt && repeated.len() < allowed
}

/// Whether a later attempt stands in its place.
pub(super) fn is_superseded(record: &BootRecord, records: &[BootRecord]) -> bool {
    records.iter().any(|other| {
        other.experiment == record.experiment
            && other.side == record.side
            && other.block == record.block
            && other.sentinel == record.sentinel
            && other.attempt > record.attempt
    })
}

/// The part of their time that the host took from the vCPUs of `own` during a trial: the median over
/// boots; absent where it does not tell.
pub(super) fn steal(own: &[&BootRecord], trial: u32) -> Option<f64> {
    let noise = own.iter().filter_map(|record| result(record)).flat_map(|result| &result.noise);
    let of_trial = noise.filter(|noise| noise.trial == trial);
    let steals: Vec<f64> = of_trial.filter_map(|noise| noise.host.steal).collect();
    kduel_stats::median(&steals).ok()
}

/// What the host did to the guests of one side.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SideNoise {
    /// The part of their time that was taken away from vCPUs: the median over trials.
    pub steal: f64,
    /// The largest of them.
    pub most_steal: f64,
    /// Boots that the host spoilt, repeated ones included.
    pub contaminated: usize,
}

/// Of the boots of one side; absent where no source was there.
pub(super) fn side_noise(own: &[&BootRecord]) -> Option<SideNoise> {
    let results = own.iter().filter_map(|record| result(record));
    let steals: Vec<f64> =
        results.flat_map(|result| &result.noise).filter_map(|noise| noise.host.steal).collect();
    Some(SideNoise {
        steal: kduel_stats::median(&steals).ok()?,
        most_steal: steals.iter().copied().fold(0.0, f64::max),
        contaminated: own.iter().filter(|record| is_contaminated(record)).count(),
    })
}
