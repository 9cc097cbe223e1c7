//! Canonical JSON: one text for one value, so that a hash of it means something.
//!
//! The form: keys sorted by Unicode code point at every level, no white space, pure ASCII (everything outside
//! U+0020..U+007E is escaped), integers exactly as they are, floats as the shortest text that reads back to the
//! same double and never without a point or an exponent. `1` and `1.0` are different values and stay so.
//!
//! Three ways in: [`to_string`] and [`to_writer`] for anything that implements `Serialize`, [`canonicalise`] for
//! JSON text (integers of any size survive), and [`CanonicalStream`] for documents that do not fit in memory.

mod number;
mod serializer;
mod stream;
mod string;
mod text;

use std::io::Write;

use serde::Serialize;

pub use self::stream::CanonicalStream;

/// How deeply arrays and objects may be nested. The same bound as `serde_json` has when it reads.
pub const CANONICAL_DEPTH_MAX: usize = 128;

/// The longest integer that [`canonicalise`] takes, in digits. Common readers refuse longer ones.
pub const CANONICAL_INTEGER_DIGITS_MAX: usize = 4300;

/// Why a value has no canonical text.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// `NaN` and infinities do not exist in JSON.
    #[error("a number is not finite, and JSON has no text for it")]
    NonFinite,
    /// An object names the same key twice, so that readers may disagree on its value.
    #[error("the key {0:?} occurs twice in one object")]
    DuplicateKey(String),
    /// A map has keys that are neither text nor integers nor booleans.
    #[error("an object key must be a text")]
    KeyNotText,
    /// Nested more than [`CANONICAL_DEPTH_MAX`] levels deep.
    #[error("nested more than {CANONICAL_DEPTH_MAX} levels deep")]
    TooDeep,
    /// The text is not JSON.
    #[error("not JSON at byte {offset}: {what}")]
    Syntax {
        /// Bytes before the place.
        offset: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// A stream got a key that sorts before the one written last.
    #[error("the key {key:?} must come before {previous:?}")]
    KeyOrder {
        /// The key that came too late.
        key: String,
        /// The key written before it.
        previous: String,
    },
    /// A stream was used in a way that cannot give one JSON document.
    #[error("canonical stream: {0}")]
    Misuse(&'static str),
    /// A `Serialize` implementation gave up.
    #[error("{0}")]
    Serialize(String),
    /// The writer failed.
    #[error("cannot write canonical JSON")]
    Write(#[from] std::io::Error),
}

/// The canonical text of a value.
///
/// # Errors
/// [`CanonicalError`] when the value has no canonical text.
pub fn to_string<T: Serialize + ?Sized>(value: &T) -> Result<String, CanonicalError> {
    into_string(to_vec(value)?)
}

/// The canonical text of a value, as bytes (they are ASCII).
///
/// # Errors
/// [`CanonicalError`] when the value has no canonical text.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CanonicalError> {
    let mut out = Vec::new();
    value.serialize(serializer::Serializer::new(&mut out))?;
    Ok(out)
}

/// Writes the canonical text of a value. Nothing is written when the value has none.
///
/// # Errors
/// [`CanonicalError`] when the value has no canonical text or the writer fails.
pub fn to_writer<T: Serialize + ?Sized>(mut writer: impl Write, value: &T) -> Result<(), CanonicalError> {
    Ok(writer.write_all(&to_vec(value)?)?)
}

/// The canonical text of a JSON text. Integers of any size and the difference between `1` and `1.0` survive.
///
/// # Errors
/// [`CanonicalError`] when the text is not JSON, repeats a key in an object, has a float beyond the range of a
/// double, an integer of more than [`CANONICAL_INTEGER_DIGITS_MAX`] digits, or half of a surrogate pair.
pub fn canonicalise(text: &str) -> Result<String, CanonicalError> {
    let mut out = Vec::with_capacity(text.len());
    text::canonicalise_into(text, &mut out)?;
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

    /// Sorts and writes. Rust orders `String` by UTF-8 bytes, which is the order of code points.
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
