//! Tokens of infix expressions.

use num_bigint::BigInt;

use super::NotInfix;
use crate::python;
use crate::scorers::boxed::number::Number;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(Number),
    Name(String),
    Operator(&'static str),
}

/// Operators; longer ones come before their prefixes.
const OPERATORS: [&str; 28] = [
    "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", "!",
    "<", ">", "|", "&", "~", "^", "@", ":", ".",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, NotInfix> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if matches!(c, ' ' | '\t' | '\u{c}') {
            rest = rest.get(1..).unwrap_or_default();
            continue;
        }
        if c == '#' {
            // A comment.
            break;
        }
        let second_is_digit = rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit());
        if c.is_ascii_digit() || (c == '.' && second_is_digit) {
            let (token, length) = number(rest)?;
            // A name that touches a number is an error in Python.
            rest = rest.get(length..).unwrap_or_default();
            if rest.starts_with(is_name_start) {
                return Err(NotInfix);
            }
            tokens.push(token);
        } else if is_name_start(c) {
            let length = rest.find(|c| !is_name_part(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(length);
            tokens.push(Token::Name(name.to_owned()));
            rest = after;
        } else {
            let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator)).ok_or(NotInfix)?;
            tokens.push(Token::Operator(operator));
            rest = rest.get(operator.len()..).unwrap_or_default();
        }
    }
    Ok(tokens)
}

/// As Python's tokenizer does, accepts every non-ASCII character as part of a name.
fn is_name_start(c: char) -> bool {
    c == '_' || c.is_ascii_alphabetic() || !c.is_ascii()
}

fn is_name_part(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit()
}

/// Reads the number at the start of a text. Returns it with its length in bytes.
fn number(text: &str) -> Result<(Token, usize), NotInfix> {
    let bytes = text.as_bytes();
    let radix = match (bytes.first(), bytes.get(1).map(u8::to_ascii_lowercase)) {
        (Some(b'0'), Some(b'x')) => Some(16),
        (Some(b'0'), Some(b'o')) => Some(8),
        (Some(b'0'), Some(b'b')) => Some(2),
        _ => None,
    };
    if let Some(radix) = radix {
        let digits = text.get(2..).unwrap_or_default();
        let length = digits.find(|c: char| !c.is_digit(radix) && c != '_').unwrap_or(digits.len());
        let digits = digits.get(..length).unwrap_or_default();
        let digits = checked_underscores(digits.strip_prefix('_').unwrap_or(digits))?;
        let value = BigInt::parse_bytes(digits.as_bytes(), radix).ok_or(NotInfix)?;
        return Ok((Token::Number(Number::from(value)), length + 2));
    }

    let digits_end = |from: usize| {
        let tail = bytes.get(from..).unwrap_or_default();
        from + tail.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count()
    };
    let whole_end = digits_end(0);
    let mut end = whole_end;
    if bytes.get(end) == Some(&b'.') {
        end = digits_end(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(signed).is_some_and(u8::is_ascii_digit) {
            end = digits_end(signed);
        }
    }
    let literal = text.get(..end).unwrap_or_default();
    let imaginary = matches!(bytes.get(end), Some(b'j' | b'J'));
    let length = end + usize::from(imaginary);
    if end == whole_end && !imaginary {
        let digits = checked_underscores(literal)?;
        let zeros_in_front =
            digits.len() > 1 && digits.starts_with('0') && digits.bytes().any(|byte| byte != b'0');
        if zeros_in_front {
            return Err(NotInfix);
        }
        let value = python::parse_int(&digits).ok_or(NotInfix)?;
        return Ok((Token::Number(Number::from(value)), length));
    }
    let value = python::parse_float(literal).ok_or(NotInfix)?;
    let number = if imaginary { Number::Approximate { re: 0.0, im: value } } else { Number::from(value) };
    Ok((Token::Number(number), length))
}

fn checked_underscores(digits: &str) -> Result<String, NotInfix> {
    if digits.is_empty() || digits.starts_with('_') || digits.ends_with('_') || digits.contains("__") {
        return Err(NotInfix);
    }
    Ok(digits.replace('_', ""))
}
