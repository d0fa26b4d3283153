//! What is watched beside the kept iterations of a trial: counters by the workload's own process,
//! before and after them; rows, samples and the kernel's log by its parent, meanwhile.

mod beside;
mod dmesg;
mod inside;
mod interrupts;
mod perf_stat;
mod profile;
mod psi;
mod rusage;
mod schedstat;
mod symbols;
mod vmstat;
mod vmstat_rows;

pub use beside::Beside;
pub use inside::Inside;
pub use perf_stat::PerIteration;
pub use vmstat::steal_ms;

use std::collections::BTreeMap;

/// Counters by name, as read at one moment.
type Counters = BTreeMap<String, f64>;

/// What grew by how much; a counter that is missing on either side is left out.
fn deltas(before: &Counters, after: &Counters) -> Counters {
    let delta = |(name, value): (&String, &f64)| Some((name.clone(), value - before.get(name)?));
    after.iter().filter_map(delta).collect()
}

/// What could not be read of a file of `/proc`, and what the kernel would need for it.
fn lacking(path: &str, error: &std::io::Error, needs: &str) -> String {
    format!("{path}: {error}; {needs}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_on_one_side_is_no_delta() {
        let counters = |pairs: &[(&str, f64)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect::<Counters>()
        };
        let found =
            deltas(&counters(&[("a", 1.0), ("b", 2.0)]), &counters(&[("a", 4.0), ("c", 9.0)]));
        assert_eq!(found, counters(&[("a", 3.0)]));
    }
}
