//! Time under pressure: `/proc/pressure`.

use std::fs;
use std::path::Path;

use super::{Counters, lacking};

const NEEDS: &str = "the kernel needs CONFIG_PSI, and psi=1 where it is off by default";

/// Reads what there is of cpu, memory, io and irq below `root`, in milliseconds.
pub fn read(root: &Path) -> Result<Counters, String> {
    let mut counters = Counters::new();
    for name in ["cpu", "memory", "io"] {
        let path = root.join("proc/pressure").join(name);
        let text = fs::read_to_string(path)
            .map_err(|error| lacking(&format!("/proc/pressure/{name}"), &error, NEEDS))?;
        counters.extend(totals(&text, name));
    }
    // Since 6.1, and only with time accounting of interrupts.
    if let Ok(text) = fs::read_to_string(root.join("proc/pressure/irq")) {
        counters.extend(totals(&text, "irq"));
    }
    Ok(counters)
}

fn totals(text: &str, name: &str) -> Counters {
    let total = |line: &str| {
        let kind = line.split_whitespace().next()?;
        let us: f64 = line.rsplit_once("total=")?.1.trim().parse().ok()?;
        Some((format!("{name}-{kind}-ms"), us / 1e3))
    };
    text.lines().filter_map(total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_read_and_absence_has_a_reason() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500\nfull avg10=0.00 total=0\n";
        let found = totals(text, "io");
        assert_eq!((found["io-some-ms"], found["io-full-ms"]), (1.5, 0.0));
        let root = tempfile::tempdir().unwrap();
        assert!(read(root.path()).unwrap_err().contains("CONFIG_PSI"));
    }
}
