//! One problem of a request.

use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, SchemaType, Type};

/// Problem with one field of a request.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FieldError {
    /// Kind of problem, such as `missing` or `int_parsing`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Location: `body` or `query`, then the field's name, then the index in a list or the name in an object.
    #[schema(schema_with = loc_schema)]
    pub loc: Vec<Value>,
    /// Problem, in a sentence for people.
    pub msg: String,
    /// Value as sent, cut to 400 characters.
    pub input: Value,
    /// Limit that the value exceeds; for `value_error`, the sentence of `msg` without its prefix, as `error`. Left out for
    /// other kinds of problems.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub ctx: Option<Value>,
}

/// Returns the schema of a location: a list of names and indices.
fn loc_schema() -> ArrayBuilder {
    let part = SchemaType::from_iter([Type::String, Type::Integer]);
    ArrayBuilder::new().items(ObjectBuilder::new().schema_type(part)).description(Some(
        "Location: `body` or `query`, then the field's name, then the index in a list or the name in an object.",
    ))
}

impl FieldError {
    /// Creates a problem for a value that a check of this server rejects.
    pub fn value_error(loc: Vec<Value>, problem: impl fmt::Display, input: Value) -> Self {
        // The compatible system puts these words before the sentence of a check.
        let msg = format!("Value error, {problem}");
        Self { kind: "value_error", loc, msg, input, ctx: Some(json!({ "error": problem.to_string() })) }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place: Vec<String> = self
            .loc
            .iter()
            .skip(1)
            .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
            .collect();
        match place.join(".") {
            place if place.is_empty() => f.write_str(&self.msg),
            place => write!(f, "{place}: {}", self.msg),
        }
    }
}
