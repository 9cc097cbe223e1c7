//! Reads the fields of a request.
//!
//! A [`FieldReader`] notes every problem instead of stopping at the first. Types, messages and the form of a
//! problem are those that clients of the compatible system expect (section 0.2 of its specification).

mod collections;
mod scalars;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Display;

use axum::extract::Query;
use http::Uri;
use serde_json::{Map, Value};

use crate::query_key::KEY_PARAMETER;
use crate::{ApiError, FieldError};

/// Maximum length of the input that a problem quotes, in characters.
const QUOTED_CHARS_MAX: usize = 400;
/// Maximum length of an unknown field's name in a message, in characters.
const NAME_CHARS_MAX: usize = 80;
/// Maximum number of problems per request.
const PROBLEMS_MAX: usize = 50;

/// Part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Location {
    /// The JSON body.
    Body,
    /// The query string.
    Query,
    /// The path.
    Path,
}

impl Location {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Query => "query",
            Self::Path => "path",
        }
    }
}

/// Reads fields of a JSON object or of a query string.
#[derive(Debug)]
pub struct FieldReader {
    location: Location,
    /// Names of the enclosing objects, outermost first.
    within: Vec<Value>,
    fields: Map<String, Value>,
    /// Names of the fields that the caller has read.
    read_names: BTreeSet<String>,
    problems: Vec<FieldError>,
}

impl FieldReader {
    /// Creates a reader of a body's object.
    pub const fn from_body(fields: Map<String, Value>) -> Self {
        Self {
            location: Location::Body,
            within: Vec::new(),
            fields,
            read_names: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Creates a reader of the parameters of a path.
    pub fn from_path(parameters: &[(&str, &str)]) -> Self {
        let fields = parameters.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
        Self { location: Location::Path, ..Self::from_body(fields.collect()) }
    }

    /// Creates a reader of a query string. If a name is repeated, the last value counts. A key in it
    /// ([`KEY_PARAMETER`]) is left out, so that no problem can quote it.
    pub fn from_query(uri: &Uri) -> Self {
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(uri).map(|pairs| pairs.0);
        let pairs = pairs.unwrap_or_default().into_iter().filter(|(name, _)| name != KEY_PARAMETER);
        let fields = pairs.map(|(name, value)| (name, Value::String(value))).collect();
        Self {
            location: Location::Query,
            within: Vec::new(),
            fields,
            read_names: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// Returns the fields as sent.
    pub fn into_fields(self) -> Map<String, Value> {
        self.fields
    }

    /// Returns the names of the sent fields that weren't read, at most 50.
    pub fn unread(&self) -> Vec<String> {
        self.fields
            .keys()
            .filter(|name| !self.read_names.contains(*name))
            .take(PROBLEMS_MAX)
            .cloned()
            .collect()
    }

    /// Returns true if a field was sent and isn't null.
    pub fn has(&mut self, name: &str) -> bool {
        self.present(name).is_some()
    }

    /// Completes the reading.
    ///
    /// # Errors
    /// 422 with all problems, if there were any.
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.problems.truncate(PROBLEMS_MAX);
        if self.problems.is_empty() { Ok(()) } else { Err(ApiError::validation(self.problems)) }
    }

    /// Returns all problems, to report them together with those of other parts of the request.
    pub fn into_problems(mut self) -> Vec<FieldError> {
        self.problems.truncate(PROBLEMS_MAX);
        self.problems
    }

    /// Notes a problem that the caller of this reader found.
    pub fn note(&mut self, kind: &'static str, name: &str, msg: impl Into<String>) {
        let input = self.fields.get(name).cloned().unwrap_or(Value::Null);
        self.problem(kind, name, msg, input, None);
    }

    /// Notes a value that the caller of this reader found invalid.
    pub fn note_invalid(&mut self, name: &str, problem: impl Display) {
        let input = self.fields.get(name).cloned().unwrap_or(Value::Null);
        let error = FieldError::value_error(self.place(&[name.into()]), problem, quoted(input));
        self.problems.push(error);
    }

    /// Returns the value of a check that the caller of this reader made. Notes an error as a problem of the field.
    pub fn checked<T, E: Display>(&mut self, name: &str, checked: Result<T, E>) -> Option<T> {
        checked.map_err(|error| self.note_invalid(name, error)).ok()
    }

    /// Notes a field that isn't accepted, if it was sent.
    pub fn refuse(&mut self, name: &str, msg: impl Into<String>) {
        if self.present(name).is_some() {
            self.note("extra_forbidden", name, msg);
        }
    }

    /// Notes every field that isn't in `known`, so that a misspelled field isn't silently ignored.
    pub fn refuse_unknown(&mut self, known: &[&str]) {
        let unknown = self.fields.keys().filter(|name| !known.contains(&name.as_str()));
        let unknown: Vec<String> = unknown.take(PROBLEMS_MAX).cloned().collect();
        for name in unknown {
            let input = self.fields.get(&name).cloned().unwrap_or_default();
            let shown = short_name(&name);
            let msg = format!("Unknown field; known fields are {}", known.join(", "));
            self.problem("extra_forbidden", &shown, msg, input, None);
        }
    }

    fn problem(
        &mut self,
        kind: &'static str,
        name: &str,
        msg: impl Into<String>,
        input: Value,
        ctx: Option<Value>,
    ) {
        self.problem_at(kind, &[name.into()], msg, input, ctx);
    }

    fn problem_at(
        &mut self,
        kind: &'static str,
        place: &[Value],
        msg: impl Into<String>,
        input: Value,
        ctx: Option<Value>,
    ) {
        let loc = self.place(place);
        // The first sentence about a missing field is the one that knows why it is needed.
        if kind == "missing" && self.problems.iter().any(|known| known.kind == kind && known.loc == loc) {
            return;
        }
        self.problems.push(FieldError { kind, loc, msg: msg.into(), input: quoted(input), ctx });
    }

    /// Returns the location of a field in the request.
    fn place(&self, place: &[Value]) -> Vec<Value> {
        let mut loc = vec![Value::from(self.location.as_str())];
        loc.extend_from_slice(&self.within);
        loc.extend_from_slice(place);
        loc
    }

    /// Notes a problem with an entry of an object, under the entry's name.
    pub fn note_entry(&mut self, kind: &'static str, name: &str, entry: &str, msg: impl Into<String>) {
        let input = self.fields.get(name).and_then(|object| object.get(entry)).cloned();
        self.problem_at(kind, &[name.into(), entry.into()], msg, input.unwrap_or_default(), None);
    }

    /// Reads the fields of an object, if it was sent. The location of their problems includes the object's name.
    pub fn within<T>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let fields = self.maybe_object(name)?;
        let mut within = self.within.clone();
        within.push(name.into());
        let mut inner = Self {
            location: self.location,
            within,
            fields,
            read_names: BTreeSet::new(),
            problems: Vec::new(),
        };
        let value = read(&mut inner);
        self.problems.append(&mut inner.problems);
        Some(value)
    }

    /// Returns a field that was sent and isn't null.
    fn present(&mut self, name: &str) -> Option<Value> {
        self.read_names.insert(name.to_owned());
        self.fields.get(name).filter(|value| !value.is_null()).cloned()
    }
}

/// Returns an unknown field's name for a message, cut to 80 characters.
pub fn short_name(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Returns the sent value, cut so that the response doesn't become much larger than its problems.
fn quoted(input: Value) -> Value {
    let text = match &input {
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => input.to_string(),
        _ => return input,
    };
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        None => input,
        Some((end, _)) => Value::String(format!("{}…", text.get(..end).unwrap_or_default())),
    }
}
