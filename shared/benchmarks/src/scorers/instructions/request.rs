//! The request of a row, and a reference response if one is known.

use bench_domain::Prompt;
use bench_items::{Row, RowError};
use serde_json::Value;

/// Column of this program's demo rows: a response that follows all instructions of its row.
const REFERENCE: &str = "reference_answer";
/// Oracle's answer for rows without a reference. The datasets themselves have no answers.
pub(crate) const NO_REFERENCE: &str = "No answer is known that follows these instructions.";

/// Returns a prompt with the request as the only message.
pub(crate) fn prompt(row: &Row) -> Result<Prompt, RowError> {
    match row.get("prompt") {
        Some(Value::String(prompt)) if !prompt.is_empty() => Ok(Prompt::user(prompt.as_str())),
        Some(Value::String(_)) => Err(RowError::column("prompt", "is empty")),
        Some(Value::Null) | None => Err(RowError::column("prompt", "is missing")),
        Some(_) => Err(RowError::column("prompt", "is not a string")),
    }
}

/// Returns a response that follows all instructions; empty if none is known.
pub(crate) fn reference(row: &Row) -> &str {
    row.get(REFERENCE).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the oracle's answer.
pub(crate) fn oracle(row: &Row) -> String {
    let reference = reference(row);
    if reference.is_empty() { NO_REFERENCE.to_owned() } else { reference.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_request_is_the_only_message() {
        let ask = |row: Value| prompt(row.as_object().unwrap());
        assert_eq!(ask(json!({"prompt": " Say hi. "})).unwrap(), Prompt::user(" Say hi. "));
        for (row, cause) in [
            (json!({}), "is missing"),
            (json!({"prompt": null}), "is missing"),
            (json!({"prompt": 3}), "is not a string"),
            (json!({"prompt": ""}), "is empty"),
        ] {
            assert_eq!(ask(row).unwrap_err().to_string(), format!("column `prompt`: {cause}"));
        }
    }

    #[test]
    fn without_a_reference_the_oracle_says_that_none_is_known() {
        let (known, unknown) = (json!({"reference_answer": "Hi."}), json!({"prompt": "?"}));
        let (known, unknown) = (known.as_object().unwrap(), unknown.as_object().unwrap());
        assert_eq!((reference(known), oracle(known).as_str()), ("Hi.", "Hi."));
        assert_eq!((reference(unknown), oracle(unknown).as_str()), ("", NO_REFERENCE));
    }
}
