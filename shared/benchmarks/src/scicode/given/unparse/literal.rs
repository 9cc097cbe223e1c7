//! String and number literals: their values, and how Python writes them.

use std::sync::LazyLock;

use num_bigint::BigInt;
use regex::Regex;

use crate::python;

/// Value of a string literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) value: String,
    /// True for bytes; each character then stands for one byte.
    pub(super) is_bytes: bool,
    /// True if the literal has the prefix `u`.
    pub(super) is_marked: bool,
}

static NOT_PRINTABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}]$").ok());

/// `str.isprintable` of one character.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        c if c.is_ascii() => false,
        c => {
            let mut buffer = [0; 4];
            !NOT_PRINTABLE.as_ref().is_some_and(|pattern| pattern.is_match(c.encode_utf8(&mut buffer)))
        }
    }
}

/// Returns the value of a string literal; `None` for a formatted one, or one with a named character.
pub(super) fn text(literal: &str) -> Option<Text> {
    let (prefix, quoted) = literal.split_at(literal.find(['\'', '"'])?);
    let prefix = prefix.to_ascii_lowercase();
    if prefix.contains('f') {
        return None;
    }
    let length = if quoted.starts_with("\"\"\"") || quoted.starts_with("'''") { 3 } else { 1 };
    let inner = quoted.get(length..quoted.len().checked_sub(length)?)?.replace("\r\n", "\n");
    let is_bytes = prefix.contains('b');
    if is_bytes && !inner.is_ascii() {
        return None;
    }
    let value = if prefix.contains('r') { inner } else { unescape(&inner, is_bytes)? };
    Some(Text { value, is_bytes, is_marked: prefix == "u" })
}

/// Returns a formatted literal in single quotes, if that doesn't change its meaning.
pub(super) fn requote(literal: &str) -> String {
    let inner = literal.strip_prefix("f\"").and_then(|inner| inner.strip_suffix('"'));
    match inner.filter(|inner| !inner.contains(['\'', '"'])) {
        Some(inner) => format!("f'{inner}'"),
        None => literal.to_owned(),
    }
}

fn unescape(text: &str, is_bytes: bool) -> Option<String> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        value.push_str(rest.get(..at)?);
        let escaped = rest.get(at + 1..)?;
        let c = escaped.chars().next()?;
        rest = escaped.get(c.len_utf8()..)?;
        let digits = match c {
            'x' => 2,
            'u' if !is_bytes => 4,
            'U' if !is_bytes => 8,
            _ => 0,
        };
        if digits > 0 {
            let code = u32::from_str_radix(rest.get(..digits)?, 16).ok()?;
            value.push(char::from_u32(code)?);
            rest = rest.get(digits..)?;
            continue;
        }
        match c {
            '\n' => {}
            '\\' | '\'' | '"' => value.push(c),
            'a' => value.push('\u{7}'),
            'b' => value.push('\u{8}'),
            'f' => value.push('\u{c}'),
            'n' => value.push('\n'),
            'r' => value.push('\r'),
            't' => value.push('\t'),
            'v' => value.push('\u{b}'),
            'N' if !is_bytes => return None,
            '0'..='7' => {
                let length = escaped.bytes().take(3).take_while(|b| (b'0'..=b'7').contains(b)).count();
                value.push(char::from_u32(u32::from_str_radix(escaped.get(..length)?, 8).ok()?)?);
                rest = escaped.get(length..)?;
            }
            c => value.extend(['\\', c]),
        }
    }
    value.push_str(rest);
    Some(value)
}

/// Returns Python's `repr` of a string or bytes.
pub(super) fn repr(text: &Text) -> String {
    let quote = if text.value.contains('\'') && !text.value.contains('"') { '"' } else { '\'' };
    let mut written = String::new();
    if text.is_marked {
        written.push('u');
    }
    if text.is_bytes {
        written.push('b');
    }
    written.push(quote);
    for c in text.value.chars() {
        match c {
            c if c == quote => written.extend(['\\', c]),
            c if text.is_bytes && !c.is_ascii() => written.push_str(&format!("\\x{:02x}", c as u32)),
            c => push_escaped(&mut written, c),
        }
    }
    written.push(quote);
    written
}

fn push_escaped(written: &mut String, c: char) {
    match c {
        '\\' => written.push_str("\\\\"),
        '\n' => written.push_str("\\n"),
        '\r' => written.push_str("\\r"),
        '\t' => written.push_str("\\t"),
        c if is_printable(c) => written.push(c),
        c => match c as u32 {
            code @ ..=0xff => written.push_str(&format!("\\x{code:02x}")),
            code @ ..=0xffff => written.push_str(&format!("\\u{code:04x}")),
            code => written.push_str(&format!("\\U{code:08x}")),
        },
    }
}

/// Returns a docstring in triple quotes, with as few escaped characters as possible.
pub(super) fn documentation(text: &Text) -> String {
    let mut escaped = String::new();
    for c in text.value.chars() {
        match c {
            '\n' | '\t' => escaped.push(c),
            c => push_escaped(&mut escaped, c),
        }
    }
    let mut quotes = vec!["\"\"\"", "'''"];
    quotes.retain(|quote| !escaped.contains(quote));
    let last = escaped.chars().last();
    // If the text ends with a quote, prefer the other kind.
    quotes.sort_by_key(|quote| quote.chars().next() == last);
    let marked = if text.is_marked { "u" } else { "" };
    let Some(quote) = quotes.first() else {
        let plain = repr(&Text { is_marked: false, ..text.clone() });
        let quote = if plain.starts_with('"') { "\"\"\"" } else { "'''" };
        let inner = plain.get(1..plain.len() - 1).unwrap_or_default();
        return format!("{marked}{quote}{inner}{quote}");
    };
    if last.is_some() && quote.chars().next() == last {
        escaped.insert(escaped.len() - 1, '\\');
    }
    format!("{marked}{quote}{escaped}{quote}")
}

/// Returns Python's `repr` of a number, and true if it is an integer.
pub(super) fn number(literal: &str) -> Option<(String, bool)> {
    let plain = literal.replace('_', "").to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8)] {
        if let Some(digits) = plain.strip_prefix(prefix) {
            return Some((BigInt::parse_bytes(digits.as_bytes(), radix)?.to_string(), true));
        }
    }
    if let Some(imaginary) = plain.strip_suffix('j') {
        let written = float(imaginary)?;
        return Some((format!("{}j", written.strip_suffix(".0").unwrap_or(&written)), false));
    }
    if plain.bytes().all(|b| b.is_ascii_digit()) {
        return Some((BigInt::parse_bytes(plain.as_bytes(), 10)?.to_string(), true));
    }
    Some((float(&plain)?, false))
}

fn float(plain: &str) -> Option<String> {
    let value: f64 = plain.parse().ok()?;
    // There is no literal for infinity.
    Some(if value.is_infinite() { "1e309".into() } else { python::float_repr(value) })
}
