//! S1: what the tables say. Unit tests count the same distributions one by one.

use kduel_stats::{Looks, Shift, SignedRank, student_interval};

#[test]
fn places_are_those_of_the_method() {
    let looks = Looks::planned();
    let places = |factor: f64| -> Vec<usize> {
        let place = |look: &kduel_stats::Look| {
            SignedRank::new(look.pairs).place(factor * look.alpha).unwrap().unwrap()
        };
        looks.all().iter().map(place).collect()
    };
    assert_eq!(places(1.0), [1, 8, 41, 116]);
    assert_eq!(places(2.0), [2, 11, 48, 128]);
}

#[test]
fn critical_values_of_the_signed_rank_test() {
    // Wilcoxon's T, two-sided, as in every textbook: reject at T or below.
    let five = [
        (6, 0),
        (7, 2),
        (8, 3),
        (9, 5),
        (10, 8),
        (12, 13),
        (15, 25),
        (20, 52),
        (25, 89),
        (30, 137),
    ];
    let one = [(8, 0), (9, 1), (10, 3), (12, 7), (15, 15), (20, 37), (25, 68), (30, 109)];
    for (alpha, table) in [(0.05, &five[..]), (0.01, &one[..])] {
        for (pairs, critical) in table {
            let place = SignedRank::new(*pairs).place(alpha).unwrap();
            assert_eq!(place, Some(critical + 1), "{pairs} pairs at {alpha}");
        }
    }
    assert_eq!(SignedRank::new(5).place(0.05), Ok(None));
    assert_eq!(SignedRank::new(7).place(0.01), Ok(None));
}

#[test]
fn critical_values_of_the_rank_sum_test() {
    // U for samples of n and n, two-sided 5 %.
    for (n, critical) in [(4, 0), (5, 2), (6, 5), (7, 8), (8, 13), (10, 23)] {
        // Differences are all distinct, so the lower end tells its place.
        let a: Vec<f64> = (0..n).map(|i| f64::from(i) * f64::from(n)).collect();
        let b: Vec<f64> = (0..n).map(f64::from).collect();
        let mut all: Vec<f64> = a.iter().flat_map(|a| b.iter().map(move |b| b - a)).collect();
        all.sort_by(f64::total_cmp);
        let low = Shift::new(&a, &b).unwrap().interval(0.05).unwrap().unwrap().low;
        assert_eq!(all.iter().position(|d| *d == low), Some(critical), "{n} and {n}");
    }
}

#[test]
fn quantiles_of_student_s_t() {
    let table = [
        (0.05, 1, 12.7062),
        (0.05, 5, 2.5706),
        (0.05, 7, 2.3646),
        (0.05, 11, 2.2010),
        (0.05, 19, 2.0930),
        (0.05, 29, 2.0452),
        (0.01, 5, 4.0321),
        (0.01, 29, 2.7564),
        (0.10, 5, 2.0150),
    ];
    for (alpha, freedom, quantile) in table {
        let values: Vec<f64> = (0..=freedom).map(f64::from).collect();
        let n = f64::from(freedom + 1);
        // The variance of 0..n is n(n + 1)/12.
        let error = ((n + 1.0) / 12.0).sqrt();
        let half = student_interval(&values, alpha).unwrap().half_width();
        assert!((half / error - quantile).abs() < 1e-4, "{freedom} at {alpha}: {}", half / error);
    }
}
