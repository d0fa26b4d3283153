//! S7: what must not change a result: order of pairs, units, a shift common to both sides, swapped sides.

use kduel_stats::{
    Better, Finding, Looks, Pair, Rule, Series, Statistic, Verdict, Walsh, judge, student_interval,
};
use proptest::prelude::*;

/// Differences on a grid, so that ties and zeros happen and sums are exact.
fn differences() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-64_i32..=64).prop_map(|d| f64::from(d) / 64.0), 1..=30)
}

proptest! {
    #[test]
    fn swapping_sides_negates(d in differences(), alpha in 0.001..0.5) {
        let swapped: Vec<f64> = d.iter().map(|x| -x).collect();
        let (a, b) = (Walsh::new(&d).unwrap(), Walsh::new(&swapped).unwrap());
        prop_assert_eq!(a.estimate(), -b.estimate());
        prop_assert_eq!(a.p_value(), b.p_value());
        let (a, b) = (a.interval(alpha).unwrap(), b.interval(alpha).unwrap());
        prop_assert_eq!(a.map(|i| (i.low, i.high)), b.map(|i| (-i.high, -i.low)));
    }

    #[test]
    fn order_of_pairs_changes_nothing(
        (d, shuffled) in differences().prop_flat_map(|d| (Just(d.clone()), Just(d).prop_shuffle())),
    ) {
        prop_assert_eq!(Walsh::new(&d).unwrap(), Walsh::new(&shuffled).unwrap());
    }

    #[test]
    fn a_shift_moves_estimate_and_interval_by_itself(d in differences(), by in -8_i32..=8) {
        let by = f64::from(by);
        let moved: Vec<f64> = d.iter().map(|x| x + by).collect();
        let (a, b) = (Walsh::new(&d).unwrap(), Walsh::new(&moved).unwrap());
        prop_assert_eq!(a.estimate() + by, b.estimate());
        let (a, b) = (a.interval(0.05).unwrap(), b.interval(0.05).unwrap());
        prop_assert_eq!(a.map(|i| (i.low + by, i.high + by)), b.map(|i| (i.low, i.high)));
    }

    #[test]
    fn p_is_the_dual_of_the_interval(d in differences(), alpha in 0.001..0.999) {
        let walsh = Walsh::new(&d).unwrap();
        let excludes = walsh.interval(alpha).unwrap().is_some_and(|i| i.excludes_zero());
        // Above 1/2 the two ends may meet in the middle; the duality is for levels in use.
        prop_assume!(alpha <= 0.5);
        prop_assert_eq!(walsh.p_value() <= alpha, excludes);
    }

    #[test]
    fn intervals_hold_the_estimate_and_at_least_their_confidence(
        d in differences(),
        alpha in 0.001..0.999,
    ) {
        let walsh = Walsh::new(&d).unwrap();
        if let Some(interval) = walsh.interval(alpha).unwrap() {
            prop_assert!(interval.low <= walsh.estimate() && walsh.estimate() <= interval.high);
            prop_assert!(interval.confidence >= 1.0 - alpha - 1e-12);
        }
    }

    #[test]
    fn student_swaps_like_the_ranks(d in differences()) {
        prop_assume!(d.len() >= 2);
        let swapped: Vec<f64> = d.iter().map(|x| -x).collect();
        let (a, b) = (student_interval(&d, 0.05).unwrap(), student_interval(&swapped, 0.05).unwrap());
        prop_assert!((a.low + b.high).abs() < 1e-9 && (a.high + b.low).abs() < 1e-9);
    }
}

/// Boot summaries on a grid, so that sums are exact, for the last of the planned looks.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let on_grid = || (-64_i32..=64).prop_map(|value| f64::from(value) / 1024.0);
    let pair = (on_grid(), on_grid(), any::<bool>());
    let pair = pair.prop_map(|(base, side, base_first)| Pair { base, side, base_first });
    prop::collection::vec(pair, 30)
}

const PAIRED: [Statistic; 3] = [Statistic::SignedRank, Statistic::PairedT, Statistic::Anytime];

fn found(pairs: &[Pair], statistic: Statistic) -> Finding {
    let pairs = pairs.iter().copied().map(Some).collect();
    let series = Series { pairs, delta: 0.02, better: Better::Lower, primary: true };
    judge(&[series], &Rule { statistic, looks: Looks::planned() }, false).remove(0)
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b).is_some_and(|(a, b)| (a - b).abs() < 1e-9)
}

proptest! {
    #[test]
    fn swapped_sides_mirror_the_verdict(pairs in pairs()) {
        let swap = |p: &Pair| Pair { base: p.side, side: p.base, base_first: !p.base_first };
        let swapped: Vec<Pair> = pairs.iter().map(swap).collect();
        for statistic in [PAIRED[0], PAIRED[1], PAIRED[2], Statistic::Welch] {
            let (there, back) = (found(&pairs, statistic), found(&swapped, statistic));
            let mirrored = match back.verdict {
                Verdict::Improvement => Verdict::Regression,
                Verdict::Regression => Verdict::Improvement,
                other => other,
            };
            prop_assert_eq!(there.verdict, mirrored);
            prop_assert!(close(there.estimate, back.estimate.map(|estimate| -estimate)));
            prop_assert!((there.p - back.p).abs() < 1e-9);
            let (low, high) = (there.interval.map(|i| i.low), back.interval.map(|i| -i.high));
            prop_assert!(low == high || close(low, high));
        }
    }

    #[test]
    fn another_unit_changes_nothing(pairs in pairs(), exponent in -40_i32..40) {
        // Powers of two, whose logarithms still differ from the sums by a rounding.
        let factor = f64::from(exponent) * std::f64::consts::LN_2;
        let scale = |p: &Pair| Pair { base: p.base + factor, side: p.side + factor, ..*p };
        let scaled: Vec<Pair> = pairs.iter().map(scale).collect();
        for statistic in [Statistic::PairedT, Statistic::Welch, Statistic::Anytime] {
            let (a, b) = (found(&pairs, statistic), found(&scaled, statistic));
            prop_assert!(close(a.estimate, b.estimate));
            prop_assert!((a.p - b.p).abs() < 1e-6);
        }
        let (a, b) = (found(&pairs, PAIRED[0]), found(&scaled, PAIRED[0]));
        prop_assert!(close(a.estimate, b.estimate));
        prop_assert!(close(a.interval.map(|i| i.low), b.interval.map(|i| i.low)));
    }

    #[test]
    fn what_both_boots_of_a_pair_share_changes_nothing(
        pairs in pairs(),
        shared in prop::collection::vec(-8_i32..8, 30),
    ) {
        let add = |(p, c): (&Pair, &i32)| {
            let c = f64::from(*c);
            Pair { base: p.base + c, side: p.side + c, ..*p }
        };
        let moved: Vec<Pair> = pairs.iter().zip(&shared).map(add).collect();
        for statistic in PAIRED {
            prop_assert_eq!(found(&pairs, statistic), found(&moved, statistic));
        }
    }

    #[test]
    fn the_order_of_pairs_within_a_look_changes_nothing(
        (pairs, shuffled) in pairs().prop_flat_map(|p| {
            (Just(p[..8].to_vec()), Just(p[..8].to_vec()).prop_shuffle())
        }),
    ) {
        let one_look = |pairs: &[Pair], statistic| {
            let pairs = pairs.iter().copied().map(Some).collect();
            let series = Series { pairs, delta: 0.02, better: Better::Lower, primary: true };
            let rule = Rule { statistic, looks: Looks::up_to(8) };
            judge(&[series], &rule, false).remove(0)
        };
        for statistic in [PAIRED[0], PAIRED[1], PAIRED[2], Statistic::Welch] {
            let (a, b) = (one_look(&pairs, statistic), one_look(&shuffled, statistic));
            prop_assert_eq!(a.verdict, b.verdict);
            prop_assert!(close(a.estimate, b.estimate) && (a.p - b.p).abs() < 1e-9);
        }
    }

    #[test]
    fn the_other_direction_of_better_swaps_the_words_only(pairs in pairs()) {
        let of = |better| {
            let pairs = pairs.iter().copied().map(Some).collect();
            let series = Series { pairs, delta: 0.02, better, primary: true };
            judge(&[series], &Rule::planned(30), false).remove(0)
        };
        let (lower, higher) = (of(Better::Lower), of(Better::Higher));
        prop_assert_eq!(lower.estimate, higher.estimate);
        prop_assert_eq!(lower.interval, higher.interval);
        prop_assert_eq!(lower.verdict == Verdict::Regression, higher.verdict == Verdict::Improvement);
        prop_assert_eq!(lower.verdict == Verdict::NoChange, higher.verdict == Verdict::NoChange);
    }
}
