//! Operators of infix expressions.

use num_traits::ToPrimitive;

use super::NotInfix;
use super::term::{Term, TermResult, as_base, as_factor, is_sum};
use crate::scorers::boxed::number::Number;

/// Maximum length of a repeated list.
const REPEATED_MAX: usize = 1000;

/// Names in SymPy that aren't values.
const NOT_VALUES: [&str; 7] = ["True", "False", "None", "N", "O", "Q", "S"];

/// Rejects lists, truth values and comparisons, on which arithmetic is an error.
pub(super) fn scalar(term: Term) -> TermResult {
    match &term {
        Term::List(_) => Err(NotInfix),
        Term::Symbolic(text) if NOT_VALUES.contains(&text.as_str()) => Err(NotInfix),
        Term::Symbolic(text) if text.contains(['<', '>', '=']) => Err(NotInfix),
        _ => Ok(term),
    }
}

pub(super) fn add(left: Term, right: Term) -> TermResult {
    match (scalar(left)?, scalar(right)?) {
        (Term::Number(a), Term::Number(b)) => Ok(Term::Number(a.plus(&b))),
        (a, b) if a.is_zero() => Ok(b),
        (a, b) if b.is_zero() => Ok(a),
        // SymPy writes numbers last, except before a minus sign.
        (a @ Term::Number(_), b) => match b.text().strip_prefix('-') {
            Some(taken) => Ok(Term::Symbolic(format!("{} - {taken}", a.text()))),
            None => add(b, a),
        },
        (a, b) => {
            let (a, b) = (a.text(), b.text());
            if b == format!("-{a}") || a == format!("-{b}") {
                return Ok(Term::Number(Number::from(0)));
            }
            Ok(Term::Symbolic(match b.strip_prefix('-') {
                Some(b) => format!("{a} - {b}"),
                None => format!("{a} + {b}"),
            }))
        }
    }
}

pub(super) fn negate(term: Term) -> TermResult {
    match scalar(term)? {
        Term::Number(number) => Ok(Term::Number(number.negated())),
        other => Ok(Term::Symbolic(format!("-{}", as_factor(&other.text())))),
    }
}

pub(super) fn multiply(left: Term, right: Term) -> TermResult {
    if let (Term::List(entries), Term::Number(count)) | (Term::Number(count), Term::List(entries)) =
        (&left, &right)
    {
        let count = count.integer().ok_or(NotInfix)?.to_i64().ok_or(NotInfix)?;
        let count = usize::try_from(count).unwrap_or(0);
        if count.saturating_mul(entries.len()) > REPEATED_MAX {
            return Err(NotInfix);
        }
        let repeated = std::iter::repeat_n(entries, count).flatten().cloned().collect();
        return Ok(Term::List(repeated));
    }
    match (scalar(left)?, scalar(right)?) {
        (Term::Number(a), Term::Number(b)) => Ok(Term::Number(a.times(&b))),
        (a, b) if a.is_zero() || b.is_zero() => Ok(Term::Number(Number::from(0))),
        (a, b) if a.is_one() => Ok(b),
        (a, b) if b.is_one() => Ok(a),
        // SymPy writes numbers first.
        (a, b @ Term::Number(_)) => multiply(b, a),
        // SymPy combines integer factors.
        (Term::Number(a), b) => {
            let text = b.text();
            let product = text.split_once('*').filter(|(_, rest)| !rest.starts_with('*') && !is_sum(&text));
            match product.and_then(|(factor, rest)| Some((Number::from(factor.parse::<i64>().ok()?), rest))) {
                Some((factor, rest)) => {
                    Ok(Term::Symbolic(format!("{}*{rest}", a.times(&factor).inner_text())))
                }
                None => Ok(Term::Symbolic(format!("{}*{}", a.inner_text(), as_factor(&text)))),
            }
        }
        (a, b) => Ok(Term::Symbolic(format!("{}*{}", as_factor(&a.text()), as_factor(&b.text())))),
    }
}

pub(super) fn divide(left: Term, right: Term) -> TermResult {
    match (scalar(left)?, scalar(right)?) {
        (Term::Number(a), Term::Number(b)) => Ok(Term::Number(a.divided_by(&b))),
        (a, b) if a.is_zero() => Ok(if b.is_zero() { Term::Number(Number::UNDEFINED) } else { a }),
        (a, b) if b.is_one() => Ok(a),
        (a, b) if a == b => Ok(Term::Number(Number::from(1))),
        (a, b) => Ok(Term::Symbolic(format!("{}/{}", as_factor(&a.text()), as_base(&b.text())))),
    }
}

/// Returns the text of a comparison, or of its truth value if that can be decided.
pub(super) fn comparison_text(operator: &str, left: &Term, right: &Term) -> String {
    if let (Term::Number(a), Term::Number(b)) = (left, right)
        && let (Some(a), Some(b)) = (a.real(), b.real())
    {
        let truth = match operator {
            "<" => Some(a < b),
            ">" => Some(a > b),
            "<=" => Some(a <= b),
            ">=" => Some(a >= b),
            _ => None,
        };
        if let Some(truth) = truth {
            return if truth { "True".into() } else { "False".into() };
        }
    }
    format!("{} {operator} {}", left.text(), right.text())
}

pub(super) fn modulo(left: Term, right: Term) -> TermResult {
    match (scalar(left)?, scalar(right)?) {
        (Term::Number(a), Term::Number(b)) => a.modulo(&b).map(Term::Number).ok_or(NotInfix),
        (a, b) => Ok(Term::Symbolic(format!("Mod({}, {})", a.text(), b.text()))),
    }
}

pub(super) fn raise(base: Term, exponent: Term) -> TermResult {
    match (scalar(base)?, scalar(exponent)?) {
        (Term::Number(a), Term::Number(b)) => Ok(Term::Number(a.power(&b))),
        (_, b) if b.is_zero() => Ok(Term::Number(Number::from(1))),
        (a, _) if a.is_one() => Ok(a),
        (a, b) if b.is_one() => Ok(a),
        (a, b) => Ok(Term::Symbolic(format!("{}**{}", as_base(&a.text()), as_base(&b.text())))),
    }
}

pub(super) fn bitwise(operator: &str, left: &Term, right: &Term) -> TermResult {
    if let (Term::Number(a), Term::Number(b)) = (left, right) {
        let (a, b) = (a.integer().ok_or(NotInfix)?, b.integer().ok_or(NotInfix)?);
        let distance = || b.to_u32().filter(|&bits| bits <= 10_000).ok_or(NotInfix);
        return Ok(Term::Number(Number::from(match operator {
            "|" => a | b,
            "&" => a & b,
            "^" => a ^ b,
            "<<" => a << distance()?,
            _ => a >> distance()?,
        })));
    }
    match (operator, left, right) {
        ("|" | "&", Term::Symbolic(a), Term::Symbolic(b)) => {
            Ok(Term::Symbolic(format!("{a} {operator} {b}")))
        }
        _ => Err(NotInfix),
    }
}
