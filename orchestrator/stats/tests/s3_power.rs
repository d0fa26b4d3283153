//! S3: the table of the method, and how often a change is seen.

use kduel_stats::simulate::{Noise, World, table, tally};
use kduel_stats::{Looks, Rule, Statistic};

#[test]
fn the_table_is_met() {
    for (index, row) in table().iter().enumerate() {
        let found = row.simulate(10_000, index as u64 + 1);
        assert!(row.is_met(&found), "{row:?}: {found:?}");
        assert!(found.wrong <= 0.0004, "{row:?}: {found:?}");
    }
}

#[test]
fn larger_changes_are_seen_more_often_and_noisier_ones_less() {
    let flagged = |change: f64, sd| {
        let world = World::plain(change.ln_1p(), Noise::Normal(sd));
        tally(&world, 0.02, &Rule::planned(30), 1000, 1).flagged
    };
    for sd in [0.01, 0.02, 0.03] {
        let row = [0.0, 0.02, 0.03, 0.05, 0.10].map(|change| flagged(change, sd));
        assert!(row.windows(2).all(|two| two[0] <= two[1] + 0.01), "sd {sd}: {row:?}");
        assert!(row[0] < 0.05 && row[4] > 0.99, "sd {sd}: {row:?}");
    }
    for change in [0.03, 0.05] {
        let column = [0.01, 0.02, 0.03, 0.05].map(|sd| flagged(change, sd));
        assert!(column.windows(2).all(|two| two[0] + 0.01 >= two[1]), "{change}: {column:?}");
    }
    let down = World::plain(0.97_f64.ln(), Noise::Normal(0.014));
    let found = tally(&down, 0.02, &Rule::planned(30), 1000, 2);
    assert!(found.flagged > 0.95 && found.wrong == 0.0, "{found:?}");
}

#[test]
fn boots_that_are_slow_now_and_then_hide_a_change_from_student_only() {
    let noise = Noise::Outliers { sd: 0.01, share: 0.1, factor: 1.3 };
    let world = World::plain(1.03_f64.ln(), noise);
    let flagged = |statistic| {
        let rule = Rule { statistic, looks: Looks::planned() };
        tally(&world, 0.02, &rule, 1000, 3).flagged
    };
    let (rank, student) = (flagged(Statistic::SignedRank), flagged(Statistic::PairedT));
    assert!(rank > 0.85, "{rank}");
    // The method says 33 %.
    assert!((0.2..0.5).contains(&student), "{student}");
}

#[test]
fn a_sequence_pays_for_its_freedom_with_pairs() {
    let world = World::plain(1.05_f64.ln(), Noise::Normal(0.014));
    let planned = tally(&world, 0.02, &Rule::planned(30), 1000, 4);
    let anytime = tally(&world, 0.02, &Rule::anytime(30), 1000, 4);
    assert!(planned.flagged > 0.99 && anytime.flagged > 0.99, "{planned:?} {anytime:?}");
}
