//! How many pairs, how many iterations, and what change they could show.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::error::{StatsError, check, check_alpha};
use crate::looks::Looks;
use crate::summary::{mean, variance};

/// Variances of iterations and of boots, on the log scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Of iterations within a boot.
    pub iteration: f64,
    /// Of boots, without what their iterations add.
    pub boot: f64,
}

/// What each level adds by itself, from the lowest up: T_1² = S_1², T_i² = S_i² - S_(i-1)²/r_(i-1),
/// at least 0 (the corrected formula of Kalibera and Jones). `squares` are the S_i², the variances of
/// means at each level about the mean one level up; `repetitions` the r_i, how many of a level make
/// one of the next, one fewer.
///
/// # Errors
///
/// `NotFinite`, `BadArgument` if the lengths do not fit or a repetition is below 1.
pub fn variance_components(squares: &[f64], repetitions: &[f64]) -> Result<Vec<f64>, StatsError> {
    check(squares, 1)?;
    check(repetitions, 0)?;
    if repetitions.len() + 1 != squares.len() || repetitions.iter().any(|r| *r < 1.0) {
        return Err(StatsError::BadArgument);
    }
    let above = squares[1..].iter().zip(squares).zip(repetitions);
    let own = above.map(|((own, below), r)| (own - below / r).max(0.0));
    Ok(std::iter::once(squares[0]).chain(own).collect())
}

/// The best number of repetitions at a level: ⌈√((c_(i+1)/c_i) (T_i²/T_(i+1)²))⌉, at least 1 and at
/// most `most`, which it also is where the level above adds nothing. `cost` and `cost_above` are what
/// one repetition takes at either level, `own` and `above` what each adds to the variance.
pub fn best_repetitions(cost: f64, cost_above: f64, own: f64, above: f64, most: u32) -> u32 {
    let (most, best) = (most.max(1), (cost_above / cost * (own / above)).sqrt());
    // Neither level varies: one is as good as many.
    if best.is_nan() {
        return 1;
    }
    (1..most).find(|r| f64::from(*r) >= best).unwrap_or(most)
}

impl Levels {
    /// From the logarithms of the iterations of several boots of one side.
    ///
    /// # Errors
    ///
    /// `TooFew` below two boots or two iterations in one, `NotFinite`.
    pub fn of(boots: &[Vec<f64>]) -> Result<Self, StatsError> {
        let means: Vec<f64> = boots.iter().map(|boot| mean(boot)).collect::<Result<_, _>>()?;
        let within: Vec<f64> = boots.iter().map(|boot| variance(boot)).collect::<Result<_, _>>()?;
        // Boots may have lost some of their iterations; the variance of a mean goes with 1/r.
        let inverse: Vec<f64> = boots.iter().map(|boot| 1.0 / boot.len() as f64).collect();
        let squares = [mean(&within)?, variance(&means)?];
        let components = variance_components(&squares, &[1.0 / mean(&inverse)?])?;
        Ok(Self { iteration: components[0], boot: components[1] })
    }

    /// The standard deviation of the difference of a pair whose boots have so many iterations each.
    pub fn pair_sd(&self, iterations: u32) -> f64 {
        (2.0 * (self.boot + self.iteration / f64::from(iterations.max(1)))).sqrt()
    }
}

/// The chance to see a change that is called detectable.
const POWER: f64 = 0.8;

/// Pairs that the ranks of normal numbers waste, against their mean: the efficiency is 3/π.
const RANK_EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// The smallest change, on the log scale, that `pairs` pairs with this standard deviation show with a
/// chance of 80 % in a test at `alpha`, two-sided.
///
/// # Errors
///
/// `TooFew` below two pairs, `BadArgument` for another alpha or a negative deviation, `NotFinite`.
pub fn smallest_detectable(pair_sd: f64, pairs: usize, alpha: f64) -> Result<f64, StatsError> {
    check_alpha(alpha)?;
    check(&[pair_sd], 1)?;
    if pairs < 2 {
        return Err(StatsError::TooFew { needed: 2, found: pairs });
    }
    if pair_sd < 0.0 {
        return Err(StatsError::BadArgument);
    }
    let t = StudentsT::new(0.0, 1.0, (pairs - 1) as f64).map_err(|_| StatsError::BadArgument)?;
    let quantiles = t.inverse_cdf(1.0 - alpha / 2.0) + t.inverse_cdf(POWER);
    Ok(quantiles * pair_sd / (pairs as f64 * RANK_EFFICIENCY).sqrt())
}

/// What one boot costs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// Start, settling, warm-up, shutdown.
    pub boot: f64,
    /// One iteration.
    pub iteration: f64,
}

/// A way to spend a budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effort {
    /// Pairs.
    pub pairs: usize,
    /// Iterations a boot.
    pub iterations: u32,
    /// The smallest change that this shows, on the log scale; `None` if the pairs are too few.
    pub detectable: Option<f64>,
}

/// Most iterations a boot that are worth considering.
const MOST_ITERATIONS: u32 = 100;

/// The best use of `seconds` for boots one after the other: as many iterations as the costs and
/// variances ask for, as many pairs as then fit, no more than `most_pairs`.
///
/// # Errors
///
/// `NotFinite`, `BadArgument` for costs that are not above 0.
pub fn best_effort(
    seconds: f64,
    cost: Cost,
    levels: Levels,
    most_pairs: usize,
) -> Result<Effort, StatsError> {
    check(&[seconds, cost.boot, cost.iteration, levels.iteration, levels.boot], 5)?;
    if cost.boot <= 0.0 || cost.iteration <= 0.0 {
        return Err(StatsError::BadArgument);
    }
    let Levels { iteration, boot } = levels;
    let iterations = best_repetitions(cost.iteration, cost.boot, iteration, boot, MOST_ITERATIONS);
    let one = 2.0 * (cost.boot + f64::from(iterations) * cost.iteration);
    let pairs = (1..=most_pairs).take_while(|pairs| *pairs as f64 * one <= seconds).count();
    let last = Looks::up_to(pairs.max(1)).all().last().copied();
    let detectable = last
        .filter(|look| crate::SignedRank::fewest(look.alpha).is_ok_and(|fewest| fewest <= pairs))
        .map(|look| smallest_detectable(levels.pair_sd(iterations), pairs, look.alpha))
        .transpose()?;
    Ok(Effort { pairs, iterations, detectable })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn the_method_s_example_gives_four_iterations() {
        assert_eq!(best_repetitions(0.3, 12.0, 0.01_f64.powi(2), 0.02_f64.powi(2), 100), 4);
        assert_eq!(best_repetitions(0.3, 12.0, 0.0, 1.0, 100), 1);
        assert_eq!(best_repetitions(0.3, 12.0, 1.0, 0.0, 100), 100);
        assert_eq!(best_repetitions(0.3, 12.0, 0.0, 0.0, 100), 1);
        assert_eq!(best_repetitions(1.0, 1.0, 1.0, 4.0, 100), 1);
        // √16 is 4, not 5.
        assert_eq!(best_repetitions(1.0, 4.0, 4.0, 1.0, 100), 4);
    }

    #[test]
    fn each_level_is_freed_of_the_one_below() {
        let components = variance_components(&[4.0, 3.0, 1.0], &[4.0, 6.0]).unwrap();
        // The third is freed of S_2², not of T_2²: 1 - 3/6.
        assert_eq!(components, [4.0, 2.0, 0.5]);
        assert_eq!(variance_components(&[4.0, 0.5], &[4.0]), Ok(vec![4.0, 0.0]));
        assert_eq!(variance_components(&[4.0, 3.0], &[]), Err(StatsError::BadArgument));
        assert_eq!(variance_components(&[4.0, f64::NAN], &[2.0]), Err(StatsError::NotFinite));
    }

    #[test]
    fn levels_are_found_again() {
        let mut random = Random::new(3);
        let boots: Vec<Vec<f64>> = (0..4000)
            .map(|_| {
                let level = 0.02 * random.normal();
                (0..5).map(|_| level + 0.01 * random.normal()).collect()
            })
            .collect();
        let levels = Levels::of(&boots).unwrap();
        assert!((levels.iteration.sqrt() - 0.01).abs() < 0.0003, "{levels:?}");
        assert!((levels.boot.sqrt() - 0.02).abs() < 0.0008, "{levels:?}");
        let sd = Levels { iteration: 1e-4, boot: 4e-4 }.pair_sd(4);
        assert!((sd - (2.0_f64 * 4.25e-4).sqrt()).abs() < 1e-12);
        assert!(Levels::of(&boots[..1]).is_err());
    }

    #[test]
    fn more_pairs_see_less() {
        // Student's quantiles 2.4469 and 0.9057 at 6 degrees: 7 pairs of sd 1.
        let seven = smallest_detectable(1.0, 7, 0.05).unwrap();
        assert!((seven - (2.446_91 + 0.905_70) / (7.0 * RANK_EFFICIENCY).sqrt()).abs() < 1e-4);
        assert!(smallest_detectable(1.0, 30, 0.015).unwrap() < seven);
        assert_eq!(smallest_detectable(0.0, 8, 0.05), Ok(0.0));
        let few = Err(StatsError::TooFew { needed: 2, found: 1 });
        assert_eq!(smallest_detectable(1.0, 1, 0.05), few);
        assert_eq!(smallest_detectable(-1.0, 8, 0.05), Err(StatsError::BadArgument));
    }

    #[test]
    fn a_budget_goes_into_boots_before_iterations() {
        let levels = Levels { iteration: 1e-4, boot: 4e-4 };
        let cost = Cost { boot: 12.0, iteration: 0.3 };
        let effort = best_effort(20.0 * 60.0, cost, levels, 100).unwrap();
        // A pair takes 2 × (12 + 4 × .3) = 26.4 s.
        assert_eq!((effort.pairs, effort.iterations), (45, 4));
        let none = best_effort(60.0, cost, levels, 100).unwrap();
        assert_eq!((none.pairs, none.detectable), (2, None));
        let capped = best_effort(1e9, cost, levels, 30).unwrap();
        assert_eq!(capped.pairs, 30);
        assert!(capped.detectable.unwrap() > effort.detectable.unwrap());
        let free = Cost { boot: 0.0, iteration: 0.3 };
        assert_eq!(best_effort(60.0, free, levels, 30), Err(StatsError::BadArgument));
    }
}
