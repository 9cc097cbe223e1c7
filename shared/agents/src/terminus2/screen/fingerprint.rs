//! Search for a text of which only hashes are known.

use serde::{Deserialize, Serialize};

use crate::python::is_space;

/// Base of the rolling hash, a polynomial modulo 2⁶⁴: an arbitrary odd number.
const ROLLING_BASE: u64 = 0x0123_4567_89ab_cdef;
/// Factor of the other hash: an arbitrary odd number.
const WORD_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Maximum number of places whose rolling hash is right and whose other hash isn't. Texts can be made so that there are
/// many; they count as not found.
const MISTAKES_MAX: u32 = 16;

/// Identifies a text by its length and two hashes. Texts that a program prints by chance have the same ones with a
/// probability far below 10⁻¹⁵. A text that is made to have them only changes which part of a screen is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    bytes: usize,
    rolling: u64,
    words: u64,
}

impl Fingerprint {
    /// Identifies a text that neither begins nor ends with a blank character.
    pub(super) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        Self { bytes: bytes.len(), rolling: hash_rolling(bytes), words: hash_words(bytes) }
    }

    /// Returns the first place of the text in another one, in bytes.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        // A text that has grown begins with the earlier one, apart from blanks, before which it can't be.
        let first = text.len() - text.trim_start_matches(is_space).len();
        let bytes = text.as_bytes();
        let at_first = bytes.get(first..first.saturating_add(self.bytes));
        if at_first.is_some_and(|window| hash_words(window) == self.words) {
            return Some(if self.bytes == 0 { 0 } else { first });
        }
        self.search(bytes)
    }

    fn search(&self, bytes: &[u8]) -> Option<usize> {
        let mut rolling = hash_rolling(bytes.get(..self.bytes)?);
        let first_weight = (0..self.bytes).fold(1, |weight: u64, _| weight.wrapping_mul(ROLLING_BASE));
        let (mut at, mut mistakes) = (0, 0);
        loop {
            let window = bytes.get(at..at + self.bytes)?;
            if rolling == self.rolling {
                if hash_words(window) == self.words {
                    return Some(at);
                }
                mistakes += 1;
                if mistakes > MISTAKES_MAX {
                    return None;
                }
            }
            let (leaving, entering) = (*bytes.get(at)?, *bytes.get(at + self.bytes)?);
            let gone = (u64::from(leaving) + 1).wrapping_mul(first_weight);
            rolling = step(rolling, entering).wrapping_sub(gone);
            at += 1;
        }
    }
}

fn hash_rolling(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |hash, byte| step(hash, *byte))
}

const fn step(hash: u64, byte: u8) -> u64 {
    hash.wrapping_mul(ROLLING_BASE).wrapping_add(byte as u64 + 1)
}

fn hash_words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    mix(hash, u64::from_le_bytes(last))
}

/// Multiplies to 128 bits, and joins both halves.
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word) * u128::from(WORD_FACTOR);
    (product as u64) ^ ((product >> 64) as u64).rotate_left(32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::python::strip;

    proptest! {
        #[test]
        fn the_first_place_is_found(text in "[ab\n é]{0,60}", start in 0_usize..60, length in 0_usize..12) {
            let part: String = text.chars().skip(start).take(length).collect();
            let part = strip(&part);
            prop_assert_eq!(Fingerprint::new(part).find(&text), text.find(part));
        }

        #[test]
        fn other_texts_are_not_found(text in "[ab]{0,40}", part in "[abc]{1,12}") {
            prop_assert_eq!(Fingerprint::new(&part).find(&text), text.find(&part));
        }
    }
}
