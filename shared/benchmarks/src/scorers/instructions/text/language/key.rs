// Encodes n-grams as numbers. The build script includes this file, too.

/// Encodes one to three characters as one number.
#[allow(dead_code)] // the build script reads encoded keys
pub(super) fn key(characters: &[char]) -> u64 {
    characters.iter().rev().fold(0, |key, &c| key << 21 | (u64::from(u32::from(c)) + 1))
}

/// Decodes the characters of a key.
#[allow(dead_code)] // unused in the build script
pub(super) fn characters(key: u64) -> Vec<char> {
    let codes = [0, 21, 42].map(|shift| (key >> shift & 0x1f_ffff) as u32);
    codes.iter().filter_map(|code| code.checked_sub(1).and_then(char::from_u32)).collect()
}

/// Returns the first slot to probe for a key in a hash table of 2^`bits` slots.
#[allow(clippy::cast_possible_truncation)] // the result has at most `bits` bits
pub(super) fn first_slot(key: u64, bits: u32) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - bits)) as usize
}
