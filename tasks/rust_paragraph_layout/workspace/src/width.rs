//! Widths of characters in columns.

/// Ranges of characters with two columns.
const WIDE: [(u32, u32); 9] = [
    (0x1100, 0x115f),
    (0x2e80, 0x303e),
    (0x3041, 0x33ff),
    (0x3400, 0x9fff),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xff00, 0xff60),
    (0x1f300, 0x1faff),
    (0x20000, 0x3fffd),
];

/// Ranges of combining characters, which have no columns of their own.
const COMBINING: [(u32, u32); 4] = [(0x0300, 0x036f), (0x1ab0, 0x1aff), (0x20d0, 0x20ff), (0xfe00, 0xfe0f)];

/// Returns the number of columns of a text.
pub fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(character: char) -> usize {
    let code = u32::from(character);
    let is_in = |ranges: &[(u32, u32)]| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    if is_in(&COMBINING) {
        0
    } else if is_in(&WIDE) {
        2
    } else {
        1
    }
}
