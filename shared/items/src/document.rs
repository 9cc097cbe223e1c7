//! Stored form of the documents that prompts need.

use serde_json::{Value, json};

/// Only field of the placeholder for a document that isn't valid UTF-8.
const UNDECODABLE: &str = "undecodable";

/// Returns the value to store for a document whose bytes can't be decoded, with the reason.
pub fn undecodable_document(reason: &str) -> Value {
    json!({ UNDECODABLE: reason })
}

/// Returns the text of a stored document.
///
/// # Errors
/// Returns the reason if the document is missing (null), isn't UTF-8, or the value isn't a document.
pub fn document_text(value: &Value) -> Result<&str, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Err("it is not among the dataset's documents".to_owned()),
        other => Err(match other.get(UNDECODABLE).and_then(Value::as_str) {
            Some(reason) => format!("it is not text: {reason}"),
            None => "it is not a document".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_text_says_why() {
        assert_eq!(document_text(&json!("text")), Ok("text"));
        assert_eq!(document_text(&Value::Null), Err("it is not among the dataset's documents".into()));
        assert_eq!(document_text(&undecodable_document("byte 3")), Err("it is not text: byte 3".into()));
        assert_eq!(document_text(&json!({"other": 1})), Err("it is not a document".into()));
    }
}
