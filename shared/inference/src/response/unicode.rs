//! Repairs text received as broken Unicode.
//!
//! Servers cut answers between tokens, and a token may end inside a character. Then half of a UTF-16 surrogate pair
//! (`"\ud83d"`) or a few bytes of a UTF-8 sequence end one chunk, and the rest begins the next. JSON parsers refuse
//! both. [`mark`] rewrites such JSON so that it can be parsed and still shows where the pieces were. [`Assembler`]
//! joins the pieces of a text across chunks, and replaces those without a counterpart with U+FFFD.

use bench_domain::TextRepairs;

/// Precedes each piece in marked JSON. A noncharacter that practically never occurs in texts; if it does, it is
/// doubled.
const MARK: char = '\u{fdd0}';
/// Represents the surrogate U+D800. The following code points represent the others.
const SURROGATES: u32 = 0xE000;
/// Represents the byte 0. The following code points represent the others.
const BYTES: u32 = 0xE800;
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// A part of a text that is not a character by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// Half of a surrogate pair.
    Surrogate(u16),
    /// A byte that doesn't continue or complete a UTF-8 sequence.
    Byte(u8),
}

/// Returns the JSON with a mark for every broken piece of its strings. `None` if nothing is broken.
pub(crate) fn mark(json: &[u8]) -> Option<Vec<u8>> {
    rewrite(json, true, |out, broken| {
        let code = match broken {
            Broken::Surrogate(unit) => SURROGATES + u32::from(unit - 0xD800),
            Broken::Byte(byte) => BYTES + u32::from(byte),
        };
        push_char(out, MARK);
        push_char(out, char::from_u32(code).unwrap_or(REPLACEMENT));
    })
}

/// Returns the JSON with U+FFFD for every broken piece. `None` if nothing is broken.
pub(crate) fn replace(json: &[u8]) -> Option<Vec<u8>> {
    rewrite(json, false, |out, _| push_char(out, REPLACEMENT))
}

fn push_char(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

/// Copies JSON and passes broken pieces of its strings to `write`. If `doubles` is true, each [`MARK`] is written
/// twice.
fn rewrite(json: &[u8], doubles: bool, write: impl Fn(&mut Vec<u8>, Broken)) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len() + 16);
    let (mut at, mut in_text, mut is_broken) = (0, false, false);
    while let Some(rest) = json.get(at..).filter(|rest| !rest.is_empty()) {
        let mut broken = |out: &mut Vec<u8>, piece| {
            is_broken = true;
            write(out, piece);
        };
        let consumed = match rest {
            [b'\\', b'u', ..] if in_text => match (utf16_unit(rest), rest.get(6..).and_then(utf16_unit)) {
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => {
                    out.extend_from_slice(rest.get(..12).unwrap_or_default());
                    12
                }
                (Some(unit @ 0xD800..=0xDFFF), _) => {
                    broken(&mut out, Broken::Surrogate(unit));
                    6
                }
                (Some(unit), _) if doubles && u32::from(unit) == u32::from(MARK) => {
                    push_char(&mut out, MARK);
                    push_char(&mut out, MARK);
                    6
                }
                _ => copy(&mut out, rest, 2),
            },
            [b'\\', next, ..] if in_text && next.is_ascii() => copy(&mut out, rest, 2),
            [byte, ..] if byte.is_ascii() => {
                in_text ^= *byte == b'"';
                copy(&mut out, rest, 1)
            }
            _ => match first_char(rest) {
                Some(MARK) if in_text && doubles => {
                    push_char(&mut out, MARK);
                    copy(&mut out, rest, MARK.len_utf8())
                }
                Some(c) => copy(&mut out, rest, c.len_utf8()),
                None => {
                    let byte = rest.first().copied().unwrap_or_default();
                    broken(&mut out, Broken::Byte(byte));
                    1
                }
            },
        };
        at += consumed;
    }
    is_broken.then_some(out)
}

fn copy(out: &mut Vec<u8>, rest: &[u8], bytes: usize) -> usize {
    out.extend_from_slice(rest.get(..bytes).unwrap_or(rest));
    bytes
}

/// Returns the character at the start, if there is one.
fn first_char(bytes: &[u8]) -> Option<char> {
    let head = bytes.get(..4).unwrap_or(bytes);
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
    };
    valid.chars().next()
}

/// Returns the code unit of an escape at the start: `\u` and four hexadecimal digits.
fn utf16_unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A text that grows piece by piece. Half a character at the end of one piece waits for the next.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    text: String,
    /// The first half of a surrogate pair.
    high: Option<u16>,
    /// The beginning of a UTF-8 sequence.
    bytes: Vec<u8>,
}

impl Assembler {
    /// Returns the length of the text so far in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the text so far, without half a character that is still waiting.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends a piece of JSON that was parsed as received.
    pub(crate) fn push(&mut self, text: &str, repairs: &mut TextRepairs) {
        if !text.is_empty() {
            self.flush_pending(repairs);
            self.text.push_str(text);
        }
    }

    /// Appends a piece of JSON that went through [`mark`].
    pub(crate) fn push_marked(&mut self, text: &str, repairs: &mut TextRepairs) {
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once(MARK) {
            self.push(before, repairs);
            let mut chars = marked.chars();
            match chars.next().map(u32::from) {
                Some(code @ SURROGATES..BYTES) => {
                    let unit = u16::try_from(code - SURROGATES).unwrap_or_default();
                    self.push_surrogate(0xD800 + unit, repairs);
                }
                Some(code @ BYTES..=0xE8FF) => {
                    self.push_byte(u8::try_from(code - BYTES).unwrap_or_default(), repairs);
                }
                _ => self.push("\u{fdd0}", repairs),
            }
            rest = chars.as_str();
        }
        self.push(rest, repairs);
    }

    /// Returns the whole text. Replaces half a character that is still waiting.
    pub(crate) fn finish(mut self, repairs: &mut TextRepairs) -> String {
        self.flush_pending(repairs);
        self.text
    }

    fn push_surrogate(&mut self, unit: u16, repairs: &mut TextRepairs) {
        if unit < 0xDC00 {
            self.flush_pending(repairs);
            self.high = Some(unit);
            return;
        }
        let pair = self.high.map(|high| [high, unit]);
        let joined = pair.and_then(|pair| char::decode_utf16(pair).next()?.ok());
        match joined {
            Some(c) => {
                self.high = None;
                self.text.push(c);
                repairs.joined += 1;
            }
            None => {
                self.flush_pending(repairs);
                self.replace(repairs);
            }
        }
    }

    fn push_byte(&mut self, byte: u8, repairs: &mut TextRepairs) {
        if self.high.is_some() {
            self.flush_pending(repairs);
        }
        self.bytes.push(byte);
        match std::str::from_utf8(&self.bytes) {
            Ok(character) => {
                self.text.push_str(character);
                self.bytes.clear();
                repairs.joined += 1;
            }
            // The next piece may complete it.
            Err(error) if error.error_len().is_none() => {}
            Err(_) if self.bytes.len() == 1 => self.flush_pending(repairs),
            Err(_) => {
                self.bytes.pop();
                self.flush_pending(repairs);
                self.push_byte(byte, repairs);
            }
        }
    }

    fn flush_pending(&mut self, repairs: &mut TextRepairs) {
        if self.high.take().is_some() {
            self.replace(repairs);
        }
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.replace(repairs);
        }
    }

    fn replace(&mut self, repairs: &mut TextRepairs) {
        self.text.push(REPLACEMENT);
        repairs.replaced += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Assembles consecutive JSON strings. Returns the text and its repairs.
    fn assembled(pieces: &[&[u8]]) -> (String, TextRepairs) {
        let (mut text, mut repairs) = (Assembler::default(), TextRepairs::default());
        for piece in pieces {
            match serde_json::from_slice::<String>(piece) {
                Ok(piece) => text.push(&piece, &mut repairs),
                Err(_) => {
                    let marked = mark(piece).unwrap();
                    text.push_marked(&serde_json::from_slice::<String>(&marked).unwrap(), &mut repairs);
                }
            }
        }
        (text.finish(&mut repairs), repairs)
    }

    #[test]
    fn halves_are_joined_and_the_rest_is_replaced() {
        let (joined, replaced) =
            (TextRepairs { joined: 1, replaced: 0 }, TextRepairs { joined: 0, replaced: 1 });
        for (pieces, text, repairs) in [
            (&[br#""a\ud83d""#.as_slice(), br#""\ude00b""#][..], "a😀b", joined),
            (&[br#""a\uD83D""#, br#""""#, br#""\uDE00b""#], "a😀b", joined),
            (&[br#""a\ud83d""#, br#""b""#], "a\u{fffd}b", replaced),
            (&[br#""a\ud83d""#], "a\u{fffd}", replaced),
            (&[br#""\ude00 a""#], "\u{fffd} a", replaced),
            (&[br#""\ud83d\ud83d""#, br#""\ude00""#], "\u{fffd}😀", TextRepairs { joined: 1, replaced: 1 }),
            (&[br#""\ude00\ud83d""#], "\u{fffd}\u{fffd}", TextRepairs { joined: 0, replaced: 2 }),
            (&[br#""\ud83d\ude00 \\ud83d \" \ud83dx""#], "😀 \\ud83d \" \u{fffd}x", replaced),
            (&[b"\"a\xf0\x9f\"", b"\"\x98\x80b\""], "a😀b", joined),
            (&[b"\"a\xf0\x9f\"", b"\"b\""], "a\u{fffd}b", replaced),
            (&[b"\"a\xff b\""], "a\u{fffd} b", replaced),
            (&[b"\"\xe6\xbc\xf0\x9f\x98\x80\""], "\u{fffd}😀", replaced),
            (&["\"\u{fdd0}\\ud83d\\ufdd0\"".as_bytes()], "\u{fdd0}\u{fffd}\u{fdd0}", replaced),
            (&["\"\u{fdd0}\u{e000}\\ufdd0\"".as_bytes()], "\u{fdd0}\u{e000}\u{fdd0}", TextRepairs::default()),
        ] {
            assert_eq!(assembled(pieces), (text.to_owned(), repairs), "{pieces:?}");
        }
    }

    #[test]
    fn what_is_whole_is_left_alone() {
        for json in [r#"{"a":"é 😀 \ud83d\ude00 \\ud83d \u00e9"}"#, "no json \\ud83d", "", "\"\\"] {
            assert_eq!((mark(json.as_bytes()), replace(json.as_bytes())), (None, None), "{json}");
        }
        assert_eq!(replace(br#"{"a":"\ud83d"}"#).unwrap(), "{\"a\":\"\u{fffd}\"}".as_bytes());
    }

    proptest! {
        /// For any split of an escaped text into strings, the characters are the same as for the whole.
        #[test]
        fn cuts_between_escapes_do_not_matter(text in "[a😀é\u{10ffff}\u{fdd0}]{0,12}", cut in any::<prop::sample::Index>()) {
            let units: Vec<u16> = text.encode_utf16().collect();
            let at = cut.index(units.len() + 1);
            let json = |units: &[u16]| {
                let escapes: String = units.iter().map(|unit| format!("\\u{unit:04x}")).collect();
                format!("\"{escapes}\"").into_bytes()
            };
            let (one, two) = (json(&units[..at]), json(&units[at..]));
            let (joined, repairs) = assembled(&[&one, &two]);
            prop_assert_eq!(joined, text);
            prop_assert_eq!(repairs.replaced, 0);
        }

        /// The same for splits inside UTF-8 sequences.
        #[test]
        fn cuts_between_bytes_do_not_matter(text in "[a😀é漢]{0,12}", cut in any::<prop::sample::Index>()) {
            let at = cut.index(text.len() + 1);
            let quoted = |bytes: &[u8]| [b"\"", bytes, b"\""].concat();
            let (one, two) = (quoted(&text.as_bytes()[..at]), quoted(&text.as_bytes()[at..]));
            let (joined, repairs) = assembled(&[&one, &two]);
            prop_assert_eq!(joined, text);
            prop_assert_eq!(repairs.replaced, 0);
        }

        /// It terminates for all bytes, and preserves all valid text.
        #[test]
        fn marking_terminates_on_anything(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = (mark(&bytes), replace(&bytes));
            let text = [b"\"x".as_slice(), &bytes, b"y"].concat();
            if let Some(fixed) = replace(&text) {
                prop_assert!(std::str::from_utf8(&fixed).is_ok());
            }
        }
    }
}
