// N-grams as numbers. This file is part of the build script as well.

/// One to three characters in one number.
#[allow(dead_code)] // the build script has keys already
pub(super) fn key(characters: &[char]) -> u64 {
    characters.iter().rev().fold(0, |key, &c| key << 21 | (u64::from(u32::from(c)) + 1))
}

/// The characters of a key.
#[allow(dead_code)] // the build script needs none
pub(super) fn characters(key: u64) -> Vec<char> {
    let codes = [0, 21, 42].map(|shift| (key >> shift & 0x1f_ffff) as u32);
    codes.iter().filter_map(|code| code.checked_sub(1).and_then(char::from_u32)).collect()
}

/// Where a key is looked for first in a table of 2^`bits` places.
#[allow(clippy::cast_possible_truncation)] // fewer than 32 bits are left
pub(super) fn place(key: u64, bits: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
}
