//! JSON values as Python has them.

/// JSON value. Lone surrogates in texts are replaced by U+FFFD, since Rust's texts can't hold them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Number without fraction and exponent; its digits as written.
    Int(String),
    /// Other number, possibly not finite.
    Float(f64),
    /// Text.
    Text(String),
    /// Array.
    List(Vec<Value>),
    /// Members in the order of the text, repeated keys included.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Returns the last member of an object with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// Returns the truth value, as `bool` computes it.
    pub(crate) fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Int(digits) => digits.bytes().any(|digit| matches!(digit, b'1'..=b'9')),
            Self::Float(number) => *number != 0.0,
            Self::Text(text) => !text.is_empty(),
            Self::List(values) => !values.is_empty(),
            Self::Object(members) => !members.is_empty(),
        }
    }

    /// Returns a number, also of a truth value; `None` for other values, and for integers too big for a
    /// floating-point number.
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Bool(value) => Some(f64::from(u8::from(*value))),
            Self::Int(digits) => digits.parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Writes the value for people: texts as they are, `null` as nothing, everything else as JSON.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Text(text) => text.clone(),
            other => {
                let mut shown = String::new();
                other.write(&mut shown);
                shown
            }
        }
    }

    fn write(&self, to: &mut String) {
        match self {
            Self::Null => to.push_str("null"),
            Self::Bool(value) => to.push_str(if *value { "true" } else { "false" }),
            Self::Int(digits) => to.push_str(digits),
            Self::Float(number) => to.push_str(&number.to_string()),
            Self::Text(text) => write_text(text, to),
            Self::List(values) => {
                to.push('[');
                for (index, value) in values.iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    value.write(to);
                }
                to.push(']');
            }
            Self::Object(members) => {
                to.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    write_text(key, to);
                    to.push_str(": ");
                    value.write(to);
                }
                to.push('}');
            }
        }
    }
}

fn write_text(text: &str, to: &mut String) {
    // A text always has a JSON form.
    to.push_str(&serde_json::to_string(text).unwrap_or_default());
}
