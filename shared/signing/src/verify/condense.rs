//! Reader that empties each sample of results, once it has checked that the sample is valid JSON.
//!
//! A verification only counts benchmarks and reads a few fields of the run, but has to know that everything else is JSON. The
//! parser takes its input from a reader byte by byte, which was most of the time of a verification. It skips a slice several
//! times faster, so each sample is collected and skipped as a slice.

use std::io::{self, Read};

use serde::de::IgnoredAny;

use super::guard::TextState;

/// Nesting depth of samples: document, benchmarks, benchmark, items, sample. Nothing that a verification reads is as deep.
const SAMPLE_DEPTH: u32 = 5;

/// Maximum length of a sample that is collected, in bytes. The parser gets longer ones as they are.
const SAMPLE_BYTES_MAX: usize = 4 << 20;

/// Length of the pieces that are read.
const PIECE_BYTES: usize = 64 * 1024;

/// Empties samples in what is read through it. Malformed JSON passes unchanged, for the parser to reject.
pub(super) struct Condenser<R> {
    reader: R,
    piece: Vec<u8>,
    /// Output, and how much of it has been read.
    output: Vec<u8>,
    taken: usize,
    /// Beginning of the current sample.
    sample: Vec<u8>,
    /// True while a sample passes unchanged because it is too long.
    is_passing: bool,
    depth: u32,
    text: TextState,
}

impl<R: Read> Condenser<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            piece: vec![0; PIECE_BYTES],
            output: Vec::new(),
            taken: 0,
            sample: Vec::new(),
            is_passing: false,
            depth: 0,
            text: TextState::default(),
        }
    }

    /// Processes the next piece of the input. At its end, an incomplete sample passes unchanged.
    fn refill(&mut self) -> io::Result<()> {
        self.output.clear();
        self.taken = 0;
        while self.output.is_empty() {
            let mut piece = std::mem::take(&mut self.piece);
            let count = self.reader.read(&mut piece);
            if let Ok(count) = count {
                self.process(piece.get(..count).unwrap_or_default());
            }
            self.piece = piece;
            if count? == 0 {
                self.output.append(&mut self.sample);
                return Ok(());
            }
        }
        Ok(())
    }

    fn process(&mut self, piece: &[u8]) {
        // Start of the bytes that are neither in the output nor in the sample yet.
        let mut rest = piece;
        let mut at = 0;
        loop {
            at += self.text.advance(rest.get(at..).unwrap_or_default());
            let Some(&byte) = rest.get(at) else { break };
            at += 1;
            match byte {
                b'"' => self.text.begin(),
                b'{' | b'[' => {
                    self.depth += 1;
                    if self.depth == SAMPLE_DEPTH {
                        let (before, sample) = rest.split_at(at - 1);
                        self.output.extend_from_slice(before);
                        (rest, at) = (sample, 1);
                    }
                }
                b'}' | b']' => {
                    if self.depth == SAMPLE_DEPTH {
                        let (end, after) = rest.split_at(at);
                        self.end_sample(end);
                        (rest, at) = (after, 0);
                    }
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
        }
        if self.depth < SAMPLE_DEPTH || self.is_passing {
            self.output.extend_from_slice(rest);
            return;
        }
        self.sample.extend_from_slice(rest);
        if self.sample.len() > SAMPLE_BYTES_MAX {
            self.is_passing = true;
            self.output.append(&mut self.sample);
        }
    }

    /// Writes a sample that ends with these bytes.
    fn end_sample(&mut self, end: &[u8]) {
        if std::mem::take(&mut self.is_passing) {
            self.output.extend_from_slice(end);
            return;
        }
        let sample = if self.sample.is_empty() {
            end
        } else {
            self.sample.extend_from_slice(end);
            &self.sample
        };
        match serde_json::from_slice::<IgnoredAny>(sample) {
            Ok(_) => self.output.extend_from_slice(if sample.starts_with(b"{") { b"{}" } else { b"[]" }),
            Err(_) => self.output.extend_from_slice(sample),
        }
        self.sample.clear();
    }
}

impl<R: Read> Read for Condenser<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken >= self.output.len() {
            self.refill()?;
        }
        let count = self.output.get(self.taken..).unwrap_or_default().read(buffer)?;
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Returns at most `length` bytes at once.
    struct Slowly<'a>(&'a [u8], usize);

    impl Read for Slowly<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            let (now, later) = self.0.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.0 = later;
            Ok(length)
        }
    }

    fn condensed(text: &[u8], length: usize) -> String {
        let mut output = Vec::new();
        Condenser::new(Slowly(text, length)).read_to_end(&mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn samples_are_emptied() {
        let text = r#"{"benchmarks":[{"items":[{"a":"}]\\","b":[[{}]]}, {"c":"\"{"}, []],"n":[1]}],"run":{"id":"{"}}"#;
        for length in [1, 2, 7, text.len()] {
            let expected = r#"{"benchmarks":[{"items":[{}, {}, []],"n":[1]}],"run":{"id":"{"}}"#;
            assert_eq!(condensed(text.as_bytes(), length), expected, "{length}");
        }
    }

    #[test]
    fn malformed_and_long_samples_pass_unchanged() {
        let long = format!(r#"[[[[{{"a":"{}"}},0]]]]"#, "x".repeat(SAMPLE_BYTES_MAX + PIECE_BYTES));
        let cases = [
            r#"[[[[{"a":}]]]]"#,
            r#"[[[[{"a":1]]]]"#,
            r#"[[[[{"a":"#,
            r#"[[[[{"a":"\"#,
            r#"[[[[{a}, 1]]]]"#,
            r#"]]]{"#,
            "[[[[{\"a\":\"\n\"}]]]]",
            &long,
        ];
        for text in cases {
            for length in [3, 1 << 20] {
                assert!(
                    condensed(text.as_bytes(), length) == text,
                    "{} {length}",
                    &text[..text.len().min(40)]
                );
            }
        }
    }

    proptest! {
        #[test]
        fn the_parser_decides_the_same(
            text in r#"(\{|\}|\[|\]|"|\\|,|:|1|a|null| |"a":|\[\{"a":){0,40}"#, nested in any::<bool>(), length in 1_usize..9,
        ) {
            let text = if nested { format!("[[[[{text}]]]]") } else { text };
            let condensed = condensed(text.as_bytes(), length);
            prop_assert_eq!(
                serde_json::from_str::<IgnoredAny>(&condensed).is_ok(),
                serde_json::from_str::<IgnoredAny>(&text).is_ok()
            );
        }

        #[test]
        fn valid_json_stays_valid(values in prop::collection::vec("[a-z{}\\[\\]\"\\\\,:]{0,9}", 0..9), length in 1_usize..9) {
            let text = json!({ "benchmarks": [{ "items": [{ "texts": values }] }] }).to_string();
            let condensed: Value = serde_json::from_str(&condensed(text.as_bytes(), length)).unwrap();
            prop_assert_eq!(condensed, json!({ "benchmarks": [{ "items": [{}] }] }));
        }
    }
}
