//! Parses the formats of a judge's reply.

use std::fmt;

use bench_domain::{Answer, Finish};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use crate::grading::shorten;
use crate::python;

/// Maximum number of characters of a parser error that a message quotes.
const PROBLEM_CHARS_MAX: usize = 160;
const FENCE: &str = "```";
const THOUGHTS_START: &str = "<think>";
const THOUGHTS_END: &str = "</think>";

/// Returns true if an answer contains only whitespace.
pub(crate) fn is_blank(answer: &Answer) -> bool {
    python::strip(&answer.text).is_empty()
}

/// Records that the token limit truncated the judged answer.
pub(crate) fn note_truncation(detail: &mut Map<String, Value>, answer: &Answer) {
    if answer.finish == Finish::Length {
        detail.insert("truncated".into(), json!(true));
    }
}

/// Returns the members of a reply that is exactly one JSON object without duplicate names.
///
/// # Errors
/// Returns a short description of the error in the reply.
pub(crate) fn json_object(reply: &str) -> Result<Map<String, Value>, String> {
    let reply = python::strip(reply);
    if reply.is_empty() {
        return Err("it is empty".to_owned());
    }
    if !reply.starts_with('{') {
        return Err("it is not a JSON object".to_owned());
    }
    let object: Result<Object, _> = serde_json::from_str(reply);
    object.map(|object| object.0).map_err(|error| {
        format!("it is not one JSON object: {}", shorten(&error.to_string(), PROBLEM_CHARS_MAX))
    })
}

/// Object without duplicate names. With duplicates, it would be unclear which value is meant.
struct Object(Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a member occurs twice"));
            }
        }
        Ok(Object(members))
    }
}

/// Removes a code fence that encloses the whole reply.
pub(crate) fn strip_fence(reply: &str) -> &str {
    let reply = python::strip(reply);
    let inner = reply.strip_prefix(FENCE).and_then(|rest| rest.strip_suffix(FENCE));
    let Some((language, body)) = inner.and_then(|inner| inner.split_once('\n')) else { return reply };
    // More than a word after the opening fence is content, and a fence inside the body means two blocks.
    let is_language = language.trim().chars().all(|c| c.is_ascii_alphanumeric());
    if is_language && !body.contains(FENCE) { python::strip(body) } else { reply }
}

/// Removes closed reasoning blocks from a reply. A block that isn't closed stays.
pub(crate) fn strip_thoughts(reply: &str) -> String {
    let mut kept = String::new();
    let mut rest = reply;
    while let Some((before, block)) = rest.split_once(THOUGHTS_START) {
        let Some((_, after)) = block.split_once(THOUGHTS_END) else { break };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_reply_must_be_exactly_one_object() {
        assert_eq!(json_object(" {\"a\": 1}\n").unwrap().get("a"), Some(&json!(1)));
        for reply in [
            "",
            " ",
            "[]",
            "\"{}\"",
            "{} {}",
            "{\"a\":1,\"a\":1}",
            "{\"a\":1",
            "x {\"a\":1}",
            "{'a': 1}",
            "{\"a\":NaN}",
        ] {
            assert!(json_object(reply).is_err(), "{reply}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(json_object(&deep).unwrap_err().contains("recursion"));
        assert!(json_object(&"{".repeat(1 << 20)).unwrap_err().len() < 300);
    }

    #[test]
    fn one_fence_is_removed() {
        for (reply, expected) in [
            ("```json\n{}\n```", "{}"),
            ("\n```\n{}\n```  ", "{}"),
            ("{}", "{}"),
            ("```json\n{}\n```\n```json\n{}\n```", "```json\n{}\n```\n```json\n{}\n```"),
            ("So:\n```json\n{}\n```", "So:\n```json\n{}\n```"),
            ("```", "```"),
            ("``````", "``````"),
            ("```{\"a\":1}\n```", "```{\"a\":1}\n```"),
        ] {
            assert_eq!(strip_fence(reply), expected);
        }
    }

    #[test]
    fn closed_reasoning_blocks_are_removed() {
        for (reply, expected) in [
            ("<think>A or B</think>B", "B"),
            ("<think>A</think><think>\nB</think> C", " C"),
            ("<think>A or B", "<think>A or B"),
            ("A</think>B", "A</think>B"),
            ("plain", "plain"),
        ] {
            assert_eq!(strip_thoughts(reply), expected);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_texts_are_read(text in any::<String>()) {
            let _ = json_object(strip_fence(&strip_thoughts(&text)));
        }

        #[test]
        fn an_object_is_read_in_any_wrapping(value in ".{0,20}", blanks in "[ \n\t]{0,3}") {
            let object = json!({ "a": value });
            let plain = json_object(&format!("{blanks}{object}{blanks}")).unwrap();
            let fenced = json_object(strip_fence(&format!("```json\n{object}\n```{blanks}")));
            prop_assert_eq!(plain.get("a"), object.get("a"));
            // With a fence in the value, it is unclear where the block ends.
            prop_assert_eq!(fenced.is_ok(), !value.contains("```"));
        }
    }
}
