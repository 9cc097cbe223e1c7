//! Keys in texts from outside.
//!
//! A provider may repeat the key that it was sent, in an answer as well as in an error. Whatever is stored, exported or
//! logged of it goes through [`Keys`] first, with its chunks joined, so that a key that was split over two is found.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bench_domain::{Answer, Finish, Harvested, JobReport};
use memchr::memmem;
use zeroize::Zeroizing;

use crate::Secret;

/// What stands where a key was.
pub const REDACTED: &str = "[redacted]";
/// Minimum length of a key that is looked for. Real keys are several times as long; what is shorter is a placeholder,
/// such as `x` or `EMPTY` for a server that asks for no key, and its letters occur in ordinary texts.
const KEY_BYTES_MIN: usize = 8;
/// Bytes at the end of a text that was cut off by which the beginning of a key is recognized.
const BEGINNING_BYTES_MIN: usize = 8;

/// Keys that must not be in any stored text. Cheap to clone; never printed.
#[derive(Clone, Default)]
pub struct Keys {
    /// The keys as they may be written, longest first: one may be a part of another.
    forms: Arc<[Zeroizing<String>]>,
}

impl Keys {
    /// These keys, each in the forms in which a text may have it: as it is, escaped as in JSON or in a URL, in Base64.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut forms = BTreeSet::new();
        for key in keys.into_iter().map(Secret::expose).filter(|key| key.len() >= KEY_BYTES_MIN) {
            forms.insert(key.to_owned());
            let escaped = serde_json::to_string(key).unwrap_or_default();
            let escaped =
                escaped.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
            forms.insert(escaped.replace('/', "\\/"));
            forms.insert(escaped.to_owned());
            forms.insert(percent_encoded(key));
            for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
                forms.insert(engine.encode(key));
            }
        }
        Self::of_forms(forms)
    }

    /// These keys and others.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self::of_forms(self.forms.iter().chain(&*other.forms).map(|form| form.to_string()).collect())
    }

    fn of_forms(forms: BTreeSet<String>) -> Self {
        let mut forms: Vec<_> =
            forms.into_iter().filter(|form| form.len() >= KEY_BYTES_MIN).map(Zeroizing::new).collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        Self { forms: forms.into() }
    }

    /// The text without keys; borrowed where it has none.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.replaced(text.as_bytes()) {
            // Keys are ASCII, so what is left around them is whole characters.
            Some((bytes, _)) => Cow::Owned(String::from_utf8(bytes).unwrap_or_else(|_| REDACTED.to_owned())),
            None => Cow::Borrowed(text),
        }
    }

    /// The beginning of a longer text without keys, and without the beginning of a key at its end.
    pub(crate) fn redact_beginning<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut redacted = self.replaced(bytes).map_or(Cow::Borrowed(bytes), |(bytes, _)| Cow::Owned(bytes));
        let cut = |form: &Zeroizing<String>| {
            let longest = (form.len() - 1).min(redacted.len());
            (BEGINNING_BYTES_MIN..=longest)
                .rev()
                .find(|bytes| redacted.ends_with(form.as_bytes().get(..*bytes).unwrap_or_default()))
        };
        if let Some(bytes) = self.forms.iter().filter_map(cut).max() {
            let redacted = redacted.to_mut();
            redacted.truncate(redacted.len() - bytes);
            redacted.extend_from_slice(REDACTED.as_bytes());
        }
        redacted
    }

    /// Removes keys from a text; returns how many there were.
    pub fn redact_in(&self, text: &mut String) -> u64 {
        let Some((bytes, count)) = self.replaced(text.as_bytes()) else { return 0 };
        *text = String::from_utf8(bytes).unwrap_or_else(|_| REDACTED.to_owned());
        count
    }

    /// Removes keys from all that a provider said in an answer, and counts them there.
    pub fn redact_answer(&self, answer: &mut Answer) {
        let Answer { text, reasoning, finish, usage_raw, model, request_id, keys_redacted, .. } = answer;
        let other = match finish {
            Finish::Other(name) => Some(name),
            _ => None,
        };
        let optional = [reasoning.as_mut(), usage_raw.as_mut(), model.as_mut(), request_id.as_mut(), other];
        for text in optional.into_iter().flatten().chain([text]) {
            *keys_redacted += self.redact_in(text);
        }
    }

    /// Removes keys from what a job in a sandbox left.
    pub fn redact_report(&self, report: &mut JobReport) {
        for harvested in report.files.values_mut() {
            if let Harvested::Text(text) = harvested {
                self.redact_in(text);
            }
        }
        self.redact_in(&mut report.stdout_tail);
        self.redact_in(&mut report.stderr_tail);
        report.isolation.as_mut().map(|name| self.redact_in(name));
    }

    /// Removes keys from the texts of a JSON object.
    pub fn redact_object(&self, object: &mut serde_json::Map<String, serde_json::Value>) {
        object.values_mut().for_each(|value| self.redact_value(value));
    }

    fn redact_value(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => {
                self.redact_in(text);
            }
            serde_json::Value::Array(values) => values.iter_mut().for_each(|value| self.redact_value(value)),
            serde_json::Value::Object(object) => self.redact_object(object),
            _ => {}
        }
    }

    /// `None` where there is no key.
    fn replaced(&self, text: &[u8]) -> Option<(Vec<u8>, u64)> {
        let mut redacted: Option<(Vec<u8>, u64)> = None;
        for form in &*self.forms {
            let now = redacted.as_ref().map_or(text, |(text, _)| text);
            let mut found = memmem::find_iter(now, form.as_bytes()).peekable();
            if found.peek().is_none() {
                continue;
            }
            let (mut out, mut from, mut count) = (Vec::with_capacity(now.len()), 0, 0);
            for at in found {
                out.extend_from_slice(now.get(from..at).unwrap_or_default());
                out.extend_from_slice(REDACTED.as_bytes());
                from = at + form.len();
                count += 1;
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
        self.forms == other.forms
    }
}

impl Eq for Keys {}

/// A key as the value of a query: all but letters, digits and `-._~` as `%XX`.
fn percent_encoded(key: &str) -> String {
    let mut encoded = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
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
        for form in [
            KEY.to_owned(),
            json.trim_matches('"').to_owned(),
            json.trim_matches('"').replace('/', "\\/"),
            "sk-a%2Fb%2Bc%22d%3D0123".to_owned(),
            STANDARD.encode(KEY),
            URL_SAFE_NO_PAD.encode(KEY),
        ] {
            let text = format!("Bearer {form}, é{form}");
            assert_eq!(keys.redact(&text), "Bearer [redacted], é[redacted]", "{form}");
        }
        assert!(matches!(keys.redact("nothing of it: sk-a/b+c"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_key_within_another_and_a_short_one() {
        let both = keys(&["key-12345", "key-12345-longer"]);
        assert_eq!(both.redact("key-12345-longer key-12345"), "[redacted] [redacted]");
        for placeholder in ["x", "EMPTY", "1234567"] {
            assert_eq!(keys(&[placeholder]).redact("x EMPTY 1234567"), "x EMPTY 1234567");
        }
        assert_eq!(keys(&["key-12345"]).and(&keys(&["other-key"])).redact("key-12345other-key").len(), 20);
        assert_eq!(format!("{both:?}"), "[redacted]");
    }

    #[test]
    fn the_beginning_of_a_key_at_the_end_of_a_cut_text_goes_too() {
        let keys = keys(&["key-0123456789"]);
        let cut =
            |text: &str| String::from_utf8(keys.redact_beginning(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(cut("you sent key-01234"), "you sent [redacted]");
        assert_eq!(cut("key-0123456789 key-012345678"), "[redacted] [redacted]");
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
        let mut detail = serde_json::from_value(serde_json::json!({"a": [KEY, {"b": KEY}]})).unwrap();
        keys.redact_object(&mut detail);
        assert!(!serde_json::to_string(&detail).unwrap().contains(KEY));
    }
}
