//! Reads the parameters of an instruction.

use serde_json::Value;

use super::super::text::{Keyword, PatternError};
use super::super::{CheckError, Kwargs};
use crate::python;

/// Parameters of one instruction.
pub(super) struct Parameters<'a> {
    id: &'a str,
    kwargs: &'a Kwargs,
}

/// Bound on a count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    is_minimum: bool,
    number: f64,
}

impl Bound {
    /// Returns true if a count satisfies the bound.
    pub(super) fn allows(self, count: usize) -> bool {
        (amount(count) >= self.number) == self.is_minimum
    }
}

/// Converts a count to the type of the parameters that it is compared with.
#[allow(clippy::cast_precision_loss)] // counts within one text stay far below 2^53
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

    /// Returns a nonempty text.
    pub(super) fn text(&self, name: &'static str) -> Result<&'a str, CheckError> {
        match self.value(name)?.as_str() {
            Some("") => Err(self.error(name, "is empty")),
            Some(text) => Ok(text),
            None => Err(self.error(name, "is not a string")),
        }
    }

    /// Returns a text without surrounding whitespace.
    pub(super) fn trimmed(&self, name: &'static str) -> Result<&'a str, CheckError> {
        self.text(name).map(python::strip)
    }

    /// Adds the name of the parameter to an error in its pattern.
    pub(super) fn pattern<T>(
        &self,
        name: &'static str,
        compiled: Result<T, PatternError>,
    ) -> Result<T, CheckError> {
        compiled.map_err(|error| self.error(name, error.to_string()))
    }

    /// Returns a list of words that are patterns.
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
            let word = word.as_str().ok_or_else(|| self.error(name, "has an entry that is not a string"))?;
            self.pattern(name, make(word))
        });
        words.collect()
    }

    /// Returns a nonnegative number. It may have a fraction, because it is only compared with.
    pub(super) fn number(&self, name: &'static str) -> Result<f64, CheckError> {
        let number = self.value(name)?.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.error(name, "is not a number"))?;
        if number < 0.0 { Err(self.error(name, "is negative")) } else { Ok(number) }
    }

    /// Returns a position counted from 1.
    pub(super) fn position(&self, name: &'static str) -> Result<usize, CheckError> {
        let number = self.number(name)?;
        if number.fract() != 0.0 || !(1.0..1e15).contains(&number) {
            return Err(self.error(name, "is not a whole number from 1"));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // an integer within the range above
        Ok(number as usize)
    }

    /// Returns a bound from a number and its relation.
    pub(super) fn bound(&self, number: &'static str, relation: &'static str) -> Result<Bound, CheckError> {
        let number = self.number(number)?;
        match self.text(relation)? {
            "at least" => Ok(Bound { is_minimum: true, number }),
            "less than" => Ok(Bound { is_minimum: false, number }),
            _ => Err(self.error(relation, "is neither `at least` nor `less than`")),
        }
    }
}
