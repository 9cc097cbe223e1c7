//! The instructions of a row, and the check of a response against them.

use std::borrow::Cow;

use bench_items::{Row, RowError};
use serde_json::Value;

use super::variants::variants;
use super::{Check, CheckError, CheckFactory, Kwargs, Problem};
use crate::python;

/// Instructions that a response follows, in the row's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FollowedInstructions {
    /// True for each instruction that the unchanged response follows.
    pub(crate) strict: Vec<bool>,
    /// True for each instruction that the response or one of its variants follows.
    pub(crate) loose: Vec<bool>,
}

/// Instructions of a row, which can check any number of responses.
pub(crate) struct Instructions {
    checks: Vec<Box<dyn Check>>,
}

/// Returns the value of a list column.
fn list<'r>(row: &'r Row, column: &str) -> Result<&'r Vec<Value>, RowError> {
    match row.get(column) {
        Some(Value::Array(list)) => Ok(list),
        Some(Value::Null) | None => Err(RowError::column(column, "is missing")),
        Some(_) => Err(RowError::column(column, "is not a list")),
    }
}

/// Returns the ids of a row's instructions.
pub(crate) fn ids(row: &Row) -> Result<Vec<&str>, RowError> {
    let column = "instruction_id_list";
    let ids: Option<Vec<&str>> = list(row, column)?.iter().map(Value::as_str).collect();
    let ids = ids.ok_or_else(|| RowError::column(column, "has an entry that is not a string"))?;
    if ids.is_empty() { Err(RowError::column(column, "is empty")) } else { Ok(ids) }
}

/// Returns the parameters that aren't `null`.
pub(super) fn without_nulls(entry: &Kwargs) -> Kwargs {
    let present = entry.iter().filter(|(_, value)| !value.is_null());
    present.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns the parameters of one instruction; `None` if the entry isn't an object.
fn read_kwargs(entry: &Value) -> Option<Cow<'_, Kwargs>> {
    match entry {
        Value::Object(entry) if entry.values().any(Value::is_null) => Some(Cow::Owned(without_nulls(entry))),
        Value::Object(entry) => Some(Cow::Borrowed(entry)),
        Value::Null => Some(Cow::Owned(Kwargs::new())),
        _ => None,
    }
}

/// Returns the parameters of a row's `count` instructions. In the hub's files, each entry also lists all other
/// parameters as `null`.
fn parameters(row: &Row, count: usize) -> Result<Vec<Cow<'_, Kwargs>>, RowError> {
    let column = "kwargs";
    let entries = list(row, column)?;
    if entries.len() != count {
        let problem = format!("has {} entries for {count} instructions", entries.len());
        return Err(RowError::column(column, problem));
    }
    let parameters: Option<Vec<_>> = entries.iter().map(read_kwargs).collect();
    parameters.ok_or_else(|| RowError::column(column, "has an entry that is not an object"))
}

impl Instructions {
    /// Creates the checks of a row from `instruction_id_list` and `kwargs`, and from `prompt` if a check needs it.
    pub(crate) fn from_row(row: &Row, lookup: CheckFactory) -> Result<Self, Problem> {
        let ids = ids(row)?;
        let parameters = parameters(row, ids.len())?;
        let prompt = row.get("prompt").and_then(Value::as_str);
        let check = |(id, kwargs): (&&str, &Cow<'_, Kwargs>)| {
            lookup(id, kwargs, prompt).unwrap_or_else(|| Err(CheckError::Unknown((*id).to_owned())))
        };
        let checks: Result<Vec<_>, CheckError> = ids.iter().zip(&parameters).map(check).collect();
        Ok(Self { checks: checks? })
    }

    /// Checks a response against the instructions. A blank response follows none.
    pub(crate) fn check(&self, response: &str) -> FollowedInstructions {
        let nothing = || vec![false; self.checks.len()];
        if python::strip(response).is_empty() {
            return FollowedInstructions { strict: nothing(), loose: nothing() };
        }
        let strict: Vec<bool> = self.checks.iter().map(|check| check.follows(response)).collect();
        let mut loose = strict.clone();
        if loose.contains(&false) {
            let variants = variants(response);
            let variants: Vec<&str> = variants.iter().map(AsRef::as_ref).collect();
            for (check, loose) in self.checks.iter().zip(&mut loose) {
                *loose = *loose || check.follows_variant(&variants, response);
            }
        }
        FollowedInstructions { strict, loose }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scorers::instructions::ifeval;

    fn problem(row: &Value) -> String {
        let row = row.as_object().unwrap();
        Instructions::from_row(row, ifeval::check)
            .err()
            .map(|problem| problem.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn errors_in_a_row_are_named() {
        let ids = json!(["punctuation:no_comma"]);
        for (row, expected) in [
            (json!({"kwargs": []}), "column `instruction_id_list`: is missing"),
            (json!({"instruction_id_list": null, "kwargs": []}), "column `instruction_id_list`: is missing"),
            (json!({"instruction_id_list": [], "kwargs": []}), "column `instruction_id_list`: is empty"),
            (
                json!({"instruction_id_list": "x", "kwargs": []}),
                "column `instruction_id_list`: is not a list",
            ),
            (
                json!({"instruction_id_list": [1], "kwargs": [{}]}),
                "column `instruction_id_list`: has an entry that is not a string",
            ),
            (json!({"instruction_id_list": ids}), "column `kwargs`: is missing"),
            (json!({"instruction_id_list": ids, "kwargs": {}}), "column `kwargs`: is not a list"),
            (
                json!({"instruction_id_list": ids, "kwargs": []}),
                "column `kwargs`: has 0 entries for 1 instructions",
            ),
            (
                json!({"instruction_id_list": ids, "kwargs": [7]}),
                "column `kwargs`: has an entry that is not an object",
            ),
            (json!({"instruction_id_list": ["a:b"], "kwargs": [{}]}), "instruction `a:b` is unknown"),
            (json!({"instruction_id_list": ids, "kwargs": [null]}), ""),
            (json!({"instruction_id_list": ids, "kwargs": [{"keyword": null, "more": 1}]}), ""),
        ] {
            assert_eq!(problem(&row), expected, "{row}");
        }
    }
}
