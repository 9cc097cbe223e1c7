//! Streaming canonical JSON, for documents that don't fit in memory.

use std::io::Write;

use serde::Serialize;

use super::{CanonicalError, canonicalize, string, to_vec};

/// Writes one canonical document piece by piece. Rejects calls that wouldn't give canonical JSON: keys out of order, a
/// key without a value, two adjacent values, an end without a beginning.
///
/// ```
/// # fn main() -> Result<(), bench_signing::CanonicalError> {
/// let mut stream = bench_signing::CanonicalStream::new(Vec::new());
/// stream.begin_object()?;
/// stream.key("items")?;
/// stream.begin_array()?;
/// for page in [[1, 2], [3, 4]] {
///     for item in page {
///         stream.value(&item)?;
///     }
/// }
/// stream.end_array()?;
/// stream.field("schema_version", "1.0")?;
/// stream.end_object()?;
/// assert_eq!(stream.finish()?, br#"{"items":[1,2,3,4],"schema_version":"1.0"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct CanonicalStream<W: Write> {
    output: W,
    open: Vec<Level>,
    is_complete: bool,
}

#[derive(Debug)]
enum Level {
    Array { is_empty: bool },
    Object { last_key: Option<String>, wants_value: bool },
}

impl<W: Write> CanonicalStream<W> {
    /// Creates a stream over `output`, which should be buffered, since there are many small writes.
    pub fn new(output: W) -> Self {
        Self { output, open: Vec::new(), is_complete: false }
    }

    /// Opens an object as a value.
    ///
    /// # Errors
    /// Returns [`CanonicalError`] if a value isn't allowed here, nesting is too deep or the writer fails.
    pub fn begin_object(&mut self) -> Result<(), CanonicalError> {
        self.begin(Level::Object { last_key: None, wants_value: false }, b"{")
    }

    /// Opens an array as a value.
    ///
    /// # Errors
    /// Same as [`Self::begin_object`].
    pub fn begin_array(&mut self) -> Result<(), CanonicalError> {
        self.begin(Level::Array { is_empty: true }, b"[")
    }

    /// Writes the key of the next value. Keys must be in the order of their code points.
    ///
    /// # Errors
    /// Returns [`CanonicalError`] if a key isn't allowed here, the key is out of order or repeated, or the writer
    /// fails.
    pub fn key(&mut self, key: &str) -> Result<(), CanonicalError> {
        let Some(Level::Object { last_key, wants_value: wants_value @ false }) = self.open.last_mut() else {
            return Err(CanonicalError::Misuse("a key isn't allowed here"));
        };
        let mut text = Vec::new();
        if let Some(previous) = last_key {
            match key.cmp(previous.as_str()) {
                std::cmp::Ordering::Greater => text.push(b','),
                std::cmp::Ordering::Equal => return Err(CanonicalError::DuplicateKey(key.to_owned())),
                std::cmp::Ordering::Less => {
                    return Err(CanonicalError::KeyOrder { key: key.to_owned(), previous: previous.clone() });
                }
            }
        }
        *last_key = Some(key.to_owned());
        *wants_value = true;
        string::write(&mut text, key);
        text.push(b':');
        Ok(self.output.write_all(&text)?)
    }

    /// Writes a whole value.
    ///
    /// # Errors
    /// Returns [`CanonicalError`] if a value isn't allowed here, the value has no canonical text, or the writer fails.
    pub fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        let text = to_vec(value)?;
        self.write_value(&text)
    }

    /// Writes a value given as JSON text, after applying [`canonicalize`].
    ///
    /// # Errors
    /// Same as [`Self::value`], and if the text is invalid.
    pub fn json(&mut self, text: &str) -> Result<(), CanonicalError> {
        let text = canonicalize(text)?;
        self.write_value(text.as_bytes())
    }

    /// Writes a key and its value.
    ///
    /// # Errors
    /// Same as [`Self::key`] and [`Self::value`].
    pub fn field<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), CanonicalError> {
        self.key(key)?;
        self.value(value)
    }

    /// Closes the innermost object.
    ///
    /// # Errors
    /// Returns [`CanonicalError`] if the innermost level isn't an object, its last key has no value, or the writer
    /// fails.
    pub fn end_object(&mut self) -> Result<(), CanonicalError> {
        match self.open.last() {
            Some(Level::Object { wants_value: false, .. }) => self.end(b"}"),
            _ => Err(CanonicalError::Misuse("no object can end here")),
        }
    }

    /// Closes the innermost array.
    ///
    /// # Errors
    /// Returns [`CanonicalError`] if the innermost level isn't an array or the writer fails.
    pub fn end_array(&mut self) -> Result<(), CanonicalError> {
        match self.open.last() {
            Some(Level::Array { .. }) => self.end(b"]"),
            _ => Err(CanonicalError::Misuse("no array can end here")),
        }
    }

    /// Returns the underlying writer, which isn't flushed.
    ///
    /// # Errors
    /// Returns [`CanonicalError::Misuse`] if the document isn't complete.
    pub fn finish(self) -> Result<W, CanonicalError> {
        if self.is_complete {
            Ok(self.output)
        } else {
            Err(CanonicalError::Misuse("the document is not complete"))
        }
    }

    fn begin(&mut self, level: Level, bracket: &[u8]) -> Result<(), CanonicalError> {
        if self.open.len() >= super::CANONICAL_DEPTH_MAX {
            return Err(CanonicalError::TooDeep);
        }
        self.start_value()?;
        self.open.push(level);
        Ok(self.output.write_all(bracket)?)
    }

    fn end(&mut self, bracket: &[u8]) -> Result<(), CanonicalError> {
        self.open.pop();
        self.is_complete = self.open.is_empty();
        Ok(self.output.write_all(bracket)?)
    }

    fn write_value(&mut self, text: &[u8]) -> Result<(), CanonicalError> {
        self.start_value()?;
        self.is_complete = self.open.is_empty();
        Ok(self.output.write_all(text)?)
    }

    /// Checks that a value is allowed here and writes the comma before it.
    fn start_value(&mut self) -> Result<(), CanonicalError> {
        match self.open.last_mut() {
            None if self.is_complete => Err(CanonicalError::Misuse("the document is already complete")),
            None => Ok(()),
            Some(Level::Object { wants_value: false, .. }) => {
                Err(CanonicalError::Misuse("a value in an object needs a key"))
            }
            Some(Level::Object { wants_value, .. }) => {
                *wants_value = false;
                Ok(())
            }
            Some(Level::Array { is_empty: true }) => {
                self.open.pop();
                self.open.push(Level::Array { is_empty: false });
                Ok(())
            }
            Some(Level::Array { is_empty: false }) => Ok(self.output.write_all(b",")?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> CanonicalStream<Vec<u8>> {
        let mut stream = CanonicalStream::new(Vec::new());
        stream.begin_object().unwrap();
        stream
    }

    #[test]
    fn equals_the_text_of_the_whole() {
        let mut stream = started();
        stream.field("a", &1.0).unwrap();
        stream.key("b").unwrap();
        stream.begin_array().unwrap();
        stream.value("é").unwrap();
        stream.begin_object().unwrap();
        stream.end_object().unwrap();
        stream.json("[ 18446744073709551616 ]").unwrap();
        stream.end_array().unwrap();
        stream.field("c", &None::<u8>).unwrap();
        stream.end_object().unwrap();
        let text = String::from_utf8(stream.finish().unwrap()).unwrap();
        assert_eq!(text, r#"{"a":1.0,"b":["\u00e9",{},[18446744073709551616]],"c":null}"#);
        assert_eq!(canonicalize(&text).unwrap(), text);
    }

    #[test]
    fn keys_out_of_order_are_refused() {
        let mut stream = started();
        stream.field("b", &1).unwrap();
        assert!(matches!(stream.key("a"), Err(CanonicalError::KeyOrder { .. })));
        assert!(matches!(stream.key("b"), Err(CanonicalError::DuplicateKey(_))));
        stream.field("\u{ffff}", &1).unwrap();
        // Unlike in UTF-16, characters above U+FFFF sort after it.
        stream.field("\u{1f600}", &1).unwrap();
    }

    #[test]
    fn misuse_is_refused() {
        let mut stream = started();
        assert!(stream.value(&1).is_err(), "value without key");
        assert!(stream.end_array().is_err(), "an object is open");
        stream.key("a").unwrap();
        assert!(stream.key("b").is_err(), "key after key");
        assert!(stream.end_object().is_err(), "key without value");
        stream.begin_array().unwrap();
        assert!(stream.key("b").is_err(), "key in an array");
        assert!(stream.finish().is_err(), "not complete");

        let mut stream = CanonicalStream::new(Vec::new());
        stream.value(&1).unwrap();
        assert!(stream.value(&2).is_err(), "a second document");
        assert!(stream.begin_array().is_err(), "a second document");
        assert!(CanonicalStream::new(Vec::new()).finish().is_err(), "nothing at all");
    }
}
