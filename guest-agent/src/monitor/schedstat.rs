//! `/proc/schedstat`, over all CPUs.

use std::fs;
use std::path::Path;

use super::{Counters, lacking};

const NEEDS: &str = "the kernel needs CONFIG_SCHEDSTATS";

/// Fields of a line `cpuN` by their place behind the name, the same since version 15 of the file.
const FIELDS: [(usize, &str, f64); 8] = [
    (0, "yields", 1.0),
    (2, "schedules", 1.0),
    (3, "schedules-to-idle", 1.0),
    (4, "wake-ups", 1.0),
    (5, "wake-ups-local", 1.0),
    (6, "running-ms", 1e-6),
    (7, "waiting-ms", 1e-6),
    (8, "timeslices", 1.0),
];

/// Reads it below `root`.
pub fn read(root: &Path) -> Result<Counters, String> {
    let text = fs::read_to_string(root.join("proc/schedstat"))
        .map_err(|error| lacking("/proc/schedstat", &error, NEEDS))?;
    sums(&text)
}

fn sums(text: &str) -> Result<Counters, String> {
    let version = text.lines().next().and_then(|line| line.strip_prefix("version "));
    let known = version.and_then(|version| version.trim().parse::<u32>().ok());
    if known.is_none_or(|version| version < 15) {
        return Err(format!(
            "/proc/schedstat: version {} is not known",
            version.unwrap_or("(none)")
        ));
    }
    let mut counters = Counters::new();
    for line in text.lines().filter(|line| line.starts_with("cpu")) {
        let numbers: Vec<f64> =
            line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
        for (at, name, unit) in FIELDS {
            if let Some(value) = numbers.get(at) {
                *counters.entry(name.to_owned()).or_default() += value * unit;
            }
        }
    }
    Ok(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_added_up_and_domains_left_out() {
        let text = "version 15\ntimestamp 4294\ncpu0 1 0 10 2 30 4 5000000 7000000 9\n\
                    domain0 3 99 99 99\ncpu1 0 0 1 0 1 0 1000000 0 1\n";
        let found = sums(text).unwrap();
        assert_eq!((found["schedules"], found["wake-ups"]), (11.0, 31.0));
        assert_eq!((found["running-ms"], found["waiting-ms"]), (6.0, 7.0));
        assert!(sums("version 14\n").unwrap_err().contains("14"));
    }
}
