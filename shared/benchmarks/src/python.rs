//! Text functions that behave as in Python.
//!
//! The official extractors are Python programs, and their results depend on Python's definitions of whitespace, digits
//! and word characters. Rust's differ: `str.isspace` accepts four more control characters than `char::is_whitespace`,
//! `int` reads the digits of every script, and the word boundary of `re` does not count combining marks.

use std::sync::LazyLock;

use num_bigint::BigInt;
use regex_syntax::hir::{Class, HirKind};

/// Maximum number of decimal digits that Python's `int` converts. Longer texts are a `ValueError` since Python 3.11.
pub(crate) const INT_DIGITS_MAX: usize = 4300;

/// Code points of the digit zero of each script. The other nine digits follow each of them (Unicode 15, category Nd).
#[rustfmt::skip]
const ZEROS: [u32; 68] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50,
    0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40,
    0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10, 0x104A0, 0x10D30, 0x11066,
    0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950,
    0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0, 0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC,
    0x1D7F6, 0x1E140, 0x1E2F0, 0x1E4F0, 0x1E950, 0x1FBF0,
];

/// Characters that `str.isdigit` accepts although they aren't decimal digits, such as superscripts and circled digits.
const OTHER_DIGITS: [(u32, u32); 23] = [
    (0xB2, 0xB3),
    (0xB9, 0xB9),
    (0x1369, 0x1371),
    (0x19DA, 0x19DA),
    (0x2070, 0x2070),
    (0x2074, 0x2079),
    (0x2080, 0x2089),
    (0x2460, 0x2468),
    (0x2474, 0x247C),
    (0x2488, 0x2490),
    (0x24EA, 0x24EA),
    (0x24F5, 0x24FD),
    (0x24FF, 0x24FF),
    (0x2776, 0x277E),
    (0x2780, 0x2788),
    (0x278A, 0x2792),
    (0x10A40, 0x10A43),
    (0x10E60, 0x10E68),
    (0x11052, 0x1105A),
    (0x1F100, 0x1F100),
    (0x1F101, 0x1F10A),
    (0x1F10B, 0x1F10B),
    (0x1F10C, 0x1F10C),
];

/// Returns the value of a decimal digit of any script.
pub(crate) fn digit_value(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.to_digit(10).map(|digit| digit as u8);
    }
    let code = c as u32;
    let after = ZEROS.partition_point(|&zero| zero <= code);
    let offset = code - ZEROS.get(after.checked_sub(1)?)?;
    u8::try_from(offset).ok().filter(|&value| value < 10)
}

/// `str.isdigit()` of one character.
pub(crate) fn is_digit(c: char) -> bool {
    let code = c as u32;
    digit_value(c).is_some() || OTHER_DIGITS.iter().any(|&(first, last)| (first..=last).contains(&code))
}

/// `str.isspace()` of one character.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `str.strip()`.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// `str.split()`: the parts between runs of whitespace.
pub(crate) fn split(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.split(is_space).filter(|piece| !piece.is_empty())
}

/// `str.lower()`: the full case mapping, which can change the number of characters.
pub(crate) fn lower(text: &str) -> String {
    text.to_lowercase()
}

/// Returns true for category `Lt`: digraphs and Greek letters whose first half only is uppercase.
fn is_title(c: char) -> bool {
    matches!(
        c,
        '\u{1c5}' | '\u{1c8}' | '\u{1cb}' | '\u{1f2}' | '\u{1f88}'..='\u{1f8f}' | '\u{1f98}'..='\u{1f9f}'
            | '\u{1fa8}'..='\u{1faf}' | '\u{1fbc}' | '\u{1fcc}' | '\u{1ffc}'
    )
}

/// `str.isupper()`: at least one uppercase character, and no lowercase or titlecase ones.
pub(crate) fn is_upper(text: &str) -> bool {
    text.contains(char::is_uppercase) && !text.contains(|c: char| c.is_lowercase() || is_title(c))
}

/// `str.islower()`: at least one lowercase character, and no uppercase or titlecase ones.
pub(crate) fn is_lower(text: &str) -> bool {
    text.contains(char::is_lowercase) && !text.contains(|c: char| c.is_uppercase() || is_title(c))
}

/// Characters of `str.isalnum()`, which are also those of `\w` in `re` except `_`: letters and numbers of Unicode 14,
/// the version of Python 3.11.
struct WordCharacters {
    /// One bit for each code point of the first two planes, which hold nearly all text.
    bits: Vec<u64>,
    /// Sorted ranges of code points, both ends included.
    ranges: Vec<(char, char)>,
}

/// First code point without a bit in [`WordCharacters`].
const WORD_BITS_END: usize = 0x2_0000;

static WORD_CHARACTERS: LazyLock<WordCharacters> = LazyLock::new(|| {
    let hir = regex_syntax::parse(r"[\p{L}\p{N}&&\p{Age=14.0}]").ok();
    let ranges: Vec<(char, char)> = match hir.as_ref().map(regex_syntax::hir::Hir::kind) {
        Some(HirKind::Class(Class::Unicode(class))) => {
            class.ranges().iter().map(|range| (range.start(), range.end())).collect()
        }
        _ => Vec::new(),
    };
    let mut bits = vec![0; WORD_BITS_END / 64];
    for &(first, last) in &ranges {
        for code in (first as usize..=last as usize).take_while(|&code| code < WORD_BITS_END) {
            bits[code / 64] |= 1 << (code % 64);
        }
    }
    WordCharacters { bits, ranges }
});

/// `\w` of `re`: letters, numbers of any kind and `_`, but no combining marks.
pub(crate) fn is_word(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    let code = c as usize;
    match WORD_CHARACTERS.bits.get(code / 64) {
        Some(bits) => bits >> (code % 64) & 1 == 1,
        None => {
            let after = WORD_CHARACTERS.ranges.partition_point(|&(first, _)| first <= c);
            after
                .checked_sub(1)
                .and_then(|at| WORD_CHARACTERS.ranges.get(at))
                .is_some_and(|&(_, last)| c <= last)
        }
    }
}

/// Converts digits of any script, with single underscores between them, to ASCII digits.
fn ascii_digits(text: &str) -> Option<String> {
    let mut digits = String::with_capacity(text.len());
    let mut after_digit = false;
    for c in text.chars() {
        match digit_value(c) {
            Some(value) => digits.push(char::from(b'0' + value)),
            None if c == '_' && after_digit => {}
            None => return None,
        }
        after_digit = c != '_';
    }
    after_digit.then_some(digits)
}

/// `int(text)`: accepts surrounding whitespace, a sign, leading zeros, `_` between digits, and digits of every script.
pub(crate) fn parse_int(text: &str) -> Option<BigInt> {
    let text = strip(text);
    let (negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.starts_with('-'), digits),
        None => (false, text),
    };
    let digits = ascii_digits(digits).filter(|digits| digits.len() <= INT_DIGITS_MAX)?;
    let value: BigInt = digits.parse().ok()?;
    Some(if negative { -value } else { value })
}

/// `float(text)`, including infinities and not-a-number.
pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let text = strip(text);
    let mut plain = String::with_capacity(text.len());
    let mut previous = ' ';
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match digit_value(c) {
            Some(value) => plain.push(char::from(b'0' + value)),
            None if c == '_' => {
                let between = digit_value(previous).is_some()
                    && characters.peek().is_some_and(|&next| digit_value(next).is_some());
                if !between {
                    return None;
                }
            }
            None => plain.push(c),
        }
        previous = c;
    }
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(&plain);
    let is_word = ["inf", "infinity", "nan"].iter().any(|word| unsigned.eq_ignore_ascii_case(word));
    let is_number = unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (is_word || is_number).then(|| plain.parse().ok()).flatten()
}

/// `repr` of a float.
pub(crate) fn float_repr(value: f64) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value != 0.0 && !(1e-4..1e16).contains(&value.abs()) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{mantissa}e{sign}{exponent:0>2}");
    }
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_python_reads_them() {
        let int = |text: &str| parse_int(text).map(|value| value.to_string());
        for (text, expected) in [
            ("70", "70"),
            (" 070\n", "70"),
            ("+7_0", "70"),
            ("-70", "-70"),
            ("\u{1c}70\u{3000}", "70"),
            ("٧٠", "70"),
            ("𝟕0", "70"),
        ] {
            assert_eq!(int(text).as_deref(), Some(expected), "{text:?}");
        }
        for text in ["", "-", "7__0", "_70", "70_", "7 0", "70.0", "0x46", "²", "+-7", "- 7"] {
            assert_eq!(int(text), None, "{text:?}");
        }
        assert!(parse_int(&"9".repeat(INT_DIGITS_MAX)).is_some());
        assert_eq!(parse_int(&"9".repeat(INT_DIGITS_MAX + 1)), None);
    }

    #[test]
    fn floats_are_read_as_python_reads_them() {
        for (text, expected) in
            [("70.", 70.0), (".5", 0.5), ("1e3", 1000.0), ("1_0.2_5", 10.25), ("٧.0", 7.0)]
        {
            assert_eq!(parse_float(text), Some(expected), "{text:?}");
        }
        assert_eq!(parse_float("-Infinity"), Some(f64::NEG_INFINITY));
        for text in ["", ".", "1__0", "1_.0", "1e", "infin", "0x1", "7 0", "+-1"] {
            assert_eq!(parse_float(text), None, "{text:?}");
        }
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (value, expected) in [
            (70.5, "70.5"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (0.0001, "0.0001"),
            (1e22, "1e+22"),
            (-2.0, "-2.0"),
        ] {
            assert_eq!(float_repr(value), expected);
        }
    }

    #[test]
    fn word_characters_are_letters_and_numbers() {
        for c in ['a', 'Z', '_', '7', '日', 'é', '²', 'Ⅷ', '½', '٧'] {
            assert!(is_word(c), "{c:?}");
        }
        for c in [' ', '.', '\u{301}', '-', 'Ⓐ', '\u{200d}'] {
            assert!(!is_word(c), "{c:?}");
        }
    }

    #[test]
    fn the_table_of_word_characters_agrees_with_its_unicode_classes() {
        let class = regex::Regex::new(r"^[\p{L}\p{N}&&\p{Age=14.0}]$").unwrap();
        for c in ('\u{80}'..='\u{3ff}').chain('\u{1f000}'..='\u{20100}').chain('\u{2a600}'..='\u{2a8ff}') {
            assert_eq!(is_word(c), class.is_match(&c.to_string()), "{:x}", c as u32);
        }
    }

    #[test]
    fn letter_cases_are_those_of_python() {
        for text in ["A", "A1!", "ÀΣ", "Ⅷ"] {
            assert!(is_upper(text) && !is_lower(text), "{text:?}");
        }
        for text in ["a", "a1!", "ª", "ß"] {
            assert!(is_lower(text) && !is_upper(text), "{text:?}");
        }
        for text in ["", "1", "日", "Ab", "\u{1c5}", "A\u{1c5}", "a\u{1c5}"] {
            assert!(!is_lower(text) && !is_upper(text), "{text:?}");
        }
        assert_eq!(lower("ΟΔΟΣ İ"), "οδος i\u{307}");
        assert_eq!(split("\u{1c}a \u{3000}b\u{200b}\n").collect::<Vec<_>>(), ["a", "b\u{200b}"]);
    }
}
