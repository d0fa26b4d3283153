//! S6: many series at once, correlated.

use kduel_stats::{Better, Finding, Pair, Random, Rule, Series, Verdict, Walsh, judge};

/// Series of one run.
#[derive(Clone, Copy)]
struct Grid {
    series: usize,
    /// This many of them, the first, really change.
    changed: usize,
    /// By this, on the log scale.
    effect: f64,
    /// Correlation of the pair differences of any two series.
    correlation: f64,
    delta: f64,
}

impl Grid {
    /// Pair differences have a standard deviation of 2 %.
    fn draw(&self, pairs: usize, random: &mut Random) -> Vec<Series> {
        let mut all = vec![Vec::with_capacity(pairs); self.series];
        for _ in 0..pairs {
            let common = self.correlation.sqrt() * random.normal();
            for (index, own) in all.iter_mut().enumerate() {
                let noise = common + (1.0 - self.correlation).sqrt() * random.normal();
                let side = self.truth(index) + 0.02 * noise;
                own.push(Some(Pair { base: 0.0, side, base_first: false }));
            }
        }
        let series =
            |pairs| Series { pairs, delta: self.delta, better: Better::Lower, primary: true };
        all.into_iter().map(series).collect()
    }

    fn truth(&self, index: usize) -> f64 {
        if index < self.changed { self.effect } else { 0.0 }
    }
}

/// One run, stopped when its rule says so.
fn run(grid: &Grid, rule: &Rule, random: &mut Random) -> Vec<Finding> {
    let all = grid.draw(rule.looks.pairs(), random);
    let mut findings = Vec::new();
    for look in rule.looks.all() {
        let mut seen = all.clone();
        seen.iter_mut().for_each(|series| series.pairs.truncate(look.pairs));
        findings = judge(&seen, rule, false);
        if rule.is_over(&seen, &findings) {
            break;
        }
    }
    findings
}

fn flagged(finding: &Finding) -> bool {
    matches!(finding.verdict, Verdict::Regression | Verdict::Improvement)
}

/// Mean parts over runs.
#[derive(Debug, Default)]
struct Rates {
    /// Of the flagged series, those that do not change.
    false_discoveries: f64,
    /// Of the flagged series, those whose interval misses the truth.
    uncovered: f64,
    /// Of the changed series, those that were flagged.
    found: f64,
    /// Of the runs, those that flag anything.
    any: f64,
}

fn rates(grid: &Grid, runs: usize, seed: u64) -> Rates {
    let (mut random, rule) = (Random::new(seed), Rule::planned(30));
    let (mut rates, one) = (Rates::default(), 1.0 / runs as f64);
    for _ in 0..runs {
        let findings = run(grid, &rule, &mut random);
        let claims: Vec<usize> = (0..grid.series).filter(|i| flagged(&findings[*i])).collect();
        let part = |holds: &dyn Fn(usize) -> bool| {
            claims.iter().filter(|i| holds(**i)).count() as f64 / claims.len().max(1) as f64
        };
        let misses = |index: usize| {
            let truth = grid.truth(index);
            findings[index].interval.is_none_or(|i| truth < i.low || truth > i.high)
        };
        rates.false_discoveries += one * part(&|index| index >= grid.changed);
        rates.uncovered += one * part(&misses);
        let found = claims.iter().filter(|index| **index < grid.changed).count();
        rates.found += one * found as f64 / grid.changed.max(1) as f64;
        rates.any += if claims.is_empty() { 0.0 } else { one };
    }
    rates
}

#[test]
fn false_discoveries_stay_below_five_percent() {
    let runs = 200;
    // Four standard deviations of a run's rate, which is below that of a coin with 5 %.
    let most = 0.05 + 4.0 * (0.05_f64 * 0.95 / runs as f64).sqrt();
    let mut seed = 0;
    for (series, changed) in [(5, 0), (5, 1), (20, 0), (20, 4), (40, 10)] {
        for correlation in [0.0, 0.7] {
            for delta in [0.0, 0.01] {
                seed += 1;
                let grid = Grid { series, changed, effect: 0.03, correlation, delta };
                let found = rates(&grid, runs, seed);
                let what = format!("{series} {changed} {correlation} {delta}: {found:?}");
                assert!(found.false_discoveries <= most, "{what}");
                assert!(found.uncovered <= most, "{what}");
                assert!(changed == 0 || found.found > 0.9, "{what}");
            }
        }
    }
}

#[test]
fn without_correction_most_runs_of_forty_raise_an_alarm() {
    let grid = Grid { series: 40, changed: 0, effect: 0.0, correlation: 0.0, delta: 0.0 };
    let (runs, mut random) = (400, Random::new(1));
    let significant = |series: &Series| {
        let differences: Vec<f64> = series.pairs.iter().flatten().map(Pair::difference).collect();
        Walsh::new(&differences).is_ok_and(|walsh| walsh.p_value() <= 0.05)
    };
    let alone = (0..runs).filter(|_| grid.draw(20, &mut random).iter().any(significant)).count();
    let alone = alone as f64 / f64::from(runs);
    // The method says 87 %; four standard deviations.
    assert!((alone - 0.87).abs() < 0.07, "{alone}");
    let corrected = rates(&grid, 400, 1).any;
    assert!(corrected < 0.05 + 0.044, "{corrected}");
}

#[test]
fn equivalences_are_a_family_of_their_own() {
    // Four of five really change by just the margin: to be shown equal is what must stay rare.
    let grid = Grid { series: 5, changed: 4, effect: 0.02, correlation: 0.3, delta: 0.02 };
    let (mut random, rule, runs) = (Random::new(2), Rule::planned(30), 600);
    let mut wrong = 0.0;
    for _ in 0..runs {
        let findings = run(&grid, &rule, &mut random);
        let equal = |index: &usize| findings[*index].verdict == Verdict::NoChange;
        let claims = (0..5).filter(equal).count();
        wrong += (0..4).filter(equal).count() as f64 / claims.max(1) as f64 / f64::from(runs);
    }
    assert!(wrong <= 0.05 + 0.036, "{wrong}");
}

#[test]
fn secondary_series_never_hold_a_run_up_nor_cost_the_primary_ones_anything() {
    let mut random = Random::new(3);
    let rule = Rule::planned(30);
    let grid = Grid { series: 21, changed: 1, effect: 0.03, correlation: 0.0, delta: 0.02 };
    let mut series = grid.draw(30, &mut random);
    series[1..].iter_mut().for_each(|series| series.primary = false);
    let alone = judge(&series[..1], &rule, false);
    let together = judge(&series, &rule, false);
    assert_eq!(alone[0], together[0]);
    series.iter_mut().for_each(|series| series.pairs.truncate(20));
    series[20].pairs[0] = None;
    let findings = judge(&series, &rule, false);
    assert_eq!(rule.is_over(&series, &findings), findings[0].verdict.is_decided());
}
