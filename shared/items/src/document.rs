//! Documents that prompts need, in the form in which they are stored.

use serde_json::{Value, json};

/// The one field of a document whose bytes are no text.
const UNDECODABLE: &str = "undecodable";

/// What is stored in place of a document whose bytes are no text, with the reason.
pub fn undecodable_document(reason: &str) -> Value {
    json!({ UNDECODABLE: reason })
}

/// The text of a stored document.
///
/// # Errors
/// Why there is none: the document is not there (null), its bytes are not UTF-8, or the value is none.
pub fn document_text(value: &Value) -> Result<&str, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Null => Err("it is not among the dataset's documents".to_owned()),
        other => Err(match other.get(UNDECODABLE).and_then(Value::as_str) {
            Some(reason) => format!("it is no text: {reason}"),
            None => "it is no document".to_owned(),
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
        assert_eq!(document_text(&undecodable_document("byte 3")), Err("it is no text: byte 3".into()));
        assert_eq!(document_text(&json!({"other": 1})), Err("it is no document".into()));
    }
}
