//! Random number generator of all selections: MT19937, seeded and read like CPython's `random.Random(int)`.

use std::fmt;

use sha2::{Digest, Sha256};

const WORDS: usize = 624;
const SHIFT: usize = 397;
const MATRIX: u32 = 0x9908_b0df;
const UPPER_BIT: u32 = 0x8000_0000;
const LOWER_BITS: u32 = 0x7fff_ffff;

/// Generator that yields the same values as CPython's `random.Random(seed)`, for seeds from 0 to 2⁶⁴ − 1.
///
/// The algorithm is MT19937 (Matsumoto and Nishimura, 1998) with array initialization; the bounded draw is CPython's
/// `_randbelow_with_getrandbits`. Not for secrets: 624 outputs reveal the state.
#[derive(Clone)]
pub struct PythonRandom {
    state: [u32; WORDS],
    /// Number of words of `state` already returned; at `WORDS`, the next block is generated.
    used: usize,
}

impl PythonRandom {
    /// Creates a generator in the state of `random.Random(seed)`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        // CPython's key has no leading zero words: a seed below 2³² has one word, and zero is the word 0.
        let words = [seed as u32, (seed >> 32) as u32];
        if words[1] == 0 { Self::from_key(&words[..1]) } else { Self::from_key(&words) }
    }

    /// Creates a generator seeded by the first 16 hex digits of a text's SHA-256.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self::new(seed_of_text(text))
    }

    fn from_key(key: &[u32]) -> Self {
        let mut state = [0; WORDS];
        state[0] = 19_650_218;
        for i in 1..WORDS {
            state[i] = mix_bits(state[i - 1]).wrapping_mul(1_812_433_253).wrapping_add(i as u32);
        }
        let mut i = 1;
        for j in (0..key.len()).cycle().take(WORDS.max(key.len())) {
            state[i] = (state[i] ^ mix_bits(state[i - 1]).wrapping_mul(1_664_525))
                .wrapping_add(key[j])
                .wrapping_add(j as u32);
            i = next_index(&mut state, i);
        }
        for _ in 1..WORDS {
            state[i] = (state[i] ^ mix_bits(state[i - 1]).wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
            i = next_index(&mut state, i);
        }
        state[0] = UPPER_BIT;
        Self { state, used: WORDS }
    }

    fn refill(&mut self) {
        for i in 0..WORDS {
            let word = (self.state[i] & UPPER_BIT) | (self.state[(i + 1) % WORDS] & LOWER_BITS);
            let twist = if word & 1 == 1 { MATRIX } else { 0 };
            self.state[i] = self.state[(i + SHIFT) % WORDS] ^ (word >> 1) ^ twist;
        }
        self.used = 0;
    }

    /// Returns the next output word.
    pub fn next_u32(&mut self) -> u32 {
        if self.used >= WORDS {
            self.refill();
        }
        let mut word = self.state[self.used];
        self.used += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// Returns `getrandbits(count)`. Counts above 64 are treated as 64; zero bits draw nothing and return 0.
    pub fn bits(&mut self, count: u32) -> u64 {
        match count.min(64) {
            0 => 0,
            count @ 1..=32 => u64::from(self.next_u32() >> (32 - count)),
            count => {
                let low = u64::from(self.next_u32());
                let high = u64::from(self.next_u32() >> (64 - count));
                high << 32 | low
            }
        }
    }

    /// Draws uniformly from `0..bound`. Returns 0 for a bound of 0, which has no values to draw.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        // The bit length of the bound itself, not of its greatest value: a bound of 2 draws two bits.
        let count = u64::BITS - bound.leading_zeros();
        loop {
            let draw = self.bits(count);
            if draw < bound {
                return draw;
            }
        }
    }

    /// Shuffles `values` like `random.shuffle`.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for i in (1..values.len()).rev() {
            values.swap(i, self.below(i as u64 + 1) as usize);
        }
    }
}

impl fmt::Debug for PythonRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PythonRandom").field("used", &self.used).finish_non_exhaustive()
    }
}

/// Returns the first 8 bytes of the text's SHA-256 as a big-endian number.
pub(super) fn seed_of_text(text: &str) -> u64 {
    Sha256::digest(text.as_bytes()).iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

fn mix_bits(word: u32) -> u32 {
    word ^ (word >> 30)
}

/// Returns the index after `i`. At the end, the last word is copied to the first, and filling continues at 1.
fn next_index(state: &mut [u32; WORDS], i: usize) -> usize {
    if i + 1 < WORDS {
        return i + 1;
    }
    state[0] = state[WORDS - 1];
    1
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::tests::{numbers, vectors};
    use super::*;

    fn seed_int(case: &Value) -> u64 {
        case["seed_int"].as_str().unwrap().parse().unwrap()
    }

    #[test]
    fn words_match_the_vectors() {
        let cases = vectors("prng");
        assert_eq!(cases.len(), 8);
        for case in &cases {
            let seed = seed_int(case);
            if let Some(text) = case["seed"].as_str() {
                assert_eq!(seed_of_text(text), seed, "{text}");
                assert_eq!(format!("{seed:016x}"), case["sha256_first16"].as_str().unwrap());
            }
            let mut random = PythonRandom::new(seed);
            let words: Vec<u64> = (0..8).map(|_| u64::from(random.next_u32())).collect();
            assert_eq!(words, numbers(&case["first_8_uint32"]), "seed {seed}");
        }
    }

    #[test]
    fn bounded_draws_match_the_vectors() {
        let cases = vectors("randbelow");
        assert_eq!(cases.len(), 12);
        for case in &cases {
            let bound = case["n"].as_u64().unwrap();
            let mut random = PythonRandom::from_text(case["seed"].as_str().unwrap());
            let draws: Vec<u64> = (0..6).map(|_| random.below(bound)).collect();
            assert_eq!(draws, numbers(&case["first_6"]), "below {bound}");
        }
    }

    /// From CPython 3: `r = random.Random(2**32); [r.getrandbits(32) for _ in range(2000)][-1]`, which
    /// crosses the block of 624 words three times, and then `getrandbits(64)` and `getrandbits(33)`.
    #[test]
    fn later_blocks_and_wide_draws_match_cpython() {
        let mut random = PythonRandom::new(1 << 32);
        let last = (0..2000).map(|_| random.next_u32()).last();
        assert_eq!(last, Some(4_134_838_374));
        assert_eq!(random.bits(64), 17_144_733_065_615_232_515);
        assert_eq!(random.bits(33), 7_538_626_298);
        assert_eq!(random.below(u64::MAX), 14_166_377_601_246_426_501);
    }

    #[test]
    fn a_bound_of_zero_draws_nothing() {
        let (mut asked, mut fresh) = (PythonRandom::new(7), PythonRandom::new(7));
        assert_eq!(asked.below(0), 0);
        assert_eq!(asked.bits(0), 0);
        assert_eq!(asked.next_u32(), fresh.next_u32());
    }
}
