//! The JSON objects of the API, parsed without copying where possible.

use std::borrow::Cow;
use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::calls::Calls;

/// One `chat.completion.chunk`, or a whole `chat.completion`.
#[derive(Debug, Deserialize)]
pub(super) struct Piece<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) model: Option<Text<'a>>,
    /// `error` if the whole object is an error.
    #[serde(borrow, default)]
    pub(super) object: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// One of the answers. Requests ask for only one.
#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub(super) index: Option<u64>,
    /// In a chunk.
    #[serde(borrow, default)]
    pub(super) delta: Option<Message<'a>>,
    /// In a whole answer.
    #[serde(borrow, default)]
    pub(super) message: Option<Message<'a>>,
    /// From servers that answer in the form of the older completions API.
    #[serde(borrow, default)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// A message, or an addition to it.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Calls<'a>>,
}

/// A string, or an array of parts `{"type": "text", "text": …}` whose texts are joined. Any other value counts as
/// empty: an invalid `"content": 0` must not invalidate the answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or text parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut joined = Cow::Borrowed("");
        while let Some(Text(part)) = parts.next_element()? {
            joined += part;
        }
        Ok(joined)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut part: A) -> Result<Self::Value, A::Error> {
        let mut text = Cow::Borrowed("");
        while let Some(Text(name)) = part.next_key()? {
            if name == "text" {
                text = part.next_value::<Text<'de>>()?.0;
            } else {
                part.next_value::<IgnoredAny>()?;
            }
        }
        Ok(text)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_borrowed() {
        let json = r#"{"choices":[{"delta":{"content":"plain","reasoning":"a\nb"}}]}"#;
        let piece: Piece<'_> = serde_json::from_slice(json.as_bytes()).unwrap();
        let delta = piece.choices.unwrap().remove(0).delta.unwrap();
        assert!(matches!(delta.content, Some(Text(Cow::Borrowed("plain")))));
        assert_eq!(delta.reasoning.unwrap().0, "a\nb");
    }

    #[test]
    fn odd_contents_do_not_cost_the_piece() {
        let content = |json: &str| serde_json::from_str::<Text<'_>>(json).unwrap().0.into_owned();
        assert_eq!(content(r#"[{"type":"text","text":"a"},{"type":"image_url","image_url":{}},"b"]"#), "ab");
        assert_eq!(content(r#"{"type":"text","text":"a"}"#), "a");
        for json in ["0", "-1", "1.5", "true", "null", "[]", "{}"] {
            assert_eq!(content(json), "", "{json}");
        }
    }
}
