//! Numbers as Python's `float` reads them.

use super::text::strip;

/// First digit of each range of ten decimal digits outside ASCII (Unicode 15, category `Nd`).
const ZEROS: [u32; 67] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0,
    0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50,
    0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066, 0x110F0,
    0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50,
    0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6,
    0x1E140, 0x1E2F0, 0x1E4F0, 0x1E950, 0x1FBF0,
];

/// Reads a number as `float` does: blanks around it, underscores between digits, `inf`, `nan` and decimal digits of all
/// scripts are accepted.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    // Separators are blanks only beside characters outside ASCII.
    let text = match text.is_ascii() {
        true => text.trim_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']),
        false => strip(text),
    };
    let ascii: Option<String> = text.chars().map(to_ascii).collect();
    let ascii = without_underscores(&ascii?)?;
    // Rust accepts the same words, signs, points and exponents.
    ascii.parse().ok()
}

fn to_ascii(c: char) -> Option<char> {
    if c.is_ascii() {
        return Some(c);
    }
    let code = u32::from(c);
    let zero = ZEROS.iter().rev().find(|zero| **zero <= code)?;
    char::from_digit(code - zero, 10)
}

/// Removes underscores; `None` if one isn't between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let mut kept = String::with_capacity(text.len());
    let mut before = ' ';
    for c in text.chars() {
        let is_misplaced = (c == '_' && !before.is_ascii_digit()) || (before == '_' && !c.is_ascii_digit());
        if is_misplaced {
            return None;
        }
        if c != '_' {
            kept.push(c);
        }
        before = c;
    }
    (before != '_').then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_python_reads_them() {
        for (text, number) in [
            ("1_000", Some(1000.0)),
            (" 2 ", Some(2.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+5e-1", Some(0.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("Infinity", Some(f64::INFINITY)),
            ("٣", Some(3.0)),
            ("１２", Some(12.0)),
            ("\u{1c}٣", Some(3.0)),
            ("\u{1c}3", None),
            ("_1", None),
            ("1_", None),
            ("1__0", None),
            ("1_.0", None),
            ("", None),
            ("1,5", None),
            ("²", None),
            ("0x10", None),
        ] {
            assert_eq!(parse_float(text), number, "{text}");
        }
        assert!(parse_float("NaN").is_some_and(f64::is_nan));
    }
}
