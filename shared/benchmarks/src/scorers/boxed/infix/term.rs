//! Values of infix expressions.

use super::NotInfix;
use crate::scorers::boxed::number::Number;

/// Result of parsing and evaluating a part of an expression.
pub(super) type TermResult = Result<Term, NotInfix>;

/// Value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::scorers::boxed) enum Term {
    /// A number.
    Number(Number),
    /// Text of a value with an unknown, a truth value or a function.
    Symbolic(String),
    /// A list or tuple.
    List(Vec<Term>),
}

/// Returns true if the operators of a written expression bind less tightly than a product.
pub(super) fn is_sum(text: &str) -> bool {
    let mut depth = 0_i32;
    text.char_indices().any(|(at, c)| {
        depth += match c {
            '(' | '[' => 1,
            ')' | ']' => -1,
            _ => 0,
        };
        depth == 0 && (c == '+' || (c == '-' && at > 0) || matches!(c, '<' | '>' | '=' | '|' | '&' | '%'))
    })
}

fn is_product(text: &str) -> bool {
    text.starts_with('-') || text.contains(['*', '/']) || is_sum(text)
}

pub(super) fn as_factor(text: &str) -> String {
    if is_sum(text) { format!("({text})") } else { text.to_owned() }
}

pub(super) fn as_base(text: &str) -> String {
    if is_product(text) { format!("({text})") } else { text.to_owned() }
}

impl Term {
    /// Returns the text of the value.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Number(number) => number.inner_text(),
            Self::Symbolic(text) => text.clone(),
            Self::List(entries) => {
                format!("[{}]", entries.iter().map(Self::text).collect::<Vec<_>>().join(", "))
            }
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        matches!(self, Self::Number(number) if number.is_zero())
    }

    /// Returns the truth of the value as a condition; `None` if it can't be decided.
    pub(super) fn counts_as_true(&self) -> Option<bool> {
        match self {
            Self::Number(_) => Some(!self.is_zero()),
            Self::List(entries) => Some(!entries.is_empty()),
            Self::Symbolic(text) if text == "False" || text == "None" => Some(false),
            Self::Symbolic(text) if text.contains(['<', '>']) => None,
            Self::Symbolic(_) => Some(true),
        }
    }

    /// Returns true for numbers with an imaginary part.
    pub(super) fn is_complex(&self) -> bool {
        matches!(self, Self::Number(number) if number.parts().1 != 0.0)
    }

    pub(super) fn is_one(&self) -> bool {
        *self == Self::Number(Number::from(1))
    }
}
