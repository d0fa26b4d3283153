//! What must not change a result: order of pairs, units, a shift common to both sides, swapped sides.

use kduel_stats::{Walsh, student_interval};
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
