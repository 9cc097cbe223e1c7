//! Reading the parameters of an instruction.

use serde_json::Value;

use super::super::text::{Keyword, PatternError};
use super::super::{CheckError, Kwargs};
use crate::python;

/// The parameters of one instruction.
pub(super) struct Parameters<'a> {
    id: &'a str,
    kwargs: &'a Kwargs,
}

/// A bound on a number of things.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    is_least: bool,
    number: f64,
}

impl Bound {
    /// Whether a count is below the number, or not below it.
    pub(super) fn allows(self, count: usize) -> bool {
        (amount(count) >= self.number) == self.is_least
    }
}

/// A count as the number that a parameter is compared with.
#[allow(clippy::cast_precision_loss)] // counts of what is in one text stay far below 2^53
pub(super) fn amount(count: usize) -> f64 {
    count as f64
}

impl<'a> Parameters<'a> {
    pub(super) fn new(id: &'a str, kwargs: &'a Kwargs) -> Self {
        Self { id, kwargs }
    }

    pub(super) fn error(&self, name: &'static str, problem: impl Into<String>) -> CheckError {
        CheckError::Parameter { id: self.id.to_owned(), name, problem: problem.into() }
    }

    fn value(&self, name: &'static str) -> Result<&'a Value, CheckError> {
        self.kwargs.get(name).ok_or_else(|| self.error(name, "is missing"))
    }

    /// A text with something in it.
    pub(super) fn text(&self, name: &'static str) -> Result<&'a str, CheckError> {
        match self.value(name)?.as_str() {
            Some("") => Err(self.error(name, "is empty")),
            Some(text) => Ok(text),
            None => Err(self.error(name, "is not a text")),
        }
    }

    /// A text with the blanks around it removed.
    pub(super) fn trimmed(&self, name: &'static str) -> Result<&'a str, CheckError> {
        self.text(name).map(python::strip)
    }

    /// A pattern as a check has it.
    pub(super) fn pattern<T>(
        &self,
        name: &'static str,
        made: Result<T, PatternError>,
    ) -> Result<T, CheckError> {
        made.map_err(|error| self.error(name, error.to_string()))
    }

    /// A list of words, each a pattern.
    pub(super) fn keywords(
        &self,
        name: &'static str,
        make: fn(&str) -> Result<Keyword, PatternError>,
    ) -> Result<Vec<Keyword>, CheckError> {
        let list = self.value(name)?.as_array().ok_or_else(|| self.error(name, "is not a list"))?;
        if list.is_empty() {
            return Err(self.error(name, "is empty"));
        }
        let words = list.iter().map(|word| {
            let word = word.as_str().ok_or_else(|| self.error(name, "has an entry that is not a text"))?;
            self.pattern(name, make(word))
        });
        words.collect()
    }

    /// A number of zero or more. It may have a fraction: it is only compared with.
    pub(super) fn number(&self, name: &'static str) -> Result<f64, CheckError> {
        let number = self.value(name)?.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.error(name, "is not a number"))?;
        if number < 0.0 { Err(self.error(name, "is negative")) } else { Ok(number) }
    }

    /// A place counted from 1.
    pub(super) fn place(&self, name: &'static str) -> Result<usize, CheckError> {
        let number = self.number(name)?;
        if number.fract() != 0.0 || !(1.0..1e15).contains(&number) {
            return Err(self.error(name, "is not a whole number from 1"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // whole, and within the range above
        Ok(number as usize)
    }

    /// A number together with the relation to it.
    pub(super) fn bound(&self, number: &'static str, relation: &'static str) -> Result<Bound, CheckError> {
        let number = self.number(number)?;
        match self.text(relation)? {
            "at least" => Ok(Bound { is_least: true, number }),
            "less than" => Ok(Bound { is_least: false, number }),
            _ => Err(self.error(relation, "is neither `at least` nor `less than`")),
        }
    }
}
