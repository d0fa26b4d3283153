//! What a calibration found, for people and for later runs.

use std::path::Path;

use kduel_stats::{FEWEST_PAIRS, Interval, StatsError};

use super::talk::tell;
use crate::analyse::{SeriesCalibration, calibrations};
use crate::collect::{Calibrations, Conditions, StoredRun};
use crate::config::Environment;
use crate::fault::Failure;
use crate::report::number;
use crate::text::escape;

/// Shows what was found and keeps what may be believed; what scripted guests gave is no host's.
///
/// # Errors
///
/// The file of calibrations cannot be read or written.
pub(super) fn conclude(stored: &StoredRun, environment: &Environment) -> Result<String, Failure> {
    let found = calibrations(&stored.plan, &stored.records);
    let text = render(&found);
    if stored.info.qemu.is_none() {
        tell("nothing is kept: these guests were scripted");
        return Ok(text);
    }
    let mut known = Calibrations::load(&environment.calibration_file())?;
    let mut kept = 0;
    for experiment in &stored.plan.experiments {
        let accelerator = stored.info.accelerator;
        let conditions = Conditions::of(Path::new("/"), accelerator, &experiment.topology);
        let own = found.iter().filter(|series| series.experiment == experiment.name);
        let own: Vec<_> = own.filter_map(|series| series.kept(&stored.info.id.0)).collect();
        kept += own.len();
        known.put(&conditions, own);
    }
    if kept > 0 {
        known.save()?;
    }
    tell(&format!("kept the margins of {kept} of {} series for later runs", found.len()));
    Ok(text)
}

const HEADINGS: [&str; 7] =
    ["series", "pair sd", "sides differ", "going second", "drift", "false alarms", "margin"];

const NOT_KEPT: &str = concat!(
    "  not kept: a kernel differs from itself beyond 95 % confidence, or resampled runs raise too many\n",
    "  false alarms. One series in twenty differs by chance: calibrate again; if it stays, something on\n",
    "  this host favours a side.\n",
);

/// A table, one line for each series.
fn render(found: &[SeriesCalibration]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned).to_vec()];
    rows.extend(found.iter().map(row));
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = "\ncalibration\n".to_owned();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        text += format!("  {}", cells.collect::<Vec<_>>().join("  ")).trim_end();
        text.push('\n');
    }
    if found.iter().any(|series| series.found.as_ref().is_ok_and(|(found, _)| !found.passes)) {
        text += NOT_KEPT;
    }
    text
}

fn row(series: &SeriesCalibration) -> Vec<String> {
    let name = escape(&format!("{} {}", series.workload, series.metric));
    let interval = |i: &Interval| number::interval(i.low.exp_m1(), i.high.exp_m1());
    match &series.found {
        Ok((found, _)) => {
            let verdict = if found.passes { "" } else { ", not kept" };
            vec![
                name,
                number::percent(found.pair_sd),
                interval(&found.interval),
                found.slot.as_ref().map_or_else(|| "-".to_owned(), interval),
                interval(&found.drift),
                number::percent(found.false_alarms),
                format!("{}{verdict}", number::percent(found.margin.relative)),
            ]
        }
        Err(StatsError::TooFew { found, .. }) => {
            vec![format!("{name}: {found} pairs, and a calibration needs {FEWEST_PAIRS}")]
        }
        Err(error) => vec![format!("{name}: {error}")],
    }
}
