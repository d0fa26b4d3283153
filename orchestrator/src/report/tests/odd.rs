//! Stored runs that no guest should give: a named verdict in every format, never a panic.

use super::*;
use crate::analyse::Verdict;
use crate::report::{Beside, changelog, csv, html, junit, ktap, mail};
use kduel_protocol::Better;

/// Every format of what follows from the records; gives the primary verdict and its reason.
fn every_format(plan: &Plan, records: &[BootRecord]) -> (Verdict, String) {
    let (info, analysis) = (info(), analyse(plan, records));
    let report =
        Report { info: &info, plan, analysis: &analysis, profiles: &RunProfiles::default() };
    let all = [
        text(&report, Look::default()),
        html(&report, &Beside::default()),
        json(&report),
        csv(&report),
        mail(&report, records),
        changelog(&report),
        junit(&report),
        ktap(&report),
    ];
    for shown in &all {
        assert!(!shown.contains("NaN") && !shown.contains("null %"), "{shown}");
    }
    let found = analysis.comparisons.iter().find(|found| found.primary).unwrap();
    (found.verdict, found.reason.clone())
}

fn spoiled(spoil: impl Fn(&mut BootRecord)) -> (Verdict, String) {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &SLOWER);
    records.iter_mut().filter(|record| record.side == "patched").for_each(spoil);
    every_format(&plan, &records)
}

fn values(value: f64) -> impl Fn(&mut BootRecord) {
    move |record| result_mut(record).samples.iter_mut().for_each(|sample| sample.value = value)
}

#[test]
fn timed_values_that_have_no_logarithm_are_named() {
    for (value, why) in [
        (f64::NAN, "patched: a value is not a finite number"),
        (f64::INFINITY, "patched: a value is not a finite number"),
        (0.0, "patched: a value of 0 has no ratio to another"),
        (-1.0, "patched: a value of -1 has no ratio to another"),
    ] {
        assert_eq!(spoiled(values(value)), (Verdict::Invalid, why.to_owned()));
    }
    for value in [1e308, 5e-324] {
        let (verdict, reason) = spoiled(values(value));
        assert!(!reason.is_empty(), "{value}: {verdict:?}");
    }
}

#[test]
fn equal_values_are_no_change_and_one_pair_is_inconclusive() {
    let plan = plan(&["base", "patched"], 8);
    let mut records = pairs("patched", &[1.0; 8]);
    records.iter_mut().for_each(values(1000.0));
    assert_eq!(every_format(&plan, &records).0, Verdict::NoChange);
    records.truncate(2);
    let (verdict, reason) = every_format(&plan, &records);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(reason.starts_with("1 pair so far"), "{reason}");
}

#[test]
fn metrics_units_and_places_that_do_not_fit_are_named() {
    let unit = |record: &mut BootRecord| {
        result_mut(record).samples.iter_mut().for_each(|sample| sample.unit = "s".into());
    };
    let (verdict, reason) = spoiled(unit);
    assert_eq!(verdict, Verdict::Invalid);
    assert!(reason.contains("unit or direction is not the metric's: s, wanted ns"), "{reason}");
    let turned = |record: &mut BootRecord| {
        result_mut(record).samples.iter_mut().for_each(|sample| sample.better = Better::Higher);
    };
    assert_eq!(spoiled(turned).0, Verdict::Invalid);
    let (verdict, reason) = spoiled(|record| result_mut(record).samples.clear());
    assert_eq!(verdict, Verdict::Invalid);
    assert!(reason.contains("patched gave no time"), "{reason}");
    // Records of blocks, trials and sides that are not in the plan.
    assert_eq!(spoiled(|record| record.block += 1_000_000).0, Verdict::Invalid);
    let trial = |record: &mut BootRecord| {
        result_mut(record).samples.iter_mut().for_each(|sample| sample.trial = u32::MAX);
    };
    assert_eq!(spoiled(trial).0, Verdict::Invalid);
    assert_eq!(spoiled(|record| record.side = "other".into()).0, Verdict::Invalid);
}

#[test]
fn exact_values_that_are_none_are_named() {
    let of = |value: f64| {
        let base = exact_boot("base", 142_510.0, 14);
        every_format(&exact_plan(), &[base.clone(), exact_boot("patched", value, 14), again(&base)])
    };
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let (verdict, reason) = of(value);
        assert!(matches!(verdict, Verdict::Invalid | Verdict::Inconclusive), "{value}: {reason}");
        assert!(!reason.is_empty());
    }
    assert_eq!(of(-5.0).0, Verdict::Improvement, "a count cannot be so, but it is less");
    let base = exact_boot("base", -1.0, 14);
    let records = [base.clone(), exact_boot("patched", 5.0, 14), again(&base)];
    every_format(&exact_plan(), &records);
    let mut windows = exact_boot("patched", 1.0, 14);
    for window in &mut result_mut(&mut windows).windows {
        (window.ops, window.total) = (0, u64::MAX / 2);
    }
    let base = exact_boot("base", 1.0, 14);
    every_format(&exact_plan(), &[base.clone(), windows, again(&base)]);
}
