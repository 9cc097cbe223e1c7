//! Checks whether Python's `json.loads` accepts a text.
//!
//! It accepts more than JSON (`NaN`, infinities, lone surrogates), but rejects integers that are too long for `int`.
//! This module builds no values and uses one byte per nesting level.

use crate::python::INT_DIGITS_MAX;

/// Maximum nesting depth. Deeper nesting raises an exception in Python that the official program doesn't catch.
const DEPTH_MAX: usize = 990;

/// Returns true if `json.loads` accepts the text.
pub(super) fn is_json(text: &str) -> bool {
    Reader { rest: text.as_bytes() }.document().is_some()
}

struct Reader<'t> {
    rest: &'t [u8],
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn eat(&mut self, text: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_blanks();
    }

    /// Parses a document; `None` at the first error.
    fn document(&mut self) -> Option<()> {
        let mut open: Vec<u8> = Vec::new();
        self.blanks();
        loop {
            // A value is expected here.
            match self.peek()? {
                bracket @ (b'[' | b'{') => {
                    self.next();
                    self.blanks();
                    if open.len() >= DEPTH_MAX {
                        return None;
                    }
                    let close = bracket + 2;
                    if self.peek()? != close {
                        open.push(close);
                        self.key(close)?;
                        continue;
                    }
                    self.next();
                }
                b'"' => self.string()?,
                _ => self.scalar()?,
            }
            // A value has ended here.
            loop {
                self.blanks();
                let Some(&close) = open.last() else {
                    return self.rest.is_empty().then_some(());
                };
                match self.next()? {
                    b',' => {
                        self.blanks();
                        self.key(close)?;
                        break;
                    }
                    byte if byte == close => open.pop(),
                    _ => return None,
                };
            }
        }
    }

    /// Parses the key of a member, if the container is an object.
    fn key(&mut self, close: u8) -> Option<()> {
        if close == b'}' {
            self.string()?;
            self.blanks();
            self.eat(b":")?;
            self.blanks();
        }
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        self.eat(b"\"")?;
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => {
                        let digits =
                            self.rest.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                        self.rest = self.rest.get(digits?.len()..)?;
                    }
                    _ => return None,
                },
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    fn scalar(&mut self) -> Option<()> {
        for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
            if self.eat(word.as_bytes()).is_some() {
                return Some(());
            }
        }
        let _ = self.eat(b"-");
        let whole = if self.eat(b"0").is_some() { 1 } else { self.digits() };
        if whole == 0 {
            return None;
        }
        let mut is_integer = true;
        // Without a digit after it, neither the dot nor the exponent belongs to the number.
        let before = self.rest;
        if self.eat(b".").is_some() {
            if self.digits() > 0 {
                is_integer = false;
            } else {
                self.rest = before;
            }
        }
        let before = self.rest;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.next();
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.next();
            }
            if self.digits() > 0 {
                is_integer = false;
            } else {
                self.rest = before;
            }
        }
        (!is_integer || whole <= INT_DIGITS_MAX).then_some(())
    }

    fn digits(&mut self) -> usize {
        let count = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.rest = self.rest.get(count..).unwrap_or_default();
        count
    }
}

/// Trims whitespace as defined by JSON.
trait TrimBlanks {
    fn trim_blanks(&self) -> &Self;
}

impl TrimBlanks for [u8] {
    fn trim_blanks(&self) -> &Self {
        let count = self.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.get(count..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_that_python_accepts_are_accepted() {
        for text in [
            "42",
            "-0",
            "1.5e-3",
            "1E+9",
            "null",
            "NaN",
            "-Infinity",
            "[NaN, Infinity]",
            "\"\"",
            r#""\ud800 \u00E9 \/""#,
            "\"\u{7f}\u{feff}\"",
            "[]",
            " { } ",
            r#"{"a": [1, {"a": 2}], "a": null}"#,
            "\t[1,\r\n2]\n",
        ] {
            assert!(is_json(text), "{text:?}");
        }
        for text in [
            "",
            "-",
            "01",
            ".5",
            "1.",
            "1e",
            "+1",
            "nan",
            "True",
            "{'a':1}",
            "[1,]",
            r#"{"a":1,}"#,
            "{a:1}",
            "[1 2]",
            "[1]]",
            "[1}",
            "[",
            "\"a\nb\"",
            "\"\t\"",
            r#""\x""#,
            r#""\u12g4""#,
            "\"",
            "1 // one",
            "\u{feff}{}",
            "\u{a0}1",
            "-NaN",
        ] {
            assert!(!is_json(text), "{text:?}");
        }
        assert!(is_json(&"9".repeat(INT_DIGITS_MAX)) && !is_json(&"9".repeat(INT_DIGITS_MAX + 1)));
        assert!(is_json(&format!("{}.0", "9".repeat(INT_DIGITS_MAX + 1))));
        assert!(is_json(&("[".repeat(900) + &"]".repeat(900))));
        assert!(!is_json(&"[".repeat(1 << 20)));
    }

    proptest! {
        #[test]
        fn strict_json_is_accepted_like_by_other_parsers(text in r#"[\[\]{},:"\\0-9.+ nu/t-]{0,12}"#) {
            prop_assert_eq!(is_json(&text), serde_json::from_str::<serde_json::Value>(&text).is_ok());
        }
    }
}
