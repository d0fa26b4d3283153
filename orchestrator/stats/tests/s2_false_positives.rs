//! S2: how often a difference is found where there is none, whatever its size.

use kduel_stats::simulate::{Mode, Noise, World, tally};
use kduel_stats::{Look, Looks, Rule, SignedRank, Statistic};

const NOISES: [(&str, Noise); 6] = [
    ("normal", Noise::Normal(0.02)),
    ("outliers", Noise::Outliers { sd: 0.01, share: 0.1, factor: 1.3 }),
    ("heavy tails", Noise::Heavy(0.02)),
    ("skewed", Noise::Skewed(0.02)),
    ("two layouts", Noise::Layouts(0.05)),
    ("coarse", Noise::Coarse(0.02)),
];

const MODES: [(&str, Mode); 3] = [
    ("duet", Mode::Duet { host_sd: 0.1 }),
    ("interleave", Mode::Interleave { drift: 0.0 }),
    ("interleave, drift", Mode::Interleave { drift: 0.005 }),
];

const CAMPAIGNS: usize = 2000;

/// So many standard deviations of a simulated rate are allowed.
const BAND: f64 = 4.5;

fn band(rate: f64) -> f64 {
    BAND * (rate * (1.0 - rate) / CAMPAIGNS as f64).sqrt()
}

fn alarms(noise: Noise, mode: Mode, rule: &Rule, seed: u64) -> f64 {
    tally(&World { effect: 0.0, noise, mode }, 0.0, rule, CAMPAIGNS, seed).flagged
}

/// What one look of the rank test really spends.
fn exact_level(look: &Look) -> f64 {
    let null = SignedRank::new(look.pairs);
    null.place(look.alpha).ok().flatten().map_or(0.0, |k| 1.0 - null.confidence(k))
}

#[test]
fn one_look_has_its_exact_level() {
    let mut seed = 0;
    for pairs in [6, 8] {
        let rule = Rule::planned(pairs);
        let level = exact_level(&rule.looks.all()[0]);
        for (name, noise) in NOISES {
            for (mode_name, mode) in MODES {
                seed += 1;
                let found = alarms(noise, mode, &rule, seed);
                let what = format!("{name}, {mode_name}, {pairs} pairs: {found}, level {level}");
                assert!(found <= level + band(level), "{what}");
                // Ties make it conservative, and a drift that alternates widens what is compared.
                let exact = name != "coarse" && mode_name != "interleave, drift";
                assert!(!exact || found >= level - band(level), "{what}");
            }
        }
    }
}

#[test]
fn the_looks_together_stay_within_five_percent() {
    let mut seed = 1000;
    for pairs in [12, 20, 30] {
        let rule = Rule::planned(pairs);
        let most: f64 = rule.looks.all().iter().map(exact_level).sum();
        assert!(most <= 0.05);
        for (name, noise) in NOISES {
            for (mode_name, mode) in MODES {
                seed += 1;
                let found = alarms(noise, mode, &rule, seed);
                let what = format!("{name}, {mode_name}, {pairs} pairs: {found}");
                assert!(found <= most + band(most), "{what}");
                let exact = name != "coarse" && mode_name != "interleave, drift";
                assert!(!exact || found >= 0.02, "{what}: too few to be a test");
            }
        }
    }
}

#[test]
fn student_and_welch_hold_for_normal_noise() {
    for statistic in [Statistic::PairedT, Statistic::Welch] {
        for (pairs, seed) in [(6, 1), (8, 2), (20, 3)] {
            let rule = Rule { statistic, looks: Looks::up_to(pairs) };
            let found = alarms(Noise::Normal(0.02), MODES[1].1, &rule, seed);
            assert!(found <= 0.05 + band(0.05), "{statistic:?}, {pairs} pairs: {found}");
            assert!(found >= 0.03, "{statistic:?}, {pairs} pairs: {found}");
        }
    }
    // What both boots share cancels in pairs and is noise for Welch's test: no alarms, no power.
    let rule = Rule { statistic: Statistic::Welch, looks: Looks::up_to(8) };
    assert!(alarms(Noise::Normal(0.02), MODES[0].1, &rule, 4) < 0.01);
}

#[test]
fn a_quick_run_has_five_percent() {
    let found = alarms(Noise::Normal(0.02), MODES[0].1, &Rule::quick(6), 1);
    assert!((found - 0.05).abs() <= band(0.05), "{found}");
}

#[test]
fn a_sequence_may_be_looked_at_after_every_pair() {
    for (noise, seed) in [(Noise::Normal(0.02), 1), (Noise::Coarse(0.02), 2)] {
        let found = alarms(noise, MODES[1].1, &Rule::anytime(30), seed);
        assert!(found <= 0.05 + band(0.05), "{noise:?}: {found}");
    }
}
