//! Guard in front of a JSON parser that keeps only a few fields. It stops input that would make the parser use much
//! memory all the same: deep nesting, which the parser tracks, and long keys and values near the top level, which it
//! buffers. It also checks that the text is UTF-8, which a parser doesn't check for skipped values.

/// Maximum nesting depth of results, the same as for canonical JSON.
const DEPTH_MAX: u32 = crate::canonical::CANONICAL_DEPTH_MAX as u32;

/// Depth of the fields that a verification reports: they are in the document itself and in `run`.
const COLLECTED_DEPTH_MAX: u32 = 2;

/// Maximum length of a key or value down to that depth, in bytes.
const COLLECTED_BYTES_MAX: u64 = 1 << 20;

/// State of the guard. It needs no rules for malformed JSON, which the parser rejects.
#[derive(Debug, Default)]
pub(super) struct JsonGuard {
    depth: u32,
    text: TextState,
    collected_bytes: u64,
    /// Bytes of a character that is split between two chunks.
    partial: Vec<u8>,
    violation: Option<&'static str>,
}

impl JsonGuard {
    /// Returns the violation after [`Self::check`] has failed.
    pub(super) fn violation(&self) -> Option<&'static str> {
        self.violation
    }

    /// Checks the next chunk.
    pub(super) fn check(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let result = self.check_utf8(bytes).and_then(|()| self.check_shape(bytes));
        // Parsers read on a little after an error; keep the first violation.
        self.violation = self.violation.or(result.err());
        result
    }

    fn check_shape(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            let text = self.text.advance(rest);
            if text > 0 {
                self.collect(text)?;
                rest = rest.get(text..).unwrap_or_default();
                continue;
            }
            rest = after;
            self.collect(1)?;
            match byte {
                b'"' => self.text.begin(),
                b'{' | b'[' => {
                    self.depth += 1;
                    self.collected_bytes = 0;
                    if self.depth > DEPTH_MAX {
                        return Err("it is nested too deeply");
                    }
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.collected_bytes = 0;
                }
                b',' | b':' => self.collected_bytes = 0,
                _ => {}
            }
        }
        Ok(())
    }

    /// Counts bytes that the parser may buffer.
    fn collect(&mut self, bytes: usize) -> Result<(), &'static str> {
        if self.depth <= COLLECTED_DEPTH_MAX {
            self.collected_bytes += bytes as u64;
            if self.collected_bytes > COLLECTED_BYTES_MAX {
                return Err("a text or number is too long");
            }
        }
        Ok(())
    }

    fn check_utf8(&mut self, mut bytes: &[u8]) -> Result<(), &'static str> {
        const NOT_UTF8: &str = "it is not UTF-8";
        while !self.partial.is_empty() {
            let Some((&next, rest)) = bytes.split_first() else { return Ok(()) };
            bytes = rest;
            self.partial.push(next);
            match std::str::from_utf8(&self.partial) {
                Ok(_) => self.partial.clear(),
                Err(error) if error.error_len().is_some() => return Err(NOT_UTF8),
                Err(_) => {}
            }
        }
        match std::str::from_utf8(bytes) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_some() => Err(NOT_UTF8),
            Err(error) => {
                self.partial.extend_from_slice(bytes.get(error.valid_up_to()..).unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// State of a scan with regard to texts, where brackets and commas mean nothing.
#[derive(Debug, Default)]
pub(super) struct TextState {
    in_text: bool,
    is_escaped: bool,
}

impl TextState {
    /// Begins a text, after its first quotation mark.
    pub(super) fn begin(&mut self) {
        self.in_text = true;
    }

    /// Returns how many bytes belong to the text that has begun, with its last quotation mark; 0 outside of texts.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut length = 0;
        while self.in_text {
            let rest = bytes.get(length..).unwrap_or_default();
            if self.is_escaped {
                let Some(_) = rest.first() else { break };
                self.is_escaped = false;
                length += 1;
                continue;
            }
            let Some(at) = memchr::memchr2(b'"', b'\\', rest) else { return bytes.len() };
            length += at + 1;
            match rest.get(at) {
                Some(b'"') => self.in_text = false,
                _ => self.is_escaped = true,
            }
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_in_pieces(bytes: &[u8], piece: usize) -> Option<&'static str> {
        let mut guard = JsonGuard::default();
        for piece in bytes.chunks(piece) {
            if guard.check(piece).is_err() {
                break;
            }
        }
        guard.violation()
    }

    #[test]
    fn the_size_of_pieces_does_not_matter() {
        let long = "x".repeat(COLLECTED_BYTES_MAX as usize + 1);
        let deep = "[".repeat(DEPTH_MAX as usize + 1);
        let cases: [(Vec<u8>, Option<&str>); 8] = [
            ("{\"é\":\"😀世\"}".into(), None),
            (b"[\"\xff\"]".to_vec(), Some("it is not UTF-8")),
            (b"[\"\xe4\xb8\"]".to_vec(), Some("it is not UTF-8")),
            (format!("{{\"run\":{{\"id\":\"{long}\"}}}}").into(), Some("a text or number is too long")),
            (format!("{{\"{long}\":1}}").into(), Some("a text or number is too long")),
            (format!("{{\"benchmarks\":[{{\"a\":\"{long}\"}}]}}").into(), None),
            (deep.clone().into(), Some("it is nested too deeply")),
            (format!("[\"\\\"{deep}\\\\\"]").into(), None),
        ];
        for (text, violation) in cases {
            for piece in [1, 2, 3, 5, 64 * 1024] {
                assert_eq!(check_in_pieces(&text, piece), violation, "{piece}");
            }
        }
    }
}
