//! Python's random number generator, a Mersenne Twister, seeded with 0.

use std::sync::LazyLock;

const WORDS: usize = 624;
const SHIFT: usize = 397;

/// Python's `random.Random(0)`.
#[derive(Debug, Default)]
pub(super) struct Random {
    /// Number of cached values used so far.
    used: usize,
    /// Generator of the values after the cached ones.
    twister: Option<MersenneTwister>,
    /// Second value of the last pair of normal deviates.
    spare: Option<f64>,
}

#[derive(Debug, Clone)]
struct MersenneTwister {
    words: Vec<u32>,
    at: usize,
}

/// Number of cached values. The seed is always the same, and most texts need fewer.
const CACHED: usize = 8 * WORDS;

/// First values, and the state of the generator after them.
static CACHE: LazyLock<(Vec<u32>, MersenneTwister)> = LazyLock::new(|| {
    let mut twister = MersenneTwister::from_seed(0);
    ((0..CACHED).map(|_| twister.word()).collect(), twister)
});

impl MersenneTwister {
    /// Seeds the generator with an array of one word, as Python does.
    fn from_seed(seed: u32) -> Self {
        let mut words = vec![19_650_218_u32];
        let step = |previous: u32, factor: u32| (previous ^ previous >> 30).wrapping_mul(factor);
        for at in 1..WORDS as u32 {
            let previous = words.last().copied().unwrap_or_default();
            words.push(step(previous, 1_812_433_253).wrapping_add(at));
        }
        let mut at = 1;
        let mut mix = |rounds: usize, change: &dyn Fn(u32, u32, u32) -> u32| {
            for _ in 0..rounds {
                let previous = words.get(at - 1).copied().unwrap_or_default();
                if let Some(word) = words.get_mut(at) {
                    *word = change(*word, previous, at as u32);
                }
                at += 1;
                if at == WORDS {
                    words.copy_within(WORDS - 1.., 0);
                    at = 1;
                }
            }
        };
        mix(WORDS, &|word, previous, _| (word ^ step(previous, 1_664_525)).wrapping_add(seed));
        mix(WORDS - 1, &|word, previous, at| (word ^ step(previous, 1_566_083_941)).wrapping_sub(at));
        if let Some(first) = words.first_mut() {
            *first = 0x8000_0000;
        }
        Self { words, at: WORDS }
    }

    fn refill(&mut self) {
        for at in 0..WORDS {
            let word = |at: usize| self.words.get(at % WORDS).copied().unwrap_or_default();
            let mixed = word(at) & 0x8000_0000 | word(at + 1) & 0x7fff_ffff;
            let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            let next = word(at + SHIFT) ^ mixed >> 1 ^ odd;
            if let Some(word) = self.words.get_mut(at) {
                *word = next;
            }
        }
        self.at = 0;
    }

    fn word(&mut self) -> u32 {
        if self.at >= WORDS {
            self.refill();
        }
        let mut word = self.words.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }
}

impl Random {
    fn word(&mut self) -> u32 {
        if let Some(word) = CACHE.0.get(self.used) {
            self.used += 1;
            return *word;
        }
        self.twister.get_or_insert_with(|| CACHE.1.clone()).word()
    }

    /// `random()`: 53 random bits.
    fn unit(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// `gauss(0.0, 1.0)`.
    pub(super) fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let angle = self.unit() * std::f64::consts::TAU;
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        self.spare = Some(angle.sin() * radius);
        angle.cos() * radius
    }

    /// Returns an index below a length, drawn as by `choice`; 0 for an empty list.
    pub(super) fn below(&mut self, length: usize) -> usize {
        let bits = (usize::BITS - length.leading_zeros()).min(32);
        if bits == 0 {
            return 0;
        }
        loop {
            let index = (self.word() >> (32 - bits)) as usize;
            if index < length {
                return index;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_python() {
        let mut random = Random::default();
        assert_eq!(random.unit(), 0.844_421_851_525_048_1);
        assert_eq!(random.unit(), 0.757_954_402_940_302_5);
        let mut random = Random::default();
        let drawn: Vec<usize> = (0..5).map(|_| random.below(100)).collect();
        assert_eq!(drawn, [49, 97, 53, 5, 33]);
        let mut random = Random::default();
        assert_eq!((random.normal(), random.normal()), (0.941_715_404_680_664_4, -1.396_578_104_701_149_8));
        assert_eq!(random.below(0), 0);
        let (mut random, mut twister) = (Random::default(), MersenneTwister::from_seed(0));
        assert!((0..3 * CACHED).all(|_| random.word() == twister.word()));
    }
}
