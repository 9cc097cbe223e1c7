//! JSON as Python's `json.loads` reads it, with its error messages.
//!
//! The decoder accepts `NaN`, infinities and lone surrogates, keeps the last of repeated keys, and names positions in
//! characters. Messages are those of CPython 3.12.

use super::value::Value;

/// Maximum depth of arrays and objects. CPython stops with a `RecursionError` near 1,000.
const DEPTH_MAX: u32 = 900;

/// Error of the decoder: its message, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonError {
    message: &'static str,
    /// Place in the text, in bytes.
    at: usize,
}

impl JsonError {
    /// Returns the message with line, column and character, as `JSONDecodeError` shows it.
    pub(crate) fn describe(&self, text: &str) -> String {
        let before = text.get(..self.at).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}: line {line} column {column} (char {})", self.message, before.chars().count())
    }
}

/// Reads a text that is one JSON value, with blanks around it.
pub(crate) fn parse_json(text: &str) -> Result<Value, JsonError> {
    let mut decoder = Decoder { text, bytes: text.as_bytes(), at: 0 };
    decoder.skip_blanks();
    let value = decoder.value(0)?;
    decoder.skip_blanks();
    match decoder.peek() {
        None => Ok(value),
        Some(_) => decoder.fail("Extra data", decoder.at),
    }
}

struct Decoder<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Decoder<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn fail<T>(&self, message: &'static str, at: usize) -> Result<T, JsonError> {
        Err(JsonError { message, at })
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes()));
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn value(&mut self, depth: u32) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'{' | b'[') if depth >= DEPTH_MAX => self.fail("Nested too deeply", self.at),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.list(depth + 1),
            _ if self.take("null") => Ok(Value::Null),
            _ if self.take("true") => Ok(Value::Bool(true)),
            _ if self.take("false") => Ok(Value::Bool(false)),
            _ if self.take("NaN") => Ok(Value::Float(f64::NAN)),
            _ if self.take("Infinity") => Ok(Value::Float(f64::INFINITY)),
            _ if self.take("-Infinity") => Ok(Value::Float(f64::NEG_INFINITY)),
            _ => self.number(),
        }
    }

    fn object(&mut self, depth: u32) -> Result<Value, JsonError> {
        let mut members = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.take("}") {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Expecting property name enclosed in double quotes", self.at);
            }
            let key = self.string()?;
            self.skip_blanks();
            if !self.take(":") {
                return self.fail("Expecting ':' delimiter", self.at);
            }
            self.skip_blanks();
            members.push((key, self.value(depth)?));
            self.skip_blanks();
            if self.take("}") {
                return Ok(Value::Object(members));
            }
            if !self.take(",") {
                return self.fail("Expecting ',' delimiter", self.at);
            }
            self.skip_blanks();
        }
    }

    fn list(&mut self, depth: u32) -> Result<Value, JsonError> {
        let mut values = Vec::new();
        self.at += 1;
        self.skip_blanks();
        if self.take("]") {
            return Ok(Value::List(values));
        }
        loop {
            values.push(self.value(depth)?);
            self.skip_blanks();
            if self.take("]") {
                return Ok(Value::List(values));
            }
            if !self.take(",") {
                return self.fail("Expecting ',' delimiter", self.at);
            }
            self.skip_blanks();
        }
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.take("-");
        let integer = self.digits();
        match integer {
            0 => return self.fail("Expecting value", start),
            // A number ends after a leading zero.
            _ if self.bytes.get(self.at - integer) == Some(&b'0') => self.at -= integer - 1,
            _ => {}
        }
        let mut is_float = false;
        let end = self.at;
        if self.take(".") {
            is_float = self.digits() > 0;
            self.at = if is_float { self.at } else { end };
        }
        let end = self.at;
        if self.take("e") || self.take("E") {
            let _ = self.take("+") || self.take("-");
            let has_exponent = self.digits() > 0;
            is_float |= has_exponent;
            self.at = if has_exponent { self.at } else { end };
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        match is_float {
            // Every text of this form is a number.
            true => Ok(Value::Float(digits.parse().unwrap_or(f64::NAN))),
            false => Ok(Value::Int(digits.to_owned())),
        }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let begin = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            text.push_str(self.text.get(start..self.at).unwrap_or_default());
            match self.peek() {
                None => return self.fail("Unterminated string starting at", begin),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape(begin)?),
                Some(_) => return self.fail("Invalid control character at", self.at),
            }
        }
    }

    /// Reads an escape sequence, two of them if they are a pair of surrogates.
    fn escape(&mut self, begin: usize) -> Result<char, JsonError> {
        let at = self.at;
        self.at += 2;
        match self.bytes.get(at + 1) {
            None => self.fail("Unterminated string starting at", begin),
            Some(b'u') => self.unicode_escape(),
            Some(b'b') => Ok('\u{8}'),
            Some(b'f') => Ok('\u{c}'),
            Some(b'n') => Ok('\n'),
            Some(b'r') => Ok('\r'),
            Some(b't') => Ok('\t'),
            Some(byte @ (b'"' | b'\\' | b'/')) => Ok(char::from(*byte)),
            Some(_) => self.fail("Invalid \\escape", at),
        }
    }

    fn unicode_escape(&mut self) -> Result<char, JsonError> {
        let first = self.four_digits()?;
        let is_high = (0xd800..0xdc00).contains(&first);
        // The decoder looks for the second half only if more than that follows.
        let has_room = self.bytes.len() > self.at + 6;
        if is_high && has_room && self.take("\\u") {
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let joined = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at -= 6;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32, JsonError> {
        let at = self.at;
        let digits = self.bytes.get(at..at + 4).filter(|_| self.bytes.len() > at + 4);
        let hex = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let code = hex.and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        // The position is that of the `u`.
        code.map_or_else(|| self.fail("Invalid \\uXXXX escape", at - 1), Ok)
    }
}
