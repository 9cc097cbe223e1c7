//! Canonical JSON: exactly one text per value, so that hashes of it are meaningful.
//!
//! The canonical form has keys sorted by Unicode code point at every level, no white space, pure ASCII (everything
//! outside U+0020..U+007E is escaped), unchanged integers, and floats as the shortest text that parses to the same
//! double, always with a point or an exponent. `1` and `1.0` are different values and stay different.
//!
//! [`to_string`] and [`to_writer`] accept anything that implements `Serialize`, [`canonicalize`] accepts JSON text
//! (with integers of any size), and [`CanonicalStream`] writes documents that don't fit in memory.

mod number;
mod serializer;
mod stream;
mod string;
mod text;

use std::io::Write;

use serde::Serialize;

pub use self::stream::CanonicalStream;

/// Maximum nesting depth of arrays and objects, the same as for reading in `serde_json`.
pub const CANONICAL_DEPTH_MAX: usize = 128;

/// Maximum number of digits of an integer in [`canonicalize`]. Common readers reject longer ones.
pub const CANONICAL_INTEGER_DIGITS_MAX: usize = 4300;

/// Reasons for which a value has no canonical text.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// `NaN` and infinities don't exist in JSON.
    #[error("a number is not finite, and JSON has no text for it")]
    NonFinite,
    /// An object has the same key twice, so that readers may disagree on its value.
    #[error("the key {0:?} occurs twice in one object")]
    DuplicateKey(String),
    /// A map has keys that are neither strings nor integers nor booleans.
    #[error("an object key must be a text")]
    KeyNotText,
    /// Nested more than [`CANONICAL_DEPTH_MAX`] levels deep.
    #[error("nested more than {CANONICAL_DEPTH_MAX} levels deep")]
    TooDeep,
    /// The text is not JSON.
    #[error("not JSON at byte {offset}: {what}")]
    Syntax {
        /// Offset of the error in bytes.
        offset: usize,
        /// Description of the error.
        what: &'static str,
    },
    /// A stream received a key that sorts before the previous one.
    #[error("the key {key:?} must come before {previous:?}")]
    KeyOrder {
        /// The key that is out of order.
        key: String,
        /// The previous key.
        previous: String,
    },
    /// A stream was used in a way that doesn't produce one JSON document.
    #[error("canonical stream: {0}")]
    Misuse(&'static str),
    /// A `Serialize` implementation failed.
    #[error("{0}")]
    Serialize(String),
    /// The underlying writer failed.
    #[error("cannot write canonical JSON")]
    Write(#[from] std::io::Error),
}

/// Returns the canonical text of a value.
///
/// # Errors
/// Returns [`CanonicalError`] if the value has no canonical text.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    into_string(to_vec(value)?)
}

/// Returns the canonical text of a value as bytes, which are ASCII.
///
/// # Errors
/// Returns [`CanonicalError`] if the value has no canonical text.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::new();
    value.serialize(serializer::Serializer::new(&mut out))?;
    Ok(out)
}

/// Writes the canonical text of a value. Nothing is written if it has none.
///
/// # Errors
/// Returns [`CanonicalError`] if the value has no canonical text or the writer fails.
pub fn to_writer<T: Serialize + ?Sized>(mut writer: impl Write, value: &T) -> Result<(), CanonicalError> {
    Ok(writer.write_all(&to_vec(value)?)?)
}

/// Returns the canonical form of a JSON text. Preserves integers of any size, and the difference between `1` and `1.0`.
///
/// # Errors
/// Returns [`CanonicalError`] if the text isn't JSON, repeats a key in an object, or contains a float beyond the range
/// of a double, an integer of more than [`CANONICAL_INTEGER_DIGITS_MAX`] digits, or half of a surrogate pair.
pub fn canonicalize(text: &str) -> Result<String, CanonicalError> {
    let mut out = Vec::with_capacity(text.len());
    text::canonicalize_into(text, &mut out)?;
    into_string(out)
}

fn into_string(bytes: Vec<u8>) -> Result<String, CanonicalError> {
    String::from_utf8(bytes).map_err(|_| CanonicalError::Misuse("the text is not ASCII"))
}

/// Members of one object, each with the canonical text of its value.
#[derive(Default)]
struct Members(Vec<(String, Vec<u8>)>);

impl Members {
    fn push(&mut self, key: String, value: Vec<u8>) {
        self.0.push((key, value));
    }

    /// Sorts and writes the members. Rust orders `String` by UTF-8 bytes, which is the order of code points.
    fn write(mut self, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
        out.push(b'{');
        let mut previous: Option<&str> = None;
        for (key, value) in &self.0 {
            if previous == Some(key) {
                return Err(CanonicalError::DuplicateKey(key.clone()));
            }
            if previous.is_some() {
                out.push(b',');
            }
            string::write(out, key);
            out.push(b':');
            out.extend_from_slice(value);
            previous = Some(key);
        }
        out.push(b'}');
        Ok(())
    }
}
