use kduel_protocol::{Parallelism, workload};

use crate::boot::Accel;

/// The change that matters where the user has not said otherwise, relative: 0.1 is 10 %.
///
/// Emulated numbers are of QEMU's translator, so only what is large is worth a verdict. On hardware
/// loops of one task repeat closely, tasks that meet on several CPUs do not, and tails least of all.
pub fn default_margin(accel: Accel, workload_name: &str, metric: &str) -> f64 {
    let parallel =
        workload(workload_name).is_none_or(|info| info.parallel == Parallelism::Parallel);
    match accel {
        Accel::Tcg => 0.10,
        Accel::Kvm if metric.ends_with("p99") => 0.10,
        Accel::Kvm if parallel => 0.03,
        Accel::Kvm => 0.01,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins_follow_accelerator_workload_and_metric() {
        assert_eq!(default_margin(Accel::Tcg, "syscall", "time"), 0.10);
        assert_eq!(default_margin(Accel::Kvm, "syscall", "time"), 0.01);
        assert_eq!(default_margin(Accel::Kvm, "hackbench", "time"), 0.03);
        assert_eq!(default_margin(Accel::Kvm, "syscall", "time-p99"), 0.10);
    }
}
