//! Counters of perf events in the shape that perf stat prints them in.

use crate::analyse::{Analysis, Comparison, MonitorRow, MonitorTable};
use crate::text::count;

/// A block for each side, then what changed.
pub(super) fn lines(analysis: &Analysis, table: &MonitorTable) -> Vec<String> {
    let mut lines = Vec::new();
    for place in 0..table.sides.len() {
        lines.extend(block(analysis, table, place));
    }
    let changes: Vec<String> = table
        .rows
        .iter()
        .filter_map(|row| Some(format!("{} {}", row.name, super::monitors::change(row)?)))
        .collect();
    if !changes.is_empty() {
        lines.push(format!(" change: {}", changes.join(", ")));
    }
    lines
}

fn block(analysis: &Analysis, table: &MonitorTable, place: usize) -> Vec<String> {
    let side = &table.sides[place];
    let value = |row: &MonitorRow| row.values.get(place).copied().flatten();
    let find = |name: &str| table.rows.iter().find(|row| row.name == name).and_then(value);
    let elapsed = elapsed_s(analysis, table, place);
    let mut lines = vec![format!(
        " Performance counter stats per operation of '{}' on {side} (workload's process and all it forks):",
        table.workload
    )];
    if table.rows.is_empty() {
        return lines;
    }
    for row in &table.rows {
        let Some(found) = value(row) else { continue };
        let line = match row.name.as_str() {
            "task-clock" => {
                let used =
                    elapsed.map(|(s, _)| format!("# {:8.3} CPUs utilized", found.mean / 1e9 / s));
                let name = format!("{:>20.6}  {:<22}", found.mean / 1e6, "task-clock (msec)");
                format!("{name} {:<30}", used.unwrap_or_default())
            }
            name => {
                let rate = match (name, find("cycles"), find("task-clock")) {
                    ("instructions", Some(cycles), _) => {
                        format!("# {:8.2} insns per cycle", found.mean / cycles.mean)
                    }
                    (_, _, Some(clock)) if clock.mean > 0.0 => {
                        format!("# {:8.3} K/sec", found.mean / (clock.mean / 1e9) / 1e3)
                    }
                    _ => String::new(),
                };
                format!("{:>20.3}  {name:<22} {rate:<30}", found.mean)
            }
        };
        lines.push(format!("{line}{}", plus_minus(found.spread)).trim_end().to_owned());
    }
    if let Some((seconds, boots)) = elapsed {
        lines.push(format!("{seconds:>20.9}  seconds elapsed        ({})", count(boots, "boot")));
    }
    lines.push(String::new());
    lines
}

fn plus_minus(spread: Option<f64>) -> String {
    spread.map(|spread| format!("( +- {:.3}% )", spread * 100.0)).unwrap_or_default()
}

/// The time of an operation, from the metric of that name or from the throughput.
fn elapsed_s(analysis: &Analysis, table: &MonitorTable, place: usize) -> Option<(f64, usize)> {
    let own = |c: &&Comparison| {
        c.series.experiment == table.experiment && c.series.workload == table.workload
    };
    let of = |c: &Comparison| if place == 0 { c.base } else { c.value };
    let mut comparisons = analysis.comparisons.iter().filter(own);
    comparisons.find_map(|c| {
        let fits = place == 0 || c.side == table.sides[place];
        let value = of(c).filter(|value| fits && *value > 0.0)?;
        let seconds = match (c.series.metric.as_str(), c.unit.as_str()) {
            ("time" | "guest-time", "ns") => value / 1e9,
            ("throughput", "1/s") => 1.0 / value,
            _ => return None,
        };
        Some((seconds, c.pairs))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_printed_as_perf_does() {
        assert_eq!(plus_minus(Some(0.000_67)), "( +- 0.067% )");
        assert_eq!(plus_minus(None), "");
    }
}
