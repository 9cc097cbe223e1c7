//! Content of a message: body, attributes, checksums and limits.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::error::SqsError;

const ATTRIBUTES_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 256;

/// A message attribute as sent, received and stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AttributeValue {
    pub(super) data_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) string_value: Option<String>,
    /// Value in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) binary_value: Option<String>,
}

/// Attributes by name, in the order that the checksum requires.
pub(super) type MessageAttributes = BTreeMap<String, AttributeValue>;

/// Returns the MD5 of a body, in hex.
pub(super) fn body_md5(body: &str) -> String {
    hex::encode(Md5::digest(body.as_bytes()))
}

/// Returns the MD5 of attributes as defined in the SQS developer guide, in hex; `None` without
/// attributes.
pub(super) fn attributes_md5(attributes: &MessageAttributes) -> Option<String> {
    if attributes.is_empty() {
        return None;
    }
    let mut md5 = Md5::new();
    for (name, value) in attributes {
        update_with_length(&mut md5, name.as_bytes());
        update_with_length(&mut md5, value.data_type.as_bytes());
        if let Some(text) = &value.string_value {
            md5.update([1_u8]);
            update_with_length(&mut md5, text.as_bytes());
        } else if let Some(binary) = &value.binary_value {
            md5.update([2_u8]);
            update_with_length(&mut md5, &STANDARD.decode(binary).unwrap_or_default());
        }
    }
    Some(hex::encode(md5.finalize()))
}

fn update_with_length(md5: &mut Md5, bytes: &[u8]) {
    md5.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    md5.update(bytes);
}

/// Checks a message and returns its size in bytes as counted by SQS.
pub(super) fn check(body: &str, attributes: &MessageAttributes) -> Result<usize, SqsError> {
    if body.is_empty() {
        return Err(SqsError::missing_parameter("MessageBody"));
    }
    if let Some(bad) = body.chars().find(|c| !is_allowed(*c)) {
        return Err(SqsError::invalid_contents(format!(
            "Invalid binary character '#x{:X}' was found in the message body, the set of allowed characters is \
             #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF.",
            u32::from(bad)
        )));
    }
    if attributes.len() > ATTRIBUTES_MAX {
        return Err(SqsError::invalid_parameter(format!(
            "Number of message attributes [{}] exceeds the allowed maximum [{ATTRIBUTES_MAX}].",
            attributes.len()
        )));
    }
    let mut bytes = body.len();
    for (name, value) in attributes {
        bytes += check_attribute(name, value)?;
    }
    Ok(bytes)
}

fn check_attribute(name: &str, value: &AttributeValue) -> Result<usize, SqsError> {
    let invalid = |reason: &str| {
        Err(SqsError::invalid_parameter(format!("The message attribute '{name}' is invalid: {reason}.")))
    };
    let lower = name.to_ascii_lowercase();
    let name_fits = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
        && !name.starts_with('.')
        && !name.ends_with('.')
        && !name.contains("..")
        && !lower.starts_with("aws.")
        && !lower.starts_with("amazon.");
    if !name_fits {
        return invalid("its name is not allowed");
    }
    let kind = value.data_type.split('.').next().unwrap_or_default();
    let value_bytes = match (kind, &value.string_value, &value.binary_value) {
        ("String", Some(text), None) if !text.is_empty() && text.chars().all(is_allowed) => text.len(),
        ("Number", Some(text), None) if text.trim().parse::<f64>().is_ok_and(f64::is_finite) => text.len(),
        ("Binary", None, Some(binary)) => match STANDARD.decode(binary) {
            Ok(bytes) if !bytes.is_empty() => bytes.len(),
            _ => return invalid("it must contain a non-empty binary value"),
        },
        ("String" | "Number" | "Binary", ..) => return invalid("its value does not fit its type"),
        _ => return invalid("its type must start with String, Number or Binary"),
    };
    Ok(name.len() + value.data_type.len() + value_bytes)
}

/// Returns true for the characters of XML 1.0.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
}

/// Returns the attributes that `MessageAttributeNames` selects: `All`, `.*`, `prefix.*` or names.
pub(super) fn select(attributes: MessageAttributes, requested: &[String]) -> MessageAttributes {
    if requested.iter().any(|name| name == "All" || name == ".*") {
        return attributes;
    }
    let asked = |name: &str| {
        requested.iter().any(|want| match want.strip_suffix(".*") {
            Some(prefix) => name.starts_with(prefix),
            None => want == name,
        })
    };
    attributes.into_iter().filter(|(name, _)| asked(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(data_type: &str, value: &str) -> AttributeValue {
        AttributeValue {
            data_type: data_type.to_owned(),
            string_value: Some(value.to_owned()),
            binary_value: None,
        }
    }

    fn binary(value: &[u8]) -> AttributeValue {
        AttributeValue {
            data_type: "Binary".to_owned(),
            string_value: None,
            binary_value: Some(STANDARD.encode(value)),
        }
    }

    #[test]
    fn checksums() {
        assert_eq!(body_md5("hello"), "5d41402abc4b2a76b9719d911017c592");
        assert_eq!(attributes_md5(&MessageAttributes::new()), None);
        // Computed independently from the algorithm in the SQS developer guide.
        let attributes = MessageAttributes::from([
            ("b".to_owned(), binary(&[0, 1, 2])),
            ("a".to_owned(), text("String", "x")),
        ]);
        assert_eq!(attributes_md5(&attributes).as_deref(), Some("c7b075151a8e2e09ccb36b393bdb284a"));
    }

    #[test]
    fn contents_are_checked() {
        let none = MessageAttributes::new();
        assert_eq!(check("ab\n\u{1F600}", &none).unwrap(), 7);
        assert_eq!(check("", &none).unwrap_err().code, "MissingParameter");
        for bad in ["\u{0}", "a\u{b}", "\u{FFFE}"] {
            assert_eq!(check(bad, &none).unwrap_err().code, "InvalidMessageContents");
        }
        let with = |name: &str, value| MessageAttributes::from([(name.to_owned(), value)]);
        assert_eq!(check("a", &with("key", text("Number.int", "12"))).unwrap(), 1 + 3 + 10 + 2);
        assert_eq!(check("a", &with("key", binary(b"xyz"))).unwrap(), 1 + 3 + 6 + 3);
        for (name, value) in [
            ("AWS.x", text("String", "a")),
            ("a..b", text("String", "a")),
            ("a b", text("String", "a")),
            ("a", text("String", "")),
            ("a", text("Number", "NaN")),
            ("a", text("Text", "a")),
            ("a", text("Binary", "a")),
            ("a", binary(b"")),
        ] {
            assert_eq!(check("a", &with(name, value)).unwrap_err().code, "InvalidParameterValue", "{name}");
        }
        let many = (0..11).map(|n| (format!("a{n}"), text("String", "x"))).collect();
        check("a", &many).unwrap_err();
    }

    #[test]
    fn selection() {
        let all: MessageAttributes =
            ["run.id", "run.name", "other"].iter().map(|n| ((*n).to_owned(), text("String", "x"))).collect();
        let names = |requested: &[&str]| {
            let requested: Vec<String> = requested.iter().map(|w| (*w).to_owned()).collect();
            select(all.clone(), &requested).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(names(&["All"]).len(), 3);
        assert_eq!(names(&[".*"]).len(), 3);
        assert_eq!(names(&["run.*"]), ["run.id", "run.name"]);
        assert_eq!(names(&["other", "absent"]), ["other"]);
        assert!(names(&[]).is_empty());
    }
}
