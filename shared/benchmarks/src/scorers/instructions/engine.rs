//! The instructions of a row, and which of them a response follows.

use std::borrow::Cow;

use bench_items::{Row, RowError};
use serde_json::Value;

use super::variants::variants;
use super::{Check, CheckError, Kwargs, Lookup, Problem};
use crate::python;

/// Which instructions a response follows, in the row's order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Followed {
    /// The response as it stands follows it.
    pub(crate) strict: Vec<bool>,
    /// The response or one of its variants follows it.
    pub(crate) loose: Vec<bool>,
}

/// The instructions of a row, ready to check any number of responses.
pub(crate) struct Instructions {
    checks: Vec<Box<dyn Check>>,
}

/// A column that is a list.
fn list<'r>(row: &'r Row, column: &str) -> Result<&'r Vec<Value>, RowError> {
    match row.get(column) {
        Some(Value::Array(list)) => Ok(list),
        Some(Value::Null) | None => Err(RowError::column(column, "is missing")),
        Some(_) => Err(RowError::column(column, "is not a list")),
    }
}

/// The ids of a row's instructions.
pub(crate) fn ids(row: &Row) -> Result<Vec<&str>, RowError> {
    let column = "instruction_id_list";
    let ids: Option<Vec<&str>> = list(row, column)?.iter().map(Value::as_str).collect();
    let ids = ids.ok_or_else(|| RowError::column(column, "has an entry that is not a text"))?;
    if ids.is_empty() { Err(RowError::column(column, "is empty")) } else { Ok(ids) }
}

/// Parameters without those that are `null`.
pub(super) fn given(entry: &Kwargs) -> Kwargs {
    let given = entry.iter().filter(|(_, value)| !value.is_null());
    given.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The parameters of one instruction; `None` when the entry is no object.
fn read(entry: &Value) -> Option<Cow<'_, Kwargs>> {
    match entry {
        Value::Object(entry) if entry.values().any(Value::is_null) => Some(Cow::Owned(given(entry))),
        Value::Object(entry) => Some(Cow::Borrowed(entry)),
        Value::Null => Some(Cow::Owned(Kwargs::new())),
        _ => None,
    }
}

/// The parameters of a row's instructions, `count` of them. The hub pads them with all parameters that there are.
fn parameters(row: &Row, count: usize) -> Result<Vec<Cow<'_, Kwargs>>, RowError> {
    let column = "kwargs";
    let entries = list(row, column)?;
    if entries.len() != count {
        let problem = format!("has {} entries for {count} instructions", entries.len());
        return Err(RowError::column(column, problem));
    }
    let parameters: Option<Vec<_>> = entries.iter().map(read).collect();
    parameters.ok_or_else(|| RowError::column(column, "has an entry that is not an object"))
}

impl Instructions {
    /// Reads a row: `instruction_id_list`, `kwargs`, and `prompt` where a check needs it.
    pub(crate) fn of_row(row: &Row, lookup: Lookup) -> Result<Self, Problem> {
        let ids = ids(row)?;
        let parameters = parameters(row, ids.len())?;
        let prompt = row.get("prompt").and_then(Value::as_str);
        let check = |(id, kwargs): (&&str, &Cow<'_, Kwargs>)| {
            lookup(id, kwargs, prompt).unwrap_or_else(|| Err(CheckError::Unknown((*id).to_owned())))
        };
        let checks: Result<Vec<_>, CheckError> = ids.iter().zip(&parameters).map(check).collect();
        Ok(Self { checks: checks? })
    }

    /// Which of them a response follows. A blank response follows none.
    pub(crate) fn followed(&self, response: &str) -> Followed {
        let nothing = || vec![false; self.checks.len()];
        if python::strip(response).is_empty() {
            return Followed { strict: nothing(), loose: nothing() };
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
        Followed { strict, loose }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::scorers::instructions::ifeval;

    fn problem(row: &Value) -> String {
        let row = row.as_object().unwrap();
        Instructions::of_row(row, ifeval::check).err().map(|problem| problem.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_with_a_row_is_named() {
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
                "column `instruction_id_list`: has an entry that is not a text",
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
