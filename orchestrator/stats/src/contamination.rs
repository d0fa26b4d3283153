use crate::error::StatsError;

/// What the host promises a guest's vCPUs, and so how much of their time may be taken away before a
/// window says nothing about the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// KVM on CPUs of its own.
    KvmPinned,
    /// KVM beside others.
    KvmShared,
    /// Emulated.
    Emulated,
}

impl Host {
    /// The largest steal ratio of a clean window.
    pub fn steal_limit(self) -> f64 {
        match self {
            Self::KvmPinned => 0.02,
            Self::KvmShared => 0.10,
            Self::Emulated => 0.30,
        }
    }
}

/// What a vCPU's thread wanted to run but could not, as a part of all that it wanted to run. Never by
/// the benchmark's own value. `on_cpu` and `delay` are differences of the first two fields of
/// `/proc/PID/task/TID/schedstat`, in nanoseconds; `None` if it did not want to run at all.
pub fn steal_ratio(on_cpu: u64, delay: u64) -> Option<f64> {
    let wanted = on_cpu as f64 + delay as f64;
    (wanted > 0.0).then(|| delay as f64 / wanted)
}

/// Pairs that may be dropped and tried again: a fifth of the plan's.
///
/// # Errors
///
/// `BadArgument` for a plan without pairs.
pub fn retries_allowed(pairs: usize) -> Result<usize, StatsError> {
    if pairs == 0 { Err(StatsError::BadArgument) } else { Ok(pairs / 5) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_part_of_what_was_wanted() {
        assert_eq!(steal_ratio(900, 100), Some(0.1));
        assert_eq!(steal_ratio(0, 100), Some(1.0));
        assert_eq!(steal_ratio(0, 0), None);
        assert!(steal_ratio(970, 30).is_some_and(|ratio| ratio > Host::KvmPinned.steal_limit()));
        assert!(steal_ratio(970, 30).is_some_and(|ratio| ratio < Host::KvmShared.steal_limit()));
        assert!(steal_ratio(u64::MAX, u64::MAX).is_some_and(|ratio| ratio == 0.5));
    }
}
