//! Instructions per operation: as an exact run counts them, and from the PMU by two runs of which one
//! does more.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Instructions that the kernel executes for one operation, by the windows in an exact run's journal.
/// Ticks are left out: they come by time, which passes differently there.
pub fn exact_per_op(journal: &str) -> Result<f64> {
    let (mut kernel, mut ops) = (0.0, 0.0);
    for record in records(journal) {
        let mut windows = Vec::new();
        collect(&record, "windows", &mut windows);
        for window in windows.iter().filter_map(|windows| windows.as_array()).flatten() {
            let number = |key: &str| window.get(key).and_then(Value::as_f64);
            let contexts = window.get("contexts").and_then(Value::as_object);
            let outside: f64 = contexts
                .into_iter()
                .flatten()
                .filter(|(name, _)| is_no_kernel_work(name))
                .filter_map(|(_, count)| count.as_f64())
                .sum();
            kernel += number("total").context("a window without a total")? - outside;
            ops += number("ops").context("a window without operations")?;
        }
    }
    ensure!(ops > 0.0, "the exact run's journal has no windows");
    Ok(kernel / ops)
}

fn is_no_kernel_work(context: &str) -> bool {
    context.ends_with("user")
        || ["interrupt ", "idle", "waiting"].iter().any(|word| context.starts_with(word))
}

/// Operations of all kept iterations in a timed run's journal.
pub fn ops(journal: &str) -> f64 {
    let of = |record: Value| -> f64 {
        let mut samples = Vec::new();
        collect(&record, "samples", &mut samples);
        let all = samples.iter().filter_map(|samples| samples.as_array()).flatten();
        let timed = all.filter(|sample| sample.get("metric").is_some_and(|name| name == "time"));
        timed.filter_map(|sample| sample.get("ops")?.as_f64()).sum()
    };
    records(journal).map(of).sum()
}

/// What `perf stat -x,` says of an event; an error where the host does not count it.
pub fn perf_count(output: &str, event: &str) -> Result<f64> {
    let line = output.lines().find(|line| line.split(',').nth(2) == Some(event));
    let line = line.with_context(|| format!("perf says nothing about {event}"))?;
    let count = line.split(',').next().unwrap_or_default();
    count.parse().with_context(|| format!("perf does not count {event}: {count}"))
}

/// Instructions per operation, from a short run and a long one: (operations, instructions). What both
/// do besides, booting above all, cancels out.
pub fn per_op(short: (f64, f64), long: (f64, f64)) -> Result<f64> {
    let more = long.0 - short.0;
    ensure!(more > 0.0, "the longer run did no more operations");
    Ok((long.1 - short.1) / more)
}

/// The record of a line lies somewhere within what guards it.
fn records(journal: &str) -> impl Iterator<Item = Value> {
    journal.lines().filter_map(|line| serde_json::from_str(line.get(line.find('{')?..)?).ok())
}

/// Every field called `key`, however deep, but not within one that was found.
fn collect<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if name == key { found.push(field) } else { collect(field, key, found) }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, key, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_work_of_exact_windows_is_added_up() {
        let window = r#"{"ops":10,"total":1000,"contexts":{"own syscall":700,"own user":100,
            "softirqs":50,"idle":100,"interrupt apic_timer_interrupt":50}}"#;
        let line = format!(r#"1a2b {{"boot":"x","outcome":{{"windows":[{window},{window}]}}}}"#);
        let journal = line.replace('\n', "");
        assert_eq!(exact_per_op(&journal).unwrap(), 75.0);
        assert!(exact_per_op("1a2b {}").is_err());
    }

    #[test]
    fn operations_are_those_of_the_time_alone() {
        let line = r#"1a {"samples":[{"metric":"time","ops":7},{"metric":"other","ops":100}]}"#;
        assert_eq!(ops(&format!("{line}\n{line}\n")), 14.0);
    }

    #[test]
    fn perf_is_understood_and_what_it_does_not_count_is_no_zero() {
        let said = "1234567,,instructions:Gk,1000,100.00,,\n";
        assert_eq!(perf_count(said, "instructions:Gk").unwrap(), 1_234_567.0);
        let not = "<not supported>,,instructions:Gk,0,100.00,,\n";
        assert!(perf_count(not, "instructions:Gk").unwrap_err().to_string().contains("not count"));
        assert!(perf_count("", "instructions:Gk").is_err());
    }

    #[test]
    fn what_both_runs_do_cancels_out() {
        assert_eq!(per_op((100.0, 5100.0), (300.0, 5300.0)).unwrap(), 1.0);
        assert!(per_op((100.0, 0.0), (100.0, 9.0)).is_err());
    }
}
