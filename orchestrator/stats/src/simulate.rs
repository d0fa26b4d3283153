//! Simulated campaigns: how often the procedure says what it should, and what a worse one would say.
//! Boots are drawn one by one for either side; what both boots of a pair share is drawn once.

use crate::judge::{Rule, Series, judge};
use crate::looks::{Look, Looks};
use crate::verdict::{Better, Verdict};
use crate::{Interval, Pair, Random};

/// How boots differ from each other though nothing else does. Standard deviations are of one boot, on
/// the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Normal.
    Normal(f64),
    /// Normal, and with probability `share` slower by `factor`.
    Outliers {
        /// Of the normal part.
        sd: f64,
        /// How often a boot is slow.
        share: f64,
        /// 1.3: by 30 %.
        factor: f64,
    },
    /// Student's t with three degrees of freedom, times this.
    Heavy(f64),
    /// Exponential: boots are rarely slow, never fast.
    Skewed(f64),
    /// Two layouts, equally likely, so far apart, with normal noise of a tenth of that.
    Layouts(f64),
    /// Normal, in steps of the same size: ties and zeros.
    Coarse(f64),
}

impl Noise {
    /// One boot's deviation.
    pub fn draw(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Normal(sd) => sd * random.normal(),
            Self::Outliers { sd, share, factor } => {
                let slow = if random.chance(share) { factor.ln() } else { 0.0 };
                slow + sd * random.normal()
            }
            Self::Heavy(scale) => {
                let square = |random: &mut Random| random.normal().powi(2);
                let chi: f64 = (0..3).map(|_| square(random)).sum();
                scale * random.normal() / (chi / 3.0).sqrt()
            }
            Self::Skewed(sd) => -sd * (1.0 - random.uniform()).ln(),
            Self::Layouts(apart) => {
                let layout = if random.chance(0.5) { apart } else { 0.0 };
                layout + apart / 10.0 * random.normal()
            }
            Self::Coarse(sd) => sd * random.normal().round(),
        }
    }
}

/// How the two boots of a pair lie to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// At the same time: both have the host's state, which differs from pair to pair with this
    /// standard deviation, in common.
    Duet {
        /// On the log scale.
        host_sd: f64,
    },
    /// One after the other, in permuted blocks of two pairs, while the host gets slower by this much
    /// from one boot to the next.
    Interleave {
        /// On the log scale.
        drift: f64,
    },
}

/// One series of one run, with everything about it known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    /// The true effect, on the log scale.
    pub effect: f64,
    /// Of each boot.
    pub noise: Noise,
    /// Of each pair.
    pub mode: Mode,
}

impl World {
    /// As the table of the method has it: no drift, nothing in common.
    pub fn plain(effect: f64, noise: Noise) -> Self {
        Self { effect, noise, mode: Mode::Interleave { drift: 0.0 } }
    }

    /// So many pairs, in schedule order.
    pub fn pairs(&self, count: usize, random: &mut Random) -> Vec<Pair> {
        let mut first = false;
        let mut pairs = Vec::with_capacity(count);
        for index in 0..count {
            // Blocks of two pairs: either order first, then the other.
            first = if index % 2 == 0 { random.chance(0.5) } else { !first };
            let boot = |random: &mut Random| self.noise.draw(random);
            let (base, side) = (boot(random), self.effect + boot(random));
            let (base, side) = match self.mode {
                Mode::Duet { host_sd } => {
                    let common = host_sd * random.normal();
                    (base + common, side + common)
                }
                Mode::Interleave { drift } => {
                    let at = |second| drift * (2 * index + usize::from(second)) as f64;
                    (base + at(!first), side + at(first))
                }
            };
            pairs.push(Pair { base, side, base_first: first });
        }
        pairs
    }
}

/// How one simulated run of one series ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// What was said.
    pub verdict: Verdict,
    /// When it stopped.
    pub look: Look,
    /// At that look, on the log scale.
    pub estimate: f64,
    /// At that look.
    pub interval: Option<Interval>,
}

/// Draws one run and stops it when its rule says so. `None` only for a rule without looks.
pub fn campaign(world: &World, delta: f64, rule: &Rule, random: &mut Random) -> Option<Outcome> {
    let pairs: Vec<Option<Pair>> =
        world.pairs(rule.looks.pairs(), random).into_iter().map(Some).collect();
    let mut outcome = None;
    for look in rule.looks.all() {
        let pairs = pairs[..look.pairs].to_vec();
        let series = Series { pairs, delta, better: Better::Lower, primary: true };
        let found = judge(&[series], rule, false).pop()?;
        outcome = Some(Outcome {
            verdict: found.verdict,
            look: *look,
            estimate: found.estimate?,
            interval: found.interval,
        });
        if found.verdict.is_decided() {
            break;
        }
    }
    outcome
}

/// What many runs came to: parts of all, between 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    /// Regressions and improvements.
    pub flagged: f64,
    /// Shown equivalent.
    pub no_change: f64,
    /// Neither.
    pub inconclusive: f64,
    /// Flagged in the direction opposite to the true effect, where there is one.
    pub wrong: f64,
    /// Intervals at the stopping look that hold the true effect.
    pub covered: f64,
    /// Pairs at the stop, on average.
    pub pairs: f64,
}

/// Draws `campaigns` runs.
pub fn tally(world: &World, delta: f64, rule: &Rule, campaigns: usize, seed: u64) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let one = 1.0 / campaigns.max(1) as f64;
    for outcome in (0..campaigns).filter_map(|_| campaign(world, delta, rule, &mut random)) {
        match outcome.verdict {
            Verdict::Regression | Verdict::Improvement => tally.flagged += one,
            Verdict::NoChange => tally.no_change += one,
            Verdict::Inconclusive | Verdict::Invalid => tally.inconclusive += one,
        }
        let wrong = match outcome.verdict {
            Verdict::Regression => world.effect < 0.0,
            Verdict::Improvement => world.effect > 0.0,
            _ => false,
        };
        tally.wrong += if wrong { one } else { 0.0 };
        let holds =
            |interval: Interval| interval.low <= world.effect && world.effect <= interval.high;
        tally.covered += if outcome.interval.is_some_and(holds) { one } else { 0.0 };
        tally.pairs += one * outcome.look.pairs as f64;
    }
    tally
}

/// A row of the method's table: what is simulated, and what it must come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// As a change: .03 is +3 %.
    pub change: f64,
    /// In words.
    pub words: &'static str,
    /// Of one boot.
    pub noise: Noise,
    /// Flagged, no change, inconclusive, mean pairs.
    pub expected: [f64; 4],
}

/// The margin of the table, on the log scale.
pub const TABLE_DELTA: f64 = 0.02;

/// Rates of the table are to be met within this, mean pairs within [`TABLE_PAIRS`].
pub const TABLE_RATE: f64 = 0.03;

/// See [`TABLE_RATE`].
pub const TABLE_PAIRS: f64 = 0.5;

/// Standard deviations of the table are of a pair's difference; each of two boots has this part.
const OF_PAIR: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// The table of the method.
pub fn table() -> [Row; 7] {
    let normal = |sd: f64| Noise::Normal(sd * OF_PAIR);
    let outliers = Noise::Outliers { sd: 0.014 * OF_PAIR, share: 0.1, factor: 1.3 };
    let row = |change, words, noise, expected| Row { change, words, noise, expected };
    [
        row(0.0, "normal, sd 2 %", normal(0.02), [0.001, 0.998, 0.001, 15.7]),
        row(0.0, "normal, sd 4 %", normal(0.04), [0.024, 0.365, 0.611, 28.7]),
        row(0.0, "sd 1.4 %, 10 % of boots +30 %", outliers, [0.005, 0.791, 0.204, 23.4]),
        row(0.02, "normal, sd 2 %", normal(0.02), [0.671, 0.036, 0.293, 18.9]),
        row(0.03, "normal, sd 2 %", normal(0.02), [0.998, 0.0, 0.002, 10.5]),
        row(0.03, "normal, sd 4 %", normal(0.04), [0.910, 0.002, 0.088, 19.3]),
        row(0.03, "sd 1.4 %, 10 % of boots +30 %", outliers, [0.907, 0.0, 0.093, 16.9]),
    ]
}

impl Row {
    /// The row, simulated.
    pub fn simulate(&self, campaigns: usize, seed: u64) -> Tally {
        let rule = Rule::planned(Looks::planned().pairs());
        let world = World::plain(self.change.ln_1p(), self.noise);
        tally(&world, TABLE_DELTA, &rule, campaigns, seed)
    }

    /// Whether what was measured is what is expected.
    pub fn is_met(&self, found: &Tally) -> bool {
        let [flagged, no_change, inconclusive, pairs] = self.expected;
        let rates = [
            (found.flagged, flagged),
            (found.no_change, no_change),
            (found.inconclusive, inconclusive),
        ];
        rates.iter().all(|(found, expected)| (found - expected).abs() <= TABLE_RATE)
            && (found.pairs - pairs).abs() <= TABLE_PAIRS
    }
}
