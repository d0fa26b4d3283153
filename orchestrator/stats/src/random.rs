/// SplitMix64 (Steele, Lea and Flood, 2014), and what simulations draw from it. Never to change: stored
/// seeds of schedules go through it, too.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to, but not, 1; multiples of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// With this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// An index below `n`; 0 if `n` is 0. The bias is of the order n/2^53.
    pub fn below(&mut self, n: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at least 0 and below n"
        )]
        let index = (self.uniform() * n as f64) as usize;
        index.min(n.saturating_sub(1))
    }

    /// Standard normal, by Box and Muller's transformation.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        let mut random = Random::new(1_234_567);
        let drawn = [random.draw(), random.draw(), random.draw()];
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn normal_numbers_have_their_moments() {
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let moment = |k| drawn.iter().map(|x| x.powi(k)).sum::<f64>() / drawn.len() as f64;
        assert!(moment(1).abs() < 0.015, "{}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.02, "{}", moment(2));
        assert!((moment(4) - 3.0).abs() < 0.15, "{}", moment(4));
    }

    #[test]
    fn indices_are_equally_likely() {
        let mut random = Random::new(2);
        let mut counts = [0; 6];
        for _ in 0..60_000 {
            counts[random.below(6)] += 1;
        }
        assert!(counts.iter().all(|n| (9_600..10_400).contains(n)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
