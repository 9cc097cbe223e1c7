//! Reads the parameters of an instruction.

use serde_json::Value;

use super::super::text::Keyword;
use super::super::{CheckError, Kwargs};

/// Parameters of one instruction.
pub(super) struct Parameters<'a> {
    id: &'a str,
    kwargs: &'a Kwargs,
}

impl<'a> Parameters<'a> {
    pub(super) fn new(id: &'a str, kwargs: &'a Kwargs) -> Self {
        Self { id, kwargs }
    }

    /// Creates an error that names the parameter.
    fn error(&self, name: &'static str, problem: impl Into<String>) -> CheckError {
        CheckError::Parameter { id: self.id.to_owned(), name, problem: problem.into() }
    }

    /// Creates the error of an instruction that can't be checked.
    pub(super) fn unavailable(&self, why: &'static str) -> CheckError {
        CheckError::Unavailable { id: self.id.to_owned(), why }
    }

    fn value(&self, name: &'static str) -> Result<&'a Value, CheckError> {
        let value = self.kwargs.get(name).filter(|value| !value.is_null());
        value.ok_or_else(|| self.error(name, "is missing"))
    }

    /// Returns a text, which may be empty.
    pub(super) fn text(&self, name: &'static str) -> Result<&'a str, CheckError> {
        self.value(name)?.as_str().ok_or_else(|| self.error(name, "is not a string"))
    }

    /// Returns a nonempty text.
    pub(super) fn nonempty_text(&self, name: &'static str) -> Result<&'a str, CheckError> {
        let text = self.text(name)?;
        if text.is_empty() { Err(self.error(name, "is empty")) } else { Ok(text) }
    }

    /// Returns a literal word, which is searched as a whole word in any case.
    pub(super) fn word(&self, name: &'static str) -> Result<Keyword, CheckError> {
        let word = Keyword::whole_word(&regex::escape(self.nonempty_text(name)?));
        word.map_err(|error| self.error(name, error.to_string()))
    }

    /// Returns a nonnegative number. It may have a fraction, because it is only compared with.
    pub(super) fn number(&self, name: &'static str) -> Result<f64, CheckError> {
        let number = self.value(name)?.as_f64().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| self.error(name, "is not a number"))?;
        if number < 0.0 { Err(self.error(name, "is negative")) } else { Ok(number) }
    }

    /// Returns a positive number.
    pub(super) fn positive(&self, name: &'static str) -> Result<f64, CheckError> {
        let number = self.number(name)?;
        if number > 0.0 { Ok(number) } else { Err(self.error(name, "is zero")) }
    }

    /// Returns an integer, which may be written as a float without a fraction.
    pub(super) fn integer(&self, name: &'static str) -> Result<i64, CheckError> {
        let value = self.value(name)?;
        let number = value.as_f64().ok_or_else(|| self.error(name, "is not a number"))?;
        #[allow(clippy::cast_possible_truncation)] // below 2^53 and without a fraction
        let whole = (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64);
        whole.ok_or_else(|| self.error(name, "is not a whole number"))
    }

    /// Returns a position counted from 1.
    pub(super) fn position(&self, name: &'static str) -> Result<usize, CheckError> {
        let whole = self.integer(name)?;
        let place = usize::try_from(whole).ok().filter(|&place| place > 0);
        place.ok_or_else(|| self.error(name, "is below 1"))
    }
}

/// Converts a count to the type of the parameters that it is compared with.
#[allow(clippy::cast_precision_loss)] // counts within one text stay far below 2^53
pub(super) fn amount(count: usize) -> f64 {
    count as f64
}
