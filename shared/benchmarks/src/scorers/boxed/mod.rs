//! Boxed mathematics: MathArena's answer parser for integer answers, and the scorer that uses it.
//!
//! Protocol: eth-sri/matharena at e9276603, `src/matharena/parser.py` and `grader.py` with
//! `strict_parsing: false` (MIT licence). The order of its steps, its replacements and its patterns decide
//! verdicts, so they are followed one by one; the evaluation, for which it calls a symbolic engine, is our
//! own. Checked against the original with generated replies.
//! What it does is kept even where it surprises: text in a box vanishes, a list with one number in it
//! is that number, and a gold of 0 can never be met, because the relative difference is then undefined.
//!
//! Not kept: its list of recorded replies of particular models to particular problems.

mod gold;
mod infix;
mod last_box;
mod latex;
mod list;
mod normalise;
mod number;
mod primitive;
mod scorer;

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive};
use serde::Serialize;

use crate::python;
use number::{Number, Rational};

pub(crate) use gold::gold;
pub use scorer::BoxedInteger;

/// Characters that a boxed content may have after the clean-up; longer ones are no integer.
const CONTENT_CHARS_MAX: usize = 1000;

/// Nesting that an answer may have when it is written down.
const TEXT_DEPTH_MAX: u32 = 64;

/// Largest difference, absolute and relative, at which two numbers count as equal.
const TOLERANCE: f64 = 1e-10;

/// How sure the parser is of what it read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Warning {
    /// A box with something readable in it.
    None,
    /// A box drawn with glyphs.
    Possible,
    /// No box, or nothing readable in it.
    Major,
}

/// The original ends with an exception here, so it gives no answer at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Crash;

/// What a reply's answer was read as.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number { number: Number, text: String },
    Symbolic(String),
    List(Vec<Option<Value>>),
}

impl Value {
    fn integer(value: BigInt) -> Self {
        Self::Number { text: value.to_string(), number: Number::from(value) }
    }

    /// As the original prints it; what is nested too deeply is left out.
    fn text(&self, separator: &str, depth: u32) -> String {
        match self {
            Self::Number { text, .. } | Self::Symbolic(text) => text.clone(),
            Self::List(_) if depth == 0 => "[]".into(),
            Self::List(entries) => {
                let entries: Vec<String> = entries
                    .iter()
                    .map(|entry| {
                        entry.as_ref().map_or_else(|| "None".into(), |entry| entry.text(", ", depth - 1))
                    })
                    .collect();
                format!("[{}]", entries.join(separator))
            }
        }
    }

    /// Equality with an integer, within the tolerance of the original.
    fn equals(&self, gold: &BigInt) -> bool {
        let Self::Number { number, .. } = self else { return false };
        let difference = match number {
            Number::Exact(value) => {
                number::rational_to_f64(&(value - Rational::from_integer(gold.clone())).abs())
            }
            Number::Approximate { re, im } => (re - gold.to_f64().unwrap_or(f64::NAN)).hypot(*im),
        };
        let largest = number.absolute().parts().0.max(gold.abs().to_f64().unwrap_or(f64::INFINITY));
        difference < TOLERANCE && difference / largest < TOLERANCE
    }
}

/// Where an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// The last box.
    Box,
    /// The last integer of the text, since there is no readable box.
    LastInteger,
    /// Nowhere.
    Nowhere,
}

/// The answer of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extraction {
    value: Option<Value>,
    /// How it is written; `None` when there is no answer.
    pub(crate) text: Option<String>,
    /// Where it was found.
    pub(crate) source: Source,
    /// How sure the parser is.
    pub(crate) warning: Warning,
}

impl Extraction {
    /// Whether the answer equals an integer.
    pub(crate) fn equals(&self, gold: &BigInt) -> bool {
        self.value.as_ref().is_some_and(|value| value.equals(gold))
    }

    fn new(value: Option<Value>, source: Source, warning: Warning) -> Self {
        let text = value.as_ref().map(|value| value.text(",", TEXT_DEPTH_MAX));
        Self { value, text, source, warning }
    }
}

/// Finds the answer of a reply.
pub(crate) fn extract(reply: &str) -> Extraction {
    let (text, warning) = match glm_letter(reply) {
        Some(letter) => (format!("\\boxed{{{letter}}}"), Warning::Major),
        None => {
            let (text, drawn) = normalise::replace_glyphs(reply);
            (text, if drawn { Warning::Possible } else { Warning::None })
        }
    };
    if let Some(content) = last_box::last_box(&text) {
        match parse_content(&content) {
            Ok((Some(value), content_warning)) => {
                return Extraction::new(Some(value), Source::Box, warning.max(content_warning));
            }
            Ok((None, _)) => {}
            Err(Crash) => return Extraction::new(None, Source::Nowhere, Warning::Major),
        }
    }
    match last_integer(&text) {
        Some(value) => Extraction::new(Some(Value::integer(value)), Source::LastInteger, Warning::Major),
        None => Extraction::new(None, Source::Nowhere, Warning::Major),
    }
}

/// The letter of a reply that is nothing but one letter in GLM's box tokens.
fn glm_letter(reply: &str) -> Option<char> {
    let inside = reply.strip_prefix("\n<|begin_of_box|>")?.strip_suffix("<|end_of_box|>")?;
    inside.chars().next().filter(|letter| inside.len() == 1 && ('A'..='E').contains(letter))
}

fn parse_content(content: &str) -> Result<(Option<Value>, Warning), Crash> {
    if let Some(value) = python::parse_int(content) {
        return Ok((Some(Value::integer(value)), Warning::None));
    }
    let normalised = normalise::normalise(content);
    let text = normalise::without_outer_parentheses(&normalised);
    if text.chars().nth(CONTENT_CHARS_MAX).is_some() {
        let shown: String = text.chars().take(40).collect();
        return Ok((Some(Value::Symbolic(format!("{shown}…"))), Warning::Possible));
    }
    let Some((mut entries, warning)) = list::parse_list(&format!("({text})"), 0)? else {
        return Ok((None, Warning::Major));
    };
    let value = if entries.len() == 1 { entries.pop().flatten() } else { Some(Value::List(entries)) };
    Ok((value.map(as_answer), warning))
}

/// Lists lose their entries without a digit, and a list of one entry is that entry.
fn as_answer(value: Value) -> Value {
    let Value::List(entries) = value else { return value };
    let has_digit = |entry: &Option<Value>| {
        entry.as_ref().is_some_and(|entry| {
            entry.text(", ", TEXT_DEPTH_MAX).chars().any(|c| python::digit_value(c).is_some())
        })
    };
    let mut entries: Vec<Option<Value>> = entries.into_iter().filter(has_digit).collect();
    match (entries.len(), entries.pop()) {
        (1, Some(Some(only))) => only,
        (_, Some(last)) => {
            entries.push(last);
            Value::List(entries)
        }
        (_, None) => Value::List(entries),
    }
}

/// The last run of digits that stands alone.
fn last_integer(text: &str) -> Option<BigInt> {
    let found = normalise::LAST_INTEGER.as_ref()?.find_iter(text).last()?;
    python::parse_int(found.as_str())
}

#[cfg(test)]
mod tests;
