//! S8: data that no test was made for. A named verdict or a typed error, never a panic or a NaN.

use kduel_stats::{
    Better, Finding, Looks, Pair, Reason, Rule, Series, Statistic, StatsError, Summary, Verdict,
    boot_summary, judge,
};
use proptest::prelude::*;

const ALL: [Statistic; 4] =
    [Statistic::SignedRank, Statistic::PairedT, Statistic::Welch, Statistic::Anytime];

fn series(differences: &[Option<f64>]) -> Series {
    let pair = |(index, side): (usize, &Option<f64>)| {
        side.map(|side| Pair { base: 0.0, side, base_first: index % 2 == 0 })
    };
    let pairs = differences.iter().enumerate().map(pair).collect();
    Series { pairs, delta: 0.02, better: Better::Lower, primary: true }
}

fn judged(differences: &[f64], rule: &Rule, ended: bool) -> Finding {
    let differences: Vec<Option<f64>> = differences.iter().copied().map(Some).collect();
    judge(&[series(&differences)], rule, ended).remove(0)
}

fn rules() -> Vec<Rule> {
    let planned = ALL.map(|statistic| Rule { statistic, looks: Looks::planned() });
    let mut rules = planned.to_vec();
    rules.extend([Rule::quick(6), Rule::anytime(30), Rule::planned(8)]);
    rules
}

#[test]
fn values_that_are_all_equal() {
    for rule in rules() {
        let pairs = rule.looks.pairs();
        let same = judged(&vec![0.0; pairs], &rule, false);
        assert_eq!(same.verdict, Verdict::NoChange, "{rule:?}");
        assert_eq!(same.reason, Reason::Within { detectable: false }, "{rule:?}");
        let slower = judged(&vec![0.5; pairs], &rule, false);
        assert_eq!(slower.verdict, Verdict::Regression, "{rule:?}");
        assert_eq!(slower.interval.map(|i| (i.low, i.high)), Some((0.5, 0.5)));
        let small = judged(&vec![0.01; pairs], &rule, false);
        assert_eq!(small.reason, Reason::Within { detectable: true }, "{rule:?}");
    }
}

#[test]
fn what_is_no_number_is_invalid_and_spoils_no_other_series() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for rule in rules() {
            let mut values = vec![Some(0.5); 30];
            values[3] = Some(bad);
            let good = series(&[Some(0.5); 30]);
            let found = judge(&[series(&values), good.clone()], &rule, false);
            assert_eq!(found[0].verdict, Verdict::Invalid, "{rule:?}");
            assert_eq!(found[0].reason, Reason::Unusable(StatsError::NotFinite), "{rule:?}");
            assert_ne!(found[1].verdict, Verdict::Invalid);
        }
    }
}

#[test]
fn values_without_a_logarithm_never_get_as_far() {
    for bad in [0.0, -1.0] {
        let summary = boot_summary(&[1.0, bad, 2.0], 3, Summary::LogMean);
        assert_eq!(summary, Err(StatsError::NotPositive(bad)));
    }
}

#[test]
fn fewer_pairs_than_a_look_needs() {
    let rule = Rule::planned(30);
    let early = judged(&[0.5; 7], &rule, false);
    assert_eq!(early.verdict, Verdict::Inconclusive);
    assert_eq!((early.reason, early.look), (Reason::BeforeFirstLook { first: 8 }, None));
    assert_eq!(early.estimate, Some(0.5));
    let ended = judged(&[0.5; 7], &rule, true);
    assert_eq!(ended.verdict, Verdict::Inconclusive);
    assert_eq!(ended.reason, Reason::TooFew { needed: 8 });
    assert_eq!(judged(&[0.5; 8], &rule, false).verdict, Verdict::Regression);
    let none = judged(&[], &rule, false);
    assert_eq!((none.verdict, none.estimate), (Verdict::Inconclusive, None));
    let lost = judge(&[series(&[None; 8])], &rule, false).remove(0);
    let reason = Reason::Unusable(StatsError::TooFew { needed: 1, found: 0 });
    assert_eq!((lost.verdict, lost.reason), (Verdict::Invalid, reason));
    // One pair has no spread: Student's t waits.
    let one =
        judged(&[0.5], &Rule { statistic: Statistic::PairedT, looks: Looks::up_to(1) }, false);
    assert_eq!(one.reason, Reason::TooFew { needed: 2 });
    assert_eq!(judge(&[], &rule, false), []);
}

#[test]
fn dropped_pairs_leave_a_look_with_less() {
    let mut values = vec![Some(0.5); 12];
    values[2] = None;
    let found = judge(&[series(&values)], &Rule::planned(12), false).remove(0);
    assert_eq!((found.pairs, found.verdict), (11, Verdict::Regression));
    // At the first look of thirty pairs, seven are left where eight are needed.
    let found = judge(&[series(&values[..8])], &Rule::planned(30), false).remove(0);
    assert_eq!((found.pairs, found.reason), (7, Reason::TooFew { needed: 8 }));
}

#[test]
fn ties_and_zeros_are_conservative() {
    // Six up, one zero, one down: with the zero dropped a sign would be enough to mislead.
    let tied = [0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.0, -0.05];
    let found = judged(&tied, &Rule::planned(8), false);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(matches!(found.reason, Reason::Open { smallest, .. } if smallest >= 0.02), "{found:?}");
}

#[test]
fn open_questions_say_what_it_would_take() {
    let wide: Vec<f64> = (0..30).map(|i| f64::from(i * 7 % 30) / 100.0 - 0.145).collect();
    let found = judged(&wide, &Rule::planned(30), false);
    let Reason::Open { smallest, needed } = found.reason else { panic!("{found:?}") };
    assert_eq!(smallest, found.interval.unwrap().half_width());
    assert_eq!(needed, (30.0 * (smallest / 0.02).powi(2)).ceil());
    let near: Vec<f64> = (0..30).map(|i| 0.0199 + f64::from(i % 3 - 1) / 1000.0).collect();
    assert_eq!(judged(&near, &Rule::planned(30), false).reason, Reason::NearMargin);
}

proptest! {
    #[test]
    fn no_data_make_it_panic_or_answer_with_nan(
        values in prop::collection::vec(prop::collection::vec(prop::option::of(any::<f64>()), 0..40), 0..4),
        ended: bool,
    ) {
        let all: Vec<Series> = values.iter().map(|values| series(values)).collect();
        for rule in rules() {
            let found = judge(&all, &rule, ended);
            prop_assert_eq!(found.len(), all.len());
            for finding in &found {
                prop_assert!(finding.estimate.is_none_or(|estimate| !estimate.is_nan()));
                prop_assert!((0.0..=1.0).contains(&finding.p));
                let sound = |i: kduel_stats::Interval| i.low <= i.high;
                prop_assert!(finding.interval.is_none_or(sound));
            }
            rule.is_over(&all, &found);
        }
    }
}
