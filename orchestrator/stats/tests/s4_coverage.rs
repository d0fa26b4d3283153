//! S4: intervals hold the truth as often as they say, also when the run stopped because of them.

use kduel_stats::simulate::{Noise, World, table, tally};
use kduel_stats::{Mixture, Pair, Random, Rule, Walsh, student_interval};

#[test]
fn at_the_stopping_look() {
    for (index, row) in table().iter().enumerate() {
        let found = row.simulate(4000, 100 + index as u64);
        // 97 to 99 % by the method; four standard deviations of .97 and of .99 besides.
        assert!((0.959..=0.997).contains(&found.covered), "{row:?}: {found:?}");
    }
}

#[test]
fn at_one_look_exactly() {
    let (truth, runs) = (0.03, 4000);
    let world = World::plain(truth, Noise::Normal(0.02));
    let mut random = Random::new(1);
    for pairs in [6, 8, 12, 20] {
        let (mut rank, mut student, mut confidence) = (0, 0, 0.0);
        for _ in 0..runs {
            let pairs = world.pairs(pairs, &mut random);
            let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
            let covers = |i: kduel_stats::Interval| i.low <= truth && truth <= i.high;
            let interval = Walsh::new(&differences).unwrap().interval(0.05).unwrap().unwrap();
            confidence = interval.confidence;
            rank += u32::from(covers(interval));
            student += u32::from(covers(student_interval(&differences, 0.05).unwrap()));
        }
        let (rank, student) =
            (f64::from(rank) / f64::from(runs), f64::from(student) / f64::from(runs));
        // The rank interval's confidence is exact; 4.5 standard deviations of a rate near .95.
        let band = 4.5 * (0.05_f64 * 0.95 / f64::from(runs)).sqrt();
        assert!((rank - confidence).abs() < band, "{pairs} pairs: {rank}, said {confidence}");
        assert!((student - 0.95).abs() < band, "{pairs} pairs: {student}, Student");
    }
}

#[test]
fn a_sequence_holds_at_all_times_at_once() {
    let (truth, runs) = (0.03, 2000);
    let world = World::plain(truth, Noise::Normal(0.02));
    let mut random = Random::new(2);
    let mut always = 0;
    for _ in 0..runs {
        let pairs = world.pairs(200, &mut random);
        let differences: Vec<f64> = pairs.iter().map(Pair::difference).collect();
        always += u32::from((2..=differences.len()).all(|n| {
            let interval = Mixture::new(&differences[..n]).unwrap().interval(0.05).unwrap();
            interval.is_none_or(|i| i.low <= truth && truth <= i.high)
        }));
    }
    let rate = f64::from(always) / f64::from(runs);
    assert!(rate >= 0.95 - 4.0 * (0.05_f64 * 0.95 / f64::from(runs)).sqrt(), "{rate}");
}

#[test]
fn a_campaign_with_a_true_effect_beyond_the_margin_is_no_equivalence() {
    // The error of "no change" is bounded like that of a change.
    for (change, sd) in [(0.021, 0.01), (0.021, 0.02), (0.025, 0.03)] {
        let world = World::plain(change, Noise::Normal(sd));
        let found = tally(&world, 0.02, &Rule::planned(30), 3000, 5);
        assert!(found.no_change <= 0.05 + 0.018, "{change} {sd}: {found:?}");
    }
}
