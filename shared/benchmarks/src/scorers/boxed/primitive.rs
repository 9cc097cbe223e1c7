//! Parses one expression of a box's content: as a plain number, else as infix expression, else as LaTeX.

use num_bigint::BigInt;
use num_traits::{FromPrimitive, ToPrimitive};

use super::infix::{self, Term};
use super::latex;
use super::normalize::{
    BINOMIAL, BRACED, BRACED_DIGITS, FRACTION, FRACTION_OF_DIGIT, LONE_I, NTH_ROOT, NTH_ROOT_IN_PARENTHESES,
    ROOT, ROOT_OF_DIGITS, SUBSCRIPT, substitute,
};
use super::number::Number;
use super::{Crash, Value, Warning};
use crate::python;

/// Maximum number of rewriting passes, as in the official parser.
const PASSES_MAX: usize = 5;

/// Maximum number of characters of a rewritten expression.
const REWRITTEN_CHARS_MAX: usize = 20_000;

/// Parses one expression; the value is `None` if that isn't possible.
pub(super) fn parse_primitive(text: &str) -> Result<(Option<Value>, Warning), Crash> {
    if !text.is_empty() && text.chars().all(python::is_digit) {
        let value = python::parse_int(text).ok_or(Crash)?;
        return Ok((Some(Value::integer(value)), Warning::None));
    }
    if let Some(value) = python::parse_float(text).filter(|value| !value.is_nan()) {
        if value.is_infinite() {
            return Err(Crash);
        }
        return Ok((Some(float_value(value)), Warning::None));
    }
    let text = substitute(text, &ROOT_OF_DIGITS, "sqrt{$1}");
    let text = substitute(&text, &FRACTION_OF_DIGIT, "frac{$1}");
    if let Ok(term) = infix::evaluate(&rewrite(&text)) {
        return Ok((Some(from_term(term, &text)), Warning::None));
    }
    let last_side = text.rsplit('=').next().unwrap_or_default();
    match latex::evaluate(&substitute(last_side, &SUBSCRIPT, "_{$1}")) {
        Some(latex::Outcome::Number(number)) => {
            Ok((Some(Value::Number { text: python_text(&number), number }), Warning::None))
        }
        Some(latex::Outcome::Symbolic(text)) => Ok((Some(Value::Symbolic(text)), Warning::None)),
        None => Ok((None, Warning::Major)),
    }
}

fn float_value(value: f64) -> Value {
    match BigInt::from_f64(value).filter(|_| value.fract() == 0.0) {
        Some(integer) => Value::integer(integer),
        None => Value::Number { number: Number::from(value), text: python::float_repr(value) },
    }
}

fn from_term(term: Term, source: &str) -> Value {
    match term {
        Term::Number(number) => Value::Number { text: number_text(&number, source), number },
        Term::Symbolic(text) => Value::Symbolic(text),
        Term::List(entries) => {
            Value::List(entries.into_iter().map(|entry| Some(from_term(entry, source))).collect())
        }
    }
}

/// Returns the value if it can be written exactly or is a plain real number, else the text of the expression.
fn number_text(number: &Number, source: &str) -> String {
    if let Some(text) = number.exact_text() {
        return text;
    }
    let Some(value) = number.real() else {
        return if source == "i" { "I".into() } else { source.trim().to_owned() };
    };
    if let Some(text) = closed_form(value, source) {
        return text;
    }
    // SymPy prints fifteen digits of a decimal number.
    if !source.contains("sqrt") && !source.contains("pi") && (1e-4..1e15).contains(&value.abs()) {
        let decimals = 14_i32.saturating_sub(value.abs().log10().floor().to_i32().unwrap_or(0)).max(0);
        return format!("{value:.*}", decimals.unsigned_abs() as usize);
    }
    if value == 0.0 { "0".into() } else { source.trim().to_owned() }
}

/// Returns a simple multiple of pi, e or a square root, if the expression contains that name.
fn closed_form(value: f64, source: &str) -> Option<String> {
    const DENOMINATOR_MAX: u32 = 60;
    const RADICAND_MAX: f64 = 1e9;
    let near =
        |value: f64| ((value - value.round()).abs() < 1e-10 * value.abs().max(1.0)).then(|| value.round());
    let (negative, value) = (value < 0.0, value.abs());
    let written = |factor: f64, name: String, denominator: u32| {
        let sign = if negative { "-" } else { "" };
        let factor = if factor == 1.0 { String::new() } else { format!("{factor}*") };
        let denominator = if denominator == 1 { String::new() } else { format!("/{denominator}") };
        format!("{sign}{factor}{name}{denominator}")
    };
    if !value.is_finite() || value == 0.0 {
        return None;
    }
    for (constant, name) in [(std::f64::consts::PI, "pi"), (std::f64::consts::E, "E")] {
        let is_named = source.contains(if name == "E" { "e" } else { name });
        for denominator in (1..=DENOMINATOR_MAX).filter(|_| is_named) {
            let factor = near(value / constant * f64::from(denominator))
                .filter(|&factor| (1.0..1e9).contains(&factor));
            if let Some(factor) = factor {
                return Some(written(factor, name.into(), denominator));
            }
        }
    }
    for denominator in (1..=DENOMINATOR_MAX).filter(|_| source.contains("sqrt")) {
        let square = (value * f64::from(denominator)).powi(2);
        let Some(square) = near(square).filter(|&square| (2.0..RADICAND_MAX).contains(&square)) else {
            continue;
        };
        let root = square.sqrt().floor().to_u32()?;
        let square = square.to_u32()?;
        let extracted = (1..=root).rev().find(|k| square % (k * k) == 0).unwrap_or(1);
        let radicand = square / (extracted * extracted);
        return Some(written(f64::from(extracted), format!("sqrt({radicand})"), denominator));
    }
    None
}

/// Formats a number as Python does.
fn python_text(number: &Number) -> String {
    if let Some(text) = number.exact_text() {
        return text;
    }
    let (re, im) = number.parts();
    if im == 0.0 && re.is_finite() {
        // As in the official parser, a product with pi is rounded once instead of twice.
        let factor = (re / std::f64::consts::PI).round();
        let product = factor.mul_add(std::f64::consts::PI, factor * 1.224_646_799_147_353_2e-16);
        let is_product = factor != 0.0 && (product - re).abs() <= 1e-15 * re.abs();
        return python::float_repr(if is_product { product } else { re });
    }
    let part = |value: f64| {
        let text = python::float_repr(value);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    if re == 0.0 {
        return format!("{}j", part(im));
    }
    let sign = if im < 0.0 { "" } else { "+" };
    format!("({}{sign}{}j)", part(re), part(im))
}

/// Rewrites LaTeX in Python notation, as far as the official parser does.
fn rewrite(text: &str) -> String {
    let mut text = text.to_owned();
    for digits_first in [false, true] {
        for _ in 0..PASSES_MAX {
            let before = text.clone();
            if digits_first {
                text = substitute(&text, &BRACED_DIGITS, "($1)");
            }
            text = rewrite_once(&text);
            if text == before || text.len() > REWRITTEN_CHARS_MAX {
                break;
            }
        }
    }
    let text = mark_products(&text);
    match &*BRACED {
        Some(pattern) => pattern
            .replace_all(&text, |found: &regex::Captures<'_>| {
                format!("[{}]", found.get(1).map_or("", |inside| inside.as_str()).replace(',', ", "))
            })
            .into_owned(),
        None => text,
    }
}

fn rewrite_once(text: &str) -> String {
    let text = substitute(text, &FRACTION, "($1)/($2)");
    let text = substitute(&text, &BINOMIAL, "binomial($1, $2)");
    let text = substitute(&text, &NTH_ROOT, "($2)**(1/($1))");
    let text = substitute(&text, &NTH_ROOT_IN_PARENTHESES, "($2)**(1/($1))");
    let text = substitute(&text, &ROOT, "($1)**(1/2)");
    let text = text.replace('^', "**").replace("\\cdot", "*").replace("\\times", "*");
    let text = text.replace("\\pi", " pi ").replace("\\e", " E ").replace("\\i", " I ");
    substitute(&text, &LONE_I, "I")
}

/// Returns true if `characters` starts with a run of one or two ASCII letters.
fn is_short_name<'a>(characters: impl Iterator<Item = &'a char>) -> bool {
    let length = characters.take(3).take_while(|c| c.is_ascii_alphabetic()).count();
    (1..=2).contains(&length)
}

/// Inserts `*` for implicit products: around parentheses, and between a digit and a name of one or two letters.
fn mark_products(text: &str) -> String {
    let is_digit = |c: Option<&char>| c.is_some_and(|&c| python::digit_value(c).is_some());
    type Rule<'a> = &'a dyn Fn(&[char], &[char]) -> bool;
    let rules: [Rule<'_>; 4] = [
        &|before, after| {
            after.first() == Some(&'(') && (is_digit(before.last()) || is_short_name(before.iter().rev()))
        },
        &|before, after| {
            before.last() == Some(&')') && (is_digit(after.first()) || is_short_name(after.iter()))
        },
        &|before, after| is_digit(before.last()) && is_short_name(after.iter()),
        &|before, after| is_digit(after.first()) && is_short_name(before.iter().rev()),
    ];
    let mut characters: Vec<char> = text.chars().collect();
    for rule in rules {
        let mut marked = Vec::with_capacity(characters.len() + 8);
        for (at, c) in characters.iter().enumerate() {
            let (before, after) = characters.split_at(at);
            if rule(before, after) {
                marked.push('*');
            }
            marked.push(*c);
        }
        characters = marked;
    }
    characters.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latex_becomes_infix() {
        for (latex, infix) in [
            ("\\frac{140}{2}", "(140)/(2)"),
            ("\\sqrt{49}", "(49)**(1/2)"),
            ("2^{3}", "2**(3)"),
            ("\\binom{8}{2}", "binomial(8, 2)"),
            ("7\\cdot10", "7*10"),
            ("7x(3)y", "7*x*(3)*y"),
            ("2pi(3)", "2*pi*(3)"),
            ("\\sqrt[3]{8}", "(8)**(1/(3))"),
            ("\\frac{\\sqrt{16}}{2}", "((16)**(1/2))/(2)"),
            ("{7+63}", "[7+63]"),
            ("abc(7)", "abc(7)"),
        ] {
            assert_eq!(rewrite(latex), infix, "{latex:?}");
        }
    }

    #[test]
    fn digits_that_are_not_numbers_crash_the_official_parser() {
        assert!(parse_primitive("7²").is_err());
        assert!(parse_primitive("1e999").is_err());
        assert!(parse_primitive("70").is_ok());
    }
}
