//! Whether what must come out of a case did. Pure.

use super::profile::RunProfiles;
use super::run::Analysis;
use super::{Comparison, CountPair, MonitorTable};
use kduel_protocol::Monitor;

use crate::plan::{Expectation, Expected, Measure, Plan, Range, Subject, Wanted};

/// An expectation and what was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'a> {
    /// What was wanted.
    pub expectation: &'a Expectation,
    /// Whether it came out.
    pub held: bool,
    /// What came out.
    pub found: Found,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// Nothing, and why.
    Nothing(String),
    /// Of one side.
    Side {
        /// Words for it, those of exact runs first; of metrics only.
        outcomes: Vec<String>,
        /// On the base, per operation or in `unit`.
        base: f64,
        /// On the side.
        value: f64,
        /// Relative, as the comparison has it.
        change: f64,
        /// Of metrics.
        unit: Option<String>,
        /// Calls per operation, of functions: on the base, on the side.
        calls: Option<[f64; 2]>,
    },
    /// Sides and their values, in the order that was wanted, and the unit of metrics.
    Order(Vec<(String, f64)>, Option<String>),
}

/// The expectations that this run is to be judged by: of its measure and of its experiments.
pub fn asked<'a>(plan: &Plan, expected: &'a Expected) -> Vec<&'a Expectation> {
    let of_measure = match plan.measure {
        Measure::Instructions => &expected.exact,
        Measure::Time => &expected.time,
    };
    let planned = |name: &str| plan.experiments.iter().any(|experiment| experiment.name == name);
    of_measure.iter().filter(|expectation| planned(&expectation.experiment)).collect()
}

/// Judges them, each by itself.
pub fn judge<'a>(
    plan: &Plan,
    expected: &'a Expected,
    analysis: &Analysis,
    profiles: &RunProfiles,
) -> Vec<Judged<'a>> {
    let Analysis { comparisons, monitors, .. } = analysis;
    let material = Material { comparisons, monitors, profiles };
    let one = |expectation: &'a Expectation| {
        let base = plan.experiments.iter().find(|each| each.name == expectation.experiment);
        let base = base.and_then(|each| each.sides.first()).map_or("", |side| &side.name);
        let found = match &expectation.wanted {
            Wanted::Side { side, .. } => material.seen(expectation, side).map(Found::from),
            Wanted::Order(sides) => material.order(expectation, sides, base),
        };
        let found = found.unwrap_or_else(Found::Nothing);
        Judged { held: holds(&expectation.wanted, &found), found, expectation }
    };
    asked(plan, expected).into_iter().map(one).collect()
}

fn holds(wanted: &Wanted, found: &Found) -> bool {
    match (wanted, found) {
        (
            Wanted::Side { outcomes: words, change: wanted, calls: wanted_calls, .. },
            Found::Side { outcomes, base, value, change, calls, .. },
        ) => {
            let lies = |range: &Range| match range.relative {
                true => range.contains(*change),
                false => range.contains(value - base),
            };
            let called = |range: &Range| {
                let Some([base, value]) = calls else { return false };
                range.contains(if range.relative { value / base - 1.0 } else { value - base })
            };
            (words.is_empty() || outcomes.iter().any(|word| words.contains(word)))
                && wanted.as_ref().is_none_or(lies)
                && wanted_calls.as_ref().is_none_or(called)
        }
        (Wanted::Order(_), Found::Order(values, _)) => {
            values.windows(2).all(|pair| pair[0].1 < pair[1].1)
        }
        _ => false,
    }
}

/// One side beside the base.
#[derive(Default)]
struct Seen {
    outcomes: Vec<String>,
    base: f64,
    value: f64,
    change: Option<f64>,
    unit: Option<String>,
    calls: Option<[f64; 2]>,
}

impl From<Seen> for Found {
    fn from(seen: Seen) -> Self {
        Self::Side {
            change: seen.change.unwrap_or(seen.value / seen.base - 1.0),
            outcomes: seen.outcomes,
            base: seen.base,
            value: seen.value,
            unit: seen.unit,
            calls: seen.calls,
        }
    }
}

struct Material<'a> {
    comparisons: &'a [Comparison],
    monitors: &'a [MonitorTable],
    profiles: &'a RunProfiles,
}

impl Material<'_> {
    fn seen(&self, expectation: &Expectation, side: &str) -> Result<Seen, String> {
        let Expectation { experiment, workload, .. } = expectation;
        if let Subject::Function(function) = &expectation.subject {
            return self.function(experiment, workload, side, function);
        }
        if let Subject::Column(monitor, column) = &expectation.subject {
            return self.column(expectation, side, *monitor, column);
        }
        let metric = match &expectation.subject {
            Subject::Metric(Some(metric)) => Some(metric),
            _ => None,
        };
        let matching = |c: &&Comparison| {
            c.series.experiment == *experiment
                && c.side == side
                && is_start(workload, &c.series.workload)
                && metric.map_or(c.primary, |metric| c.series.metric == *metric)
        };
        let mut matching = self.comparisons.iter().filter(matching);
        let found = matching.next().ok_or_else(|| format!("no such series of {side}"))?;
        let more = matching.count();
        if more > 0 {
            return Err(format!("{} series of {side} begin with {workload}", more + 1));
        }
        match &expectation.subject {
            Subject::Count(name) => count(found, name),
            _ => series(found),
        }
    }

    fn function(
        &self,
        experiment: &str,
        workload: &str,
        side: &str,
        function: &str,
    ) -> Result<Seen, String> {
        let profile = self.profiles.series.iter().find(|series| {
            series.experiment == experiment
                && series.side == side
                && is_start(workload, &series.workload)
        });
        let profile = &profile.ok_or_else(|| format!("no profile of {side}"))?.profile;
        let rows = profile.own().map(|section| &section.rows[..]).unwrap_or_default();
        let row = rows.iter().find(|row| row.code.name() == Some(function));
        let row = row.ok_or_else(|| format!("neither side executed {function}"))?;
        let operations = profile.operations;
        Ok(Seen {
            base: operations.base(row.base.instructions),
            value: operations.value(row.value.instructions),
            calls: Some([operations.base(row.base.calls), operations.value(row.value.calls)]),
            ..Seen::default()
        })
    }

    /// Of the first table that has the column: the steady part goes before growth.
    fn column(
        &self,
        expectation: &Expectation,
        side: &str,
        monitor: Monitor,
        column: &str,
    ) -> Result<Seen, String> {
        let Expectation { experiment, workload, .. } = expectation;
        let matching = |table: &&MonitorTable| {
            table.monitor == monitor
                && table.experiment == *experiment
                && is_start(workload, &table.workload)
        };
        let tables: Vec<&MonitorTable> = self.monitors.iter().filter(matching).collect();
        let found = tables
            .iter()
            .find_map(|table| Some((*table, table.rows.iter().find(|row| row.name == column)?)));
        let (table, row) = found.ok_or_else(|| {
            let rows = tables.iter().flat_map(|table| &table.rows);
            let names: Vec<&str> = rows.map(|row| row.name.as_str()).collect();
            match names.is_empty() {
                true => format!("{} saw nothing", monitor.name()),
                false => format!("no column {column}; there are {}", names.join(", ")),
            }
        })?;
        let place = table.sides.iter().position(|name| name == side);
        let value = |place: Option<usize>| row.values.get(place?)?.map(|mean| mean.mean);
        match (value(Some(0)), value(place)) {
            (Some(base), Some(value)) => {
                Ok(Seen { base, value, unit: Some("count".to_owned()), ..Seen::default() })
            }
            _ => Err(format!("no column {column} of both sides")),
        }
    }

    fn order(
        &self,
        expectation: &Expectation,
        sides: &[String],
        base: &str,
    ) -> Result<Found, String> {
        // The base's own value stands beside that of any other side.
        let other = sides.iter().find(|side| *side != base).map_or("", String::as_str);
        let mut unit = None;
        let mut values = Vec::new();
        for side in sides {
            let is_base = side == base;
            let seen = self.seen(expectation, if is_base { other } else { side })?;
            unit = seen.unit;
            values.push((side.clone(), if is_base { seen.base } else { seen.value }));
        }
        Ok(Found::Order(values, unit))
    }
}

/// Whether words are those of a series or its first ones.
fn is_start(words: &str, label: &str) -> bool {
    label.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn series(found: &Comparison) -> Result<Seen, String> {
    let word = found.exact.as_ref().and_then(|exact| exact.word).and_then(|word| written(&word));
    let outcomes: Vec<String> = word.into_iter().chain(written(&found.verdict)).collect();
    let (Some(base), Some(value)) = (found.base, found.value) else {
        // A side that fails is an outcome, too.
        let nothing = Seen { outcomes, base: f64::NAN, value: f64::NAN, ..Seen::default() };
        return Ok(nothing);
    };
    let unit = Some(found.unit.clone());
    Ok(Seen { outcomes, base, value, change: found.change, unit, calls: None })
}

/// A word as documents and JSON have it.
fn written(word: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(word).ok()?.as_str().map(str::to_owned)
}

fn count(found: &Comparison, name: &str) -> Result<Seen, String> {
    let exact = found.exact.as_ref().ok_or("only exact runs have counts")?;
    let all = || exact.classes.iter().chain(&exact.events).chain(&exact.contexts);
    let named: Option<&CountPair> = all().find(|pair| pair.name == name);
    let pair = named.ok_or_else(|| {
        let names: Vec<&str> = all().map(|pair| pair.name.as_str()).collect();
        format!("no count {name}; there are {}", names.join(", "))
    })?;
    Ok(Seen { base: pair.base, value: pair.value, ..Seen::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{ExactWord, MonitorKind, MonitorMean, MonitorRow, SeriesName, Verdict};
    use crate::plan::OUTCOMES;
    use kduel_protocol::Better;

    fn comparison(side: &str, value: f64, verdict: Verdict) -> Comparison {
        Comparison {
            series: SeriesName {
                experiment: "e".into(),
                workload: "fork-exit mappings=10".into(),
                metric: "time".into(),
            },
            side: side.into(),
            unit: "ns".into(),
            better: Better::Lower,
            primary: true,
            base: Some(100.0),
            value: Some(value),
            change: Some(value / 100.0 - 1.0),
            low: None,
            high: None,
            confidence: None,
            margin: 0.01,
            pairs: 6,
            dropped: 0,
            all_pairs: None,
            verdict,
            reason: String::new(),
            exact: None,
            timed: None,
        }
    }

    fn side(name: &str, outcomes: &[&str], change: Option<&str>) -> Wanted {
        Wanted::Side {
            side: name.into(),
            outcomes: outcomes.iter().map(|word| (*word).to_owned()).collect(),
            change: change.and_then(Range::parse),
            calls: None,
        }
    }

    fn held(wanted: Wanted, subject: Subject) -> (bool, Found) {
        let comparisons = [
            comparison("b", 110.0, Verdict::Regression),
            comparison("c", 120.0, Verdict::Inconclusive),
        ];
        let expectation =
            Expectation { experiment: "e".into(), workload: "fork-exit".into(), subject, wanted };
        let cells = [100.0, 110.0, 30.0].map(|mean| Some(MonitorMean { mean, spread: None }));
        let vmstat = MonitorTable {
            experiment: "e".into(),
            workload: "fork-exit mappings=10".into(),
            monitor: Monitor::Vmstat,
            kind: MonitorKind::Steady,
            sides: ["a", "b", "c"].map(str::to_owned).to_vec(),
            rows: vec![MonitorRow { name: "cs".into(), values: cells.to_vec() }],
            absent: Vec::new(),
            traces: Vec::new(),
        };
        let material = Material {
            comparisons: &comparisons,
            monitors: &[vmstat],
            profiles: &RunProfiles::default(),
        };
        let found = match &expectation.wanted {
            Wanted::Side { side, .. } => material.seen(&expectation, side).map(Found::from),
            Wanted::Order(sides) => material.order(&expectation, sides, "a"),
        };
        let found = found.unwrap_or_else(Found::Nothing);
        (holds(&expectation.wanted, &found), found)
    }

    #[test]
    fn verdict_and_range_both_count() {
        let of = |wanted| held(wanted, Subject::Metric(None)).0;
        assert!(of(side("b", &["no-change", "regression"], Some("+5%..+15%"))));
        assert!(of(side("b", &[], Some("5..15"))));
        assert!(!of(side("b", &["regression"], Some("..5%"))));
        assert!(!of(side("c", &["regression"], None)));
        assert!(!of(side("d", &[], Some("..5%"))));
    }

    #[test]
    fn an_order_takes_the_base_from_beside_any_side() {
        let of = |sides: &[&str]| {
            let sides = sides.iter().map(|side| (*side).to_owned()).collect();
            held(Wanted::Order(sides), Subject::Metric(Some("time".into()))).0
        };
        assert!(of(&["a", "b", "c"]) && of(&["b", "c"]));
        assert!(!of(&["a", "c", "b"]) && !of(&["b", "b"]) && !of(&["a", "x"]));
    }

    #[test]
    fn what_was_not_counted_is_nothing() {
        let counted = held(side("b", &[], Some("1..")), Subject::Count("locked".into()));
        assert_eq!(counted, (false, Found::Nothing("only exact runs have counts".into())));
        let function = held(side("b", &[], Some("1..")), Subject::Function("f".into()));
        assert_eq!(function, (false, Found::Nothing("no profile of b".into())));
    }

    #[test]
    fn a_monitors_column_is_seen_beside_the_bases() {
        let of = |name: &str, change: &str, column: &str| {
            held(side(name, &[], Some(change)), Subject::Column(Monitor::Vmstat, column.into()))
        };
        assert!(of("c", "-75%..-65%", "cs").0 && of("b", "10..10", "cs").0);
        assert!(!of("b", "-75%..-65%", "cs").0);
        let missing = Found::Nothing("no column us; there are cs".into());
        assert_eq!(of("c", "..0%", "us"), (false, missing));
        let order = Wanted::Order(["c", "a", "b"].map(str::to_owned).to_vec());
        assert!(held(order, Subject::Column(Monitor::Vmstat, "cs".into())).0);
    }

    #[test]
    fn every_outcome_can_be_wanted() {
        use {ExactWord as E, Verdict as V};
        let verdicts =
            [V::Regression, V::Improvement, V::NoChange, V::Inconclusive, V::Invalid, V::Fails];
        let words = [
            E::MoreInstructions,
            E::FewerInstructions,
            E::Equivalent,
            E::Identical,
            E::DependsOnCpu,
            E::NotExact,
        ];
        let all = verdicts.iter().filter_map(written).chain(words.iter().filter_map(written));
        assert_eq!(all.collect::<Vec<_>>(), OUTCOMES);
    }
}
