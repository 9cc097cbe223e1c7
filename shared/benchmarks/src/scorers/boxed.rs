//! Boxed mathematics: MathArena's parser for integer answers, and the scorer that uses it.
//!
//! Protocol: eth-sri/matharena at e9276603, `src/matharena/parser.py` and `grader.py` with `strict_parsing: false` (MIT
//! license). The order of its steps, its replacements and its patterns decide verdicts, so this module follows them one
//! by one. The official parser evaluates expressions with SymPy; this module has its own evaluator, checked against the
//! official one with generated replies. Surprising behavior is kept: text in a box disappears, a list with one number
//! is that number, and a gold answer of 0 never matches, because the relative difference is undefined.
//!
//! Omitted: the official list of recorded replies of particular models to particular problems.

mod gold;
mod infix;
mod last_box;
mod latex;
mod list;
mod normalize;
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

/// Maximum number of characters of a box's content after the clean-up. Longer contents aren't integers.
const CONTENT_CHARS_MAX: usize = 1000;

/// Maximum nesting depth when an answer is formatted.
const TEXT_DEPTH_MAX: u32 = 64;

/// Maximum absolute and relative difference between equal numbers.
const TOLERANCE: f64 = 1e-10;

/// Confidence of the parser in its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Warning {
    /// The box has readable content.
    None,
    /// The box is drawn with special characters.
    Possible,
    /// There is no box, or its content isn't readable.
    Major,
}

/// The official parser raises an exception here and so finds no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Crash;

/// Parsed answer.
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

    /// Returns the text that the official parser prints. Values nested too deeply are omitted.
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

    /// Returns true if the value equals an integer within the official tolerance.
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

/// Place where an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Source {
    /// Last box.
    Box,
    /// Last integer of the text, if there is no readable box.
    LastInteger,
    /// No answer was found.
    Nowhere,
}

/// Answer extracted from a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Extraction {
    value: Option<Value>,
    /// Text of the answer; `None` if there is none.
    pub(crate) text: Option<String>,
    /// Place where it was found.
    pub(crate) source: Source,
    /// Confidence of the parser.
    pub(crate) warning: Warning,
}

impl Extraction {
    /// Returns true if the answer equals an integer.
    pub(crate) fn equals(&self, gold: &BigInt) -> bool {
        self.value.as_ref().is_some_and(|value| value.equals(gold))
    }

    fn new(value: Option<Value>, source: Source, warning: Warning) -> Self {
        let text = value.as_ref().map(|value| value.text(",", TEXT_DEPTH_MAX));
        Self { value, text, source, warning }
    }
}

/// Extracts the answer from a reply.
pub(crate) fn extract(reply: &str) -> Extraction {
    let (text, warning) = match glm_letter(reply) {
        Some(letter) => (format!("\\boxed{{{letter}}}"), Warning::Major),
        None => {
            let (text, drawn) = normalize::replace_glyphs(reply);
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

/// Returns the letter of a reply that consists of a single letter in GLM's box tokens.
fn glm_letter(reply: &str) -> Option<char> {
    let inside = reply.strip_prefix("\n<|begin_of_box|>")?.strip_suffix("<|end_of_box|>")?;
    inside.chars().next().filter(|letter| inside.len() == 1 && ('A'..='E').contains(letter))
}

fn parse_content(content: &str) -> Result<(Option<Value>, Warning), Crash> {
    if let Some(value) = python::parse_int(content) {
        return Ok((Some(Value::integer(value)), Warning::None));
    }
    let normalized = normalize::normalize(content);
    let text = normalize::strip_outer_parentheses(&normalized);
    if text.chars().nth(CONTENT_CHARS_MAX).is_some() {
        let prefix: String = text.chars().take(40).collect();
        return Ok((Some(Value::Symbolic(format!("{prefix}…"))), Warning::Possible));
    }
    let Some((mut entries, warning)) = list::parse_list(&format!("({text})"), 0)? else {
        return Ok((None, Warning::Major));
    };
    let value = if entries.len() == 1 { entries.pop().flatten() } else { Some(Value::List(entries)) };
    Ok((value.map(as_answer), warning))
}

/// Removes entries without a digit from a list. A list of one entry becomes that entry.
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

/// Returns the last integer that is a word of its own.
fn last_integer(text: &str) -> Option<BigInt> {
    let found = normalize::LAST_INTEGER.as_ref()?.find_iter(text).last()?;
    python::parse_int(found.as_str())
}

#[cfg(test)]
mod tests;
