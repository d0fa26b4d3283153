//! What monitors counted, beside the metrics.

use crate::analyse::{MonitorRow, monitor_rows};
use crate::collect::BootRecord;
use crate::plan::PlannedExperiment;

use super::number::{quantity, signed_percent};
use super::plain::Plain;

/// The counters of a side beside the base's, in the columns of a mail's table; nothing where there was
/// no monitor.
pub(super) fn write(
    page: &mut Plain,
    experiment: &PlannedExperiment,
    records: &[BootRecord],
    side: &str,
) {
    let mut workload = None;
    for row in monitor_rows(experiment, records, side) {
        if workload.as_ref() != Some(&row.workload) {
            page.paragraph("", &format!("monitors beside {}, per second", row.workload));
            workload = Some(row.workload.clone());
        }
        page.line(&line(&row));
    }
}

fn line(row: &MonitorRow) -> String {
    let show = |found: Option<(f64, Option<f64>)>| {
        let dash = || "-".to_owned();
        let value = found.map_or_else(dash, |(value, _)| quantity(value, "count"));
        let spread = found.and_then(|(_, spread)| spread);
        (value, spread.map_or_else(dash, |spread| format!("{:.2}%", spread * 100.0)))
    };
    let change = match (row.base, row.value) {
        (Some((base, _)), Some((value, _))) if base == value => "=".to_owned(),
        (Some((base, _)), Some((value, _))) if base > 0.0 => signed_percent(value / base - 1.0),
        (Some(_), Some(_)) => "new".to_owned(),
        _ => "-".to_owned(),
    };
    let ((base, base_spread), (value, spread)) = (show(row.base), show(row.value));
    format!("  {base:>10} {base_spread:>8} {change:>11} {value:>12} {spread:>8}  {}", row.name)
}
