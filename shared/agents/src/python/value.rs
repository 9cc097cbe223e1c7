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

    /// Writes the value as `json.dumps` does: the last of repeated keys at the place of the first one, and only ASCII.
    pub(crate) fn dumps(&self) -> String {
        let mut text = String::new();
        self.dump(&mut text);
        text
    }

    fn dump(&self, to: &mut String) {
        match self {
            Self::Text(text) => dump_text(text, to),
            Self::Float(number) => to.push_str(&dumped_float(*number)),
            Self::Int(digits) => to.push_str(if digits == "-0" { "0" } else { digits }),
            Self::List(values) => {
                to.push('[');
                for (index, value) in values.iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    value.dump(to);
                }
                to.push(']');
            }
            Self::Object(members) => {
                let mut kept: Vec<(&str, &Self)> = Vec::with_capacity(members.len());
                let mut places = std::collections::HashMap::new();
                for (key, value) in members {
                    let place = *places.entry(key.as_str()).or_insert(kept.len());
                    match kept.get_mut(place) {
                        Some(member) => member.1 = value,
                        None => kept.push((key, value)),
                    }
                }
                to.push('{');
                for (index, (key, value)) in kept.into_iter().enumerate() {
                    to.push_str(if index > 0 { ", " } else { "" });
                    dump_text(key, to);
                    to.push_str(": ");
                    value.dump(to);
                }
                to.push('}');
            }
            Self::Null | Self::Bool(_) => self.write(to),
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

fn dump_text(text: &str, to: &mut String) {
    let mut written = String::new();
    write_text(text, &mut written);
    for c in written.chars() {
        if c.is_ascii() {
            to.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                to.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
}

/// Returns a number as `repr` writes it.
fn dumped_float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = number.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let shown = format!("{number:e}");
        let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        return format!("{digits}e{sign}{exponent:0>2}");
    }
    format!("{number:?}")
}

fn write_text(text: &str, to: &mut String) {
    // A text always has a JSON form.
    to.push_str(&serde_json::to_string(text).unwrap_or_default());
}
