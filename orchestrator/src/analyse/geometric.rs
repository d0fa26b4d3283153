use kduel_protocol::Better;

use super::Comparison;

/// The changes of several series of one side in one number. It decides nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct GeometricLine {
    /// The experiment.
    pub experiment: String,
    /// The candidate's side.
    pub side: String,
    /// What was measured, where all series have the same metric, else the unit.
    pub of: String,
    /// The unit that they have in common.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// The geometric mean of value / base, less 1.
    pub change: f64,
    /// Series that went in.
    pub series: usize,
    /// Series that have no change, or one without a logarithm.
    pub left_out: usize,
}

/// Over the primary series of each side that have unit and direction in common, where at least two
/// have a change.
pub fn geometric_lines(comparisons: &[Comparison]) -> Vec<GeometricLine> {
    type Key<'a> = (&'a str, &'a str, &'a str, Better);
    let mut groups: Vec<(Key<'_>, Vec<&Comparison>)> = Vec::new();
    for found in comparisons.iter().filter(|found| found.primary) {
        let key: Key<'_> = (&found.series.experiment, &found.side, &found.unit, found.better);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(found),
            None => groups.push((key, vec![found])),
        }
    }
    let line = |((experiment, side, unit, better), members): (Key<'_>, Vec<&Comparison>)| {
        let changes: Vec<Option<f64>> = members.iter().map(|member| member.change).collect();
        let mean = kduel_stats::geometric_mean(&changes).filter(|mean| mean.series > 1)?;
        let metric = &members[0].series.metric;
        let same = members.iter().all(|member| member.series.metric == *metric);
        Some(GeometricLine {
            experiment: experiment.to_owned(),
            side: side.to_owned(),
            of: if same { metric.clone() } else { format!("series in {unit}") },
            unit: unit.to_owned(),
            better,
            change: mean.change,
            series: mean.series,
            left_out: mean.left_out,
        })
    };
    groups.into_iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{SeriesName, Verdict};

    fn found(workload: &str, unit: &str, change: Option<f64>, primary: bool) -> Comparison {
        Comparison {
            series: SeriesName {
                experiment: "e".into(),
                workload: workload.into(),
                metric: if unit == "ns" { "time".into() } else { workload.into() },
            },
            side: "b".into(),
            unit: unit.into(),
            better: Better::Lower,
            primary,
            base: None,
            value: None,
            change,
            low: None,
            high: None,
            confidence: None,
            margin: 0.1,
            pairs: 8,
            all_pairs: None,
            timed: None,
            dropped: 0,
            verdict: Verdict::Invalid,
            reason: String::new(),
            exact: None,
        }
    }

    #[test]
    fn what_has_no_change_is_counted_and_units_are_not_mixed() {
        let lines = geometric_lines(&[
            found("w", "ns", Some(1.0), true),
            found("x", "ns", Some(-0.5), true),
            found("y", "ns", None, true),
            found("z", "ns", Some(9.0), false),
            found("p", "s", Some(0.1), true),
            found("q", "s", Some(0.1), true),
            found("r", "1/s", Some(0.1), true),
        ]);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].change.abs() < 1e-12);
        assert_eq!((lines[0].series, lines[0].left_out, lines[0].of.as_str()), (2, 1, "time"));
        assert_eq!((lines[1].series, lines[1].of.as_str()), (2, "series in s"));
    }
}
