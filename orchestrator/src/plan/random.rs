//! The generator behind orders and layout seeds: published, and never to change, because a stored
//! seed must give the same schedule for ever.

use kduel_stats::Random as SplitMix64;

/// xoshiro256** 1.0 (Blackman and Vigna, 2018).
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    /// A stream of its own for every pair of seed and purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        // FNV-1a: the streams of two experiments must not depend on how many others are selected.
        let hash = purpose.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut mix = SplitMix64::new(seed ^ hash);
        Self([mix.draw(), mix.draw(), mix.draw(), mix.draw()])
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.0;
        let result = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// An index below `n`, each equally likely; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        // Numbers from the last, incomplete stretch of length n would favour small indices.
        let limit = u64::MAX - u64::MAX % n;
        loop {
            let drawn = self.draw();
            if drawn < limit {
                return usize::try_from(drawn % n).unwrap_or(0);
            }
        }
    }

    /// Puts `items` into an order of which all are equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

/// A seed from the operating system.
///
/// # Errors
///
/// The operating system has none to give.
pub fn seed_from_system() -> std::io::Result<u64> {
    let mut bytes = [0_u8; 8];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if read == bytes.len() {
        Ok(u64::from_le_bytes(bytes))
    } else {
        Err(std::io::Error::other("the system gave fewer random bytes than asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_published_numbers() {
        let mut mix = SplitMix64::new(1_234_567);
        let drawn = [mix.draw(), mix.draw(), mix.draw()];
        assert_eq!(
            drawn,
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );

        let mut random = Random([1, 2, 3, 4]);
        let drawn: Vec<u64> = (0..8).map(|_| random.draw()).collect();
        let published = [
            11_520,
            0,
            1_509_978_240,
            1_215_971_899_390_074_240,
            1_216_172_134_540_287_360,
            607_988_272_756_665_600,
            16_172_922_978_634_559_625,
            8_476_171_486_693_032_832,
        ];
        assert_eq!(drawn, published);
    }

    #[test]
    fn purposes_have_streams_of_their_own() {
        assert_ne!(Random::new(1, "fork").draw(), Random::new(1, "demo").draw());
        assert_eq!(Random::new(1, "fork").draw(), Random::new(1, "fork").draw());
    }

    #[test]
    fn orders_are_equally_likely() {
        let mut random = Random::new(7, "test");
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            random.shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|n| (850..1150).contains(n)), "{counts:?}");
    }
}
