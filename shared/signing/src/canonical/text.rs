//! Canonicalization of JSON text, without a conversion of numbers that could lose digits.

use super::{CANONICAL_DEPTH_MAX, CANONICAL_INTEGER_DIGITS_MAX, CanonicalError, Members, number, string};

/// Appends the canonical form of `text` to `out`.
pub(super) fn canonicalize_into(text: &str, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
    let mut parser = Parser { text, position: 0 };
    parser.skip_space();
    parser.value(out, 0)?;
    parser.skip_space();
    if parser.peek().is_some() {
        return Err(parser.syntax_error("text after the value"));
    }
    Ok(())
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn syntax_error(&self, what: &'static str) -> CanonicalError {
        CanonicalError::Syntax { offset: self.position, what }
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let start = self.position;
        while self.peek().is_some_and(&wanted) {
            self.position += 1;
        }
        self.position - start
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
    }

    /// Skips `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn value(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<(), CanonicalError> {
        match self.peek() {
            Some(b'{' | b'[') if depth >= CANONICAL_DEPTH_MAX => Err(CanonicalError::TooDeep),
            Some(b'{') => self.object(out, depth + 1),
            Some(b'[') => self.array(out, depth + 1),
            Some(b'"') => {
                let text = self.string()?;
                string::write(out, &text);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            Some(_) => {
                for word in ["true", "false", "null"] {
                    if self
                        .text
                        .as_bytes()
                        .get(self.position..)
                        .is_some_and(|rest| rest.starts_with(word.as_bytes()))
                    {
                        self.position += word.len();
                        out.extend_from_slice(word.as_bytes());
                        return Ok(());
                    }
                }
                Err(self.syntax_error("expected a value"))
            }
            None => Err(self.syntax_error("expected a value, found the end of the text")),
        }
    }

    fn array(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<(), CanonicalError> {
        self.position += 1;
        out.push(b'[');
        self.skip_space();
        if !self.take(b']') {
            loop {
                self.skip_space();
                self.value(out, depth)?;
                self.skip_space();
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.syntax_error("expected `,` or `]`"));
                }
                out.push(b',');
            }
        }
        out.push(b']');
        Ok(())
    }

    fn object(&mut self, out: &mut Vec<u8>, depth: usize) -> Result<(), CanonicalError> {
        self.position += 1;
        let mut members = Members::default();
        self.skip_space();
        if !self.take(b'}') {
            loop {
                self.skip_space();
                if self.peek() != Some(b'"') {
                    return Err(self.syntax_error("expected a key"));
                }
                let key = self.string()?;
                self.skip_space();
                if !self.take(b':') {
                    return Err(self.syntax_error("expected `:`"));
                }
                self.skip_space();
                let mut value = Vec::new();
                self.value(&mut value, depth)?;
                members.push(key, value);
                self.skip_space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(self.syntax_error("expected `,` or `}`"));
                }
            }
        }
        members.write(out)
    }

    fn number(&mut self, out: &mut Vec<u8>) -> Result<(), CanonicalError> {
        let start = self.position;
        self.take(b'-');
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.skip_while(|byte| byte.is_ascii_digit());
        if digits == 0 || (leading_zero && digits > 1) {
            return Err(self.syntax_error("not a number"));
        }
        let mut is_float = false;
        if self.take(b'.') {
            is_float = true;
            if self.skip_while(|byte| byte.is_ascii_digit()) == 0 {
                return Err(self.syntax_error("expected a digit after the point"));
            }
        }
        if self.take(b'e') || self.take(b'E') {
            is_float = true;
            let _sign = self.take(b'+') || self.take(b'-');
            if self.skip_while(|byte| byte.is_ascii_digit()) == 0 {
                return Err(self.syntax_error("expected a digit in the exponent"));
            }
        }
        let text = self.text.get(start..self.position).unwrap_or_default();
        if is_float {
            let value = text.parse().map_err(|_| self.syntax_error("not a number"))?;
            return number::write_float(out, value);
        }
        if digits > CANONICAL_INTEGER_DIGITS_MAX {
            return Err(self.syntax_error("an integer has too many digits"));
        }
        // The integer zero has no sign.
        out.extend_from_slice(if text == "-0" { b"0" } else { text.as_bytes() });
        Ok(())
    }

    fn string(&mut self) -> Result<String, CanonicalError> {
        self.position += 1;
        let mut decoded = String::new();
        loop {
            let start = self.position;
            self.skip_while(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
            // Both ends are next to an ASCII byte or the end of the text, so they are on character
            // boundaries.
            decoded.push_str(self.text.get(start..self.position).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => {
                    self.position += 1;
                    decoded.push(self.escape()?);
                }
                Some(_) => return Err(self.syntax_error("a control character in a text")),
                None => return Err(self.syntax_error("a text without end")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CanonicalError> {
        let byte = self.peek().ok_or_else(|| self.syntax_error("a text without end"))?;
        self.position += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{08}',
            b'f' => '\u{0c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            _ => {
                self.position -= 1;
                return Err(self.syntax_error("an unknown escape"));
            }
        })
    }

    fn unicode_escape(&mut self) -> Result<char, CanonicalError> {
        const LONE_SURROGATE: &str = "half of a surrogate pair";
        let first = self.hex_unit()?;
        let second = if (0xd800..0xdc00).contains(&first) {
            if !(self.take(b'\\') && self.take(b'u')) {
                return Err(self.syntax_error(LONE_SURROGATE));
            }
            Some(self.hex_unit()?)
        } else {
            None
        };
        match char::decode_utf16([first].into_iter().chain(second)).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(self.syntax_error(LONE_SURROGATE)),
        }
    }

    fn hex_unit(&mut self) -> Result<u16, CanonicalError> {
        let digits = self.text.as_bytes().get(self.position..self.position + 4).unwrap_or_default();
        let value = digits
            .iter()
            .try_fold(0u32, |value, &digit| Some(value * 16 + char::from(digit).to_digit(16)?))
            .filter(|_| digits.len() == 4)
            .and_then(|value| u16::try_from(value).ok())
            .ok_or_else(|| self.syntax_error("expected four hexadecimal digits"))?;
        self.position += 4;
        Ok(value)
    }
}
