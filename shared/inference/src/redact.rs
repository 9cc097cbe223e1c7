//! Redacts keys in texts from outside.
//!
//! A provider may repeat the key that it was sent, in answers as well as in errors. Texts of providers go through
//! [`Keys`] before they are stored, exported or logged, with their chunks joined, so that a key split over two chunks
//! is found.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use bench_domain::{Answer, Finish, HarvestedFile, JobReport, Secret};
use memchr::{memchr3_iter, memmem};
use zeroize::Zeroizing;

/// Replacement for a key.
pub const REDACTED: &str = "[redacted]";
/// Minimum length of a key to search for. Real keys are several times as long. Shorter texts are placeholders, such
/// as `x` or `EMPTY` for a server that needs no key, and occur in ordinary texts.
const KEY_BYTES_MIN: usize = 8;
/// Minimum length, in bytes, of the beginning of a key that is recognized at the end of a cut text.
const BEGINNING_BYTES_MIN: usize = 8;

/// Keys that must not be in any stored text. Cheap to clone; never printed.
#[derive(Clone, Default)]
pub struct Keys {
    /// The keys, longest first, since one may be a part of another.
    texts: Arc<[Zeroizing<String>]>,
    /// Base64 fragments that contain one of the keys.
    fragments: Arc<[Base64Fragment]>,
}

/// The characters of a Base64 text that depend only on the key within it.
#[derive(Clone, PartialEq, Eq)]
struct Base64Fragment {
    text: Zeroizing<String>,
    /// True if the preceding character contains a few bits of the key.
    shares_preceding_char: bool,
    /// True if the following character contains a few bits of the key.
    shares_following_char: bool,
}

impl Keys {
    /// Prepares a search for these keys: in plain form, with any of their characters escaped as in JSON or in a URL,
    /// and within Base64.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a Secret>) -> Self {
        let (mut texts, mut fragments) = (Vec::new(), Vec::new());
        for key in keys.into_iter().map(Secret::expose).filter(|key| key.len() >= KEY_BYTES_MIN) {
            texts.push(Zeroizing::new(key.to_owned()));
            for bytes_before in 0..3 {
                fragments.extend(
                    [STANDARD_NO_PAD, URL_SAFE_NO_PAD]
                        .map(|engine| Base64Fragment::new(key, bytes_before, &engine)),
                );
            }
        }
        Self::from_parts(texts, fragments)
    }

    /// Returns these keys together with others.
    #[must_use]
    pub fn merged_with(&self, other: &Self) -> Self {
        Self::from_parts(
            self.texts.iter().chain(&*other.texts).cloned().collect(),
            self.fragments.iter().chain(&*other.fragments).cloned().collect(),
        )
    }

    fn from_parts(mut texts: Vec<Zeroizing<String>>, mut fragments: Vec<Base64Fragment>) -> Self {
        fn longest_first(one: &str, other: &str) -> Ordering {
            other.len().cmp(&one.len()).then_with(|| one.cmp(other))
        }
        texts.sort_by(|one, other| longest_first(one, other));
        texts.dedup();
        fragments.sort_by(|one, other| longest_first(&one.text, &other.text));
        fragments.dedup();
        Self { texts: texts.into(), fragments: fragments.into() }
    }

    /// Returns the text without keys. Borrows it if it contains none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replace_keys(text.as_bytes()) {
            // Keys are ASCII, so the text around them consists of whole characters.
            Some((bytes, _)) => Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|_| REDACTED.to_owned())),
            None => Cow::Borrowed(text),
        }
    }

    /// Redacts the beginning of a longer text, including the beginning of a key at its end.
    pub(crate) fn redact_beginning<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut redacted =
            self.replace_keys(bytes).map_or(Cow::Borrowed(bytes), |(bytes, _)| Cow::Owned(bytes));
        let of_texts = self.texts.iter().filter_map(|key| key_prefix_at_end(&redacted, key.as_bytes()));
        let of_fragments = self
            .fragments
            .iter()
            .filter_map(|fragment| key_prefix_at_end(&redacted, fragment.text.as_bytes()));
        if let Some(from) = of_texts.chain(of_fragments).min() {
            let redacted = redacted.to_mut();
            redacted.truncate(from);
            redacted.extend_from_slice(REDACTED.as_bytes());
        }
        redacted
    }

    /// Removes keys from a text. Returns the number of keys removed.
    pub fn redact_in(&self, text: &mut String) -> u64 {
        let Some((bytes, count)) = self.replace_keys(text.as_bytes()) else { return 0 };
        *text = String::from_utf8(bytes).unwrap_or_else(|_| REDACTED.to_owned());
        count
    }

    /// Removes keys from all texts of an answer, and counts them there.
    pub fn redact_answer(&self, answer: &mut Answer) {
        let Answer {
            text, reasoning, finish, usage_raw, model, request_id, keys_redacted, tool_calls, ..
        } = answer;
        let other = match finish {
            Finish::Other(name) => Some(name),
            _ => None,
        };
        let optional = [reasoning.as_mut(), usage_raw.as_mut(), model.as_mut(), request_id.as_mut(), other];
        let calls = tool_calls.iter_mut();
        let in_calls = calls.flat_map(|call| [&mut call.id, &mut call.name, &mut call.arguments]);
        for text in optional.into_iter().flatten().chain([text]).chain(in_calls) {
            *keys_redacted += self.redact_in(text);
        }
    }

    /// Removes keys from the output of a job in a sandbox.
    pub fn redact_report(&self, report: &mut JobReport) {
        for harvested in report.files.values_mut() {
            if let HarvestedFile::Text(text) = harvested {
                self.redact_in(text);
            }
        }
        self.redact_in(&mut report.stdout_tail);
        self.redact_in(&mut report.stderr_tail);
        report.isolation.as_mut().map(|name| self.redact_in(name));
    }

    /// Removes keys from the strings and field names of a JSON object.
    pub fn redact_object(&self, object: &mut serde_json::Map<String, serde_json::Value>) {
        object.values_mut().for_each(|value| self.redact_value(value));
        if object.keys().any(|name| matches!(self.redact(name), Cow::Owned(_))) {
            let fields = std::mem::take(object).into_iter();
            object.extend(fields.map(|(name, value)| (self.redact(&name).into_owned(), value)));
        }
    }

    /// Removes keys from all strings and field names of a JSON value.
    pub fn redact_value(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                self.redact_in(text);
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value)),
            serde_json::Value::Object(object) => self.redact_object(object),
            _ => {}
        }
    }

    /// Returns the text without keys and the number of keys. `None` if the text has none.
    fn replace_keys(&self, text: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut redacted: Option<(Vec<u8>, u64)> = None;
        let texts = self.texts.iter().map(|key| Form::Text(key.as_bytes()));
        for form in texts.chain(self.fragments.iter().map(Form::Base64Fragment)) {
            let now = redacted.as_ref().map_or(text, |(text, _)| text);
            let found = form.find_in(now);
            if found.is_empty() {
                continue;
            }
            let (mut out, mut from, count) = (Vec::with_capacity(now.len()), 0, found.len() as u64);
            for place in found {
                out.extend_from_slice(now.get(from..place.start).unwrap_or_default());
                out.extend_from_slice(REDACTED.as_bytes());
                from = place.end;
            }
            out.extend_from_slice(now.get(from..).unwrap_or_default());
            let before = redacted.map_or(0, |(_, count)| count);
            redacted = Some((out, before + count));
        }
        redacted
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Keys {}

impl Base64Fragment {
    /// Creates the fragment of a key that follows `bytes_before` other bytes. Only their number modulo 3 matters, since Base64
    /// encodes three bytes at a time.
    fn new(key: &str, bytes_before: usize, engine: &impl Engine) -> Self {
        const BITS: usize = 6;
        let mut bytes = Zeroizing::new(vec![0; bytes_before]);
        bytes.extend_from_slice(key.as_bytes());
        let whole = Zeroizing::new(engine.encode(&*bytes));
        let (first_bit, last_bit) = (8 * bytes_before, 8 * bytes.len());
        let own = whole.get(first_bit.div_ceil(BITS)..last_bit / BITS).unwrap_or_default();
        Self {
            text: Zeroizing::new(own.to_owned()),
            shares_preceding_char: !first_bit.is_multiple_of(BITS),
            shares_following_char: !last_bit.is_multiple_of(BITS),
        }
    }
}

/// A form of a key in a text.
enum Form<'a> {
    Text(&'a [u8]),
    Base64Fragment(&'a Base64Fragment),
}

impl Form<'_> {
    /// Returns the ranges of a text that have this form, in order.
    fn find_in(&self, text: &[u8]) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        match self {
            Self::Text(key) => {
                let Some(first) = key.first() else { return places };
                for from in memchr3_iter(*first, b'\\', b'%', text) {
                    let is_new = places.last().is_none_or(|last| last.end <= from);
                    if is_new && let KeyMatch::Whole(to) = match_spelling(text, from, key) {
                        places.push(from..to);
                    }
                }
            }
            Self::Base64Fragment(fragment) => {
                let is_base64 = |at: usize| {
                    text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
                };
                for at in memmem::find_iter(text, fragment.text.as_bytes()) {
                    let start = match at.checked_sub(1) {
                        Some(before) if fragment.shares_preceding_char && is_base64(before) => before,
                        _ => at,
                    };
                    let mut end = at + fragment.text.len();
                    end += usize::from(fragment.shares_following_char && is_base64(end));
                    while text.get(end) == Some(&b'=') {
                        end += 1;
                    }
                    places.push(start..end);
                }
            }
        }
        places
    }
}

/// Maximum number of backslashes before an escaped character; text that was escaped five times has 31. The limit
/// prevents quadratic time for a text of nothing but backslashes.
const SLASHES_MAX: usize = 32;

/// Result of matching a key at a position of a text.
enum KeyMatch {
    /// The whole key, up to this position.
    Whole(usize),
    /// The first bytes of the key, up to the end of the text, and their number.
    Begun(usize),
    /// No match.
    Not,
}

/// Matches a key at a position of a text. Each of its characters may be plain, escaped as in JSON, also repeatedly,
/// or encoded as in a URL.
fn match_spelling(text: &[u8], from: usize, key: &[u8]) -> KeyMatch {
    let mut at = from;
    for (count, byte) in key.iter().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        let slashes = rest.iter().take(SLASHES_MAX).take_while(|byte| **byte == b'\\').count();
        let after = rest.get(slashes..).unwrap_or_default();
        let hex = |digits: &[u8], value: u8| {
            std::str::from_utf8(digits).is_ok_and(|text| u32::from_str_radix(text, 16) == Ok(value.into()))
        };
        at += match (rest.first(), after) {
            (None, _) => return KeyMatch::Begun(count),
            (Some(first), _) if first == byte => 1,
            (Some(b'%'), [_, digits @ ..]) if digits.get(..2).is_some_and(|digits| hex(digits, *byte)) => 3,
            (Some(b'\\'), [next, ..]) if next == byte => slashes + 1,
            (Some(b'\\'), [b'u', digits @ ..])
                if digits.get(..4).is_some_and(|digits| hex(digits, *byte)) =>
            {
                slashes + 5
            }
            // The text ends within the escape of a character.
            (Some(b'\\'), [] | [b'u'] | [b'u', _] | [b'u', _, _] | [b'u', _, _, _])
            | (Some(b'%'), [_] | [_, _]) => {
                return KeyMatch::Begun(count);
            }
            _ => return KeyMatch::Not,
        };
    }
    KeyMatch::Whole(at)
}

/// Returns the position at which a key begins at the end of a text.
fn key_prefix_at_end(text: &[u8], key: &[u8]) -> Option<usize> {
    // Each character takes at most six bytes, or more if it is escaped repeatedly.
    const BYTES_EACH_MAX: usize = 12;
    let first = text.len().saturating_sub(BYTES_EACH_MAX * key.len());
    (first..text.len()).find(
        |from| matches!(match_spelling(text, *from, key), KeyMatch::Begun(count) if count >= BEGINNING_BYTES_MIN),
    )
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    const KEY: &str = "sk-a/b+c\"d=0123";

    fn keys(keys: &[&str]) -> Keys {
        let keys: Vec<_> = keys.iter().filter_map(|key| Secret::new(*key)).collect();
        Keys::new(&keys)
    }

    #[test]
    fn a_key_is_found_in_every_usual_form() {
        let keys = keys(&[KEY]);
        let json = serde_json::to_string(KEY).unwrap();
        let json = json.trim_matches('"');
        for form in [
            KEY.to_owned(),
            json.to_owned(),
            json.replace('/', "\\/"),
            json.replace('/', "\\/").replace('\\', "\\\\\\"),
            KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
            format!("\\u0073{}", json.strip_prefix('s').unwrap()),
            "sk-a%2Fb%2Bc%22d%3D0123".to_owned(),
            "sk-a%2fb%2bc%22d%3d0123".to_owned(),
            KEY.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            STANDARD.encode(KEY),
            URL_SAFE_NO_PAD.encode(KEY),
        ] {
            let text = format!("Bearer {form}, é{form}");
            assert_eq!(keys.redact(&text), "Bearer [redacted], é[redacted]", "{form}");
        }
        for other in ["nothing of it: sk-a/b+c", "%", "\\", "\\u00", "sk-a\\u002fb+c\"d=0124"] {
            assert!(matches!(keys.redact(other), Cow::Borrowed(_)), "{other}");
        }
    }

    /// Without a limit on the backslashes read for each position, this text would take hours.
    #[test]
    fn a_million_backslashes_take_linear_time() {
        let slashes = "\\".repeat(1 << 20);
        let text = format!("{slashes}u0073{}", KEY.strip_prefix('s').unwrap());
        let redacted = keys(&[KEY]).redact(&text).into_owned();
        assert!(redacted.ends_with(REDACTED) && redacted.len() < text.len(), "{}", redacted.len());
        assert!(matches!(keys(&[KEY]).redact(&slashes), Cow::Borrowed(_)));
    }

    #[test]
    fn a_key_is_found_within_a_longer_base64_text() {
        for key in [KEY, "secret-0123456789", "0123456789abcdef", "0123456789abcdefg"] {
            let keys = keys(&[key]);
            for (before, after) in [("", ""), ("u", ""), ("us", ":"), ("user:", "@host"), ("x", "yz")] {
                for fragment in [STANDARD.encode(format!("{before}{key}{after}")), {
                    URL_SAFE_NO_PAD.encode(format!("{before}{key}{after}"))
                }] {
                    let redacted = keys.redact(&fragment).into_owned();
                    assert!(redacted.contains(REDACTED), "{fragment}: {redacted}");
                    // Only the bytes around the key remain.
                    let left = redacted.len() - REDACTED.len();
                    assert!(
                        left <= (before.len() + after.len()).div_ceil(3) * 4 + 2,
                        "{fragment}: {redacted}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_key_within_another_and_a_short_one() {
        let both = keys(&["key-12345", "key-12345-longer"]);
        assert_eq!(both.redact("key-12345-longer key-12345"), "[redacted] [redacted]");
        for placeholder in ["x", "EMPTY", "1234567"] {
            assert_eq!(keys(&[placeholder]).redact("x EMPTY 1234567"), "x EMPTY 1234567");
        }
        assert_eq!(
            keys(&["key-12345"]).merged_with(&keys(&["other-key"])).redact("key-12345other-key").len(),
            20
        );
        assert_eq!(format!("{both:?}"), "[redacted]");
    }

    #[test]
    fn the_beginning_of_a_key_at_the_end_of_a_cut_text_goes_too() {
        let keys = keys(&["key-0123456789"]);
        let cut =
            |text: &str| String::from_utf8(keys.redact_beginning(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(cut("you sent key-01234"), "you sent [redacted]");
        assert_eq!(cut("key-0123456789 key-012345678"), "[redacted] [redacted]");
        assert_eq!(cut("you sent key\\u002d012345"), "you sent [redacted]");
        assert_eq!(cut("you sent key%2D0123456\\u00"), "you sent [redacted]");
        assert_eq!(cut("you sent key-012"), "you sent key-012", "too little to be told from other text");
        assert_eq!(cut(""), "");
    }

    #[test]
    fn all_texts_of_an_answer_and_a_report_are_redacted_and_counted() {
        const KEY: &str = "secret-0123456789";
        let keys = keys(&[KEY]);
        let mut answer = Answer::local(format!("It is {KEY}, I repeat: {KEY}"));
        answer.reasoning = Some(KEY.to_owned());
        answer.finish = Finish::Other(KEY.to_owned());
        answer.usage_raw = Some(format!(r#"{{"prompt_tokens":1,"for":"{KEY}"}}"#));
        answer.model = Some(KEY.to_owned());
        answer.request_id = Some(KEY.to_owned());
        keys.redact_answer(&mut answer);
        assert_eq!(answer.keys_redacted, 7);
        assert!(!serde_json::to_string(&answer).unwrap().contains(KEY));
        assert!(serde_json::from_str::<serde_json::Value>(answer.usage_raw.as_ref().unwrap()).is_ok());
        let mut report: JobReport = serde_json::from_value(serde_json::json!({
            "end": {"exited": 0}, "files": {"a": {"text": KEY}}, "stdout_tail": KEY, "stderr_tail": KEY,
            "isolation": KEY, "elapsed_ms": 1,
        }))
        .unwrap();
        keys.redact_report(&mut report);
        assert!(!serde_json::to_string(&report).unwrap().contains(KEY));
        let mut detail =
            serde_json::from_value(serde_json::json!({"a": [KEY, {"b": KEY, KEY: 1}], KEY: 2})).unwrap();
        keys.redact_object(&mut detail);
        let detail = serde_json::to_string(&detail).unwrap();
        assert!(!detail.contains(KEY) && detail.contains(r#""[redacted]":2"#), "{detail}");
    }
}
