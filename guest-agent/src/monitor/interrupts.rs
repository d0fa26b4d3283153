//! `/proc/interrupts` and `/proc/softirqs`, over all CPUs.

use std::fs;
use std::path::Path;

use super::{Counters, lacking};

/// Reads both files below `root`.
pub fn read(root: &Path) -> Result<Counters, String> {
    let text = |name: &str| {
        fs::read_to_string(root.join("proc").join(name))
            .map_err(|error| lacking(&format!("/proc/{name}"), &error, "mounted proc needed"))
    };
    let mut counters = sums(&text("interrupts")?, "irq");
    counters.extend(sums(&text("softirqs")?, "softirq"));
    Ok(counters)
}

/// One counter for each row: `irq LOC Local timer interrupts`, `softirq NET_RX`.
fn sums(text: &str, kind: &str) -> Counters {
    let mut lines = text.lines();
    let cpus = lines.next().unwrap_or_default().split_whitespace().count();
    lines
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            let words: Vec<&str> = rest.split_whitespace().collect();
            let numbers = words.iter().take(cpus).map_while(|word| word.parse::<f64>().ok());
            let numbers: Vec<f64> = numbers.collect();
            if numbers.is_empty() {
                return None;
            }
            let what = words[numbers.len()..].join(" ");
            let name = format!("{kind} {} {what}", name.trim());
            Some((name.trim().to_owned(), numbers.iter().sum()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_added_up_over_the_cpus() {
        let text = "           CPU0       CPU1\n  4:        5          6   IO-APIC   4-edge      ttyS0\n\
                    LOC:       10         20   Local timer interrupts\nERR:          3\n";
        let found = sums(text, "irq");
        assert_eq!(found["irq 4 IO-APIC 4-edge ttyS0"], 11.0);
        assert_eq!(found["irq LOC Local timer interrupts"], 30.0);
        assert_eq!(found["irq ERR"], 3.0, "a total has one number whatever the CPUs");
        assert_eq!(sums("   CPU0\n  HI: 1\n", "softirq")["softirq HI"], 1.0);
    }
}
