//! The `usage` object of the API.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::response::{ReportedUsage, TokenCount};

type Fields<'a> = HashMap<&'a str, &'a RawValue>;

/// Parses a `usage` object.
pub fn parse_usage(json: &str) -> ReportedUsage {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(json) else { return ReportedUsage::Nothing };
    let details = fields.get("completion_tokens_details").map_or("null", |details| details.get());
    let details: Fields<'_> = serde_json::from_str(details).unwrap_or_default();
    // Some gateways write both names into one object: the first one present counts.
    let first = |places: [(&Fields<'_>, &str); 2]| {
        let mut counts = places
            .into_iter()
            .map(|(fields, name)| TokenCount::read(fields.get(name).map(|json| json.get())));
        counts.find(|count| *count != TokenCount::Missing).unwrap_or(TokenCount::Missing)
    };
    ReportedUsage::new(
        first([(&fields, "prompt_tokens"), (&fields, "input_tokens")]),
        first([(&fields, "completion_tokens"), (&fields, "output_tokens")]),
        first([(&details, "reasoning_tokens"), (&fields, "reasoning_tokens")]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::{TOKENS_PER_CALL_MAX, Usage};

    #[test]
    fn counts_are_read_in_their_usual_forms() {
        let usage =
            |input, output, reasoning| ReportedUsage::Counted(Usage::counted(input, output, reasoning));
        let full = r#"{"prompt_tokens":5,"completion_tokens":7,"total_tokens":12,"completion_tokens_details":{"reasoning_tokens":3}}"#;
        assert_eq!(parse_usage(full), usage(5, 7, 3));
        assert_eq!(parse_usage(r#"{"prompt_tokens":5.0,"completion_tokens":null}"#), usage(5, 0, 0));
        assert_eq!(
            parse_usage(r#"{"input_tokens":1,"output_tokens":2,"reasoning_tokens":1}"#),
            usage(1, 2, 1)
        );
        assert_eq!(parse_usage(r#"{"input_tokens":1,"prompt_tokens":1,"output_tokens":2}"#), usage(1, 2, 0));
        assert_eq!(
            parse_usage(r#"{"prompt_tokens":1,"completion_tokens":2,"completion_tokens_details":null}"#),
            usage(1, 2, 0)
        );
        for nothing in ["{}", "null", "[]", "\"none\"", r#"{"total_tokens":-1}"#, r#"{"prompt_tokens":null}"#]
        {
            assert_eq!(parse_usage(nothing), ReportedUsage::Nothing, "{nothing}");
        }
    }

    #[test]
    fn counts_that_no_call_can_have_are_impossible() {
        let largest = format!(r#"{{"prompt_tokens":{TOKENS_PER_CALL_MAX}}}"#);
        assert_eq!(parse_usage(&largest), ReportedUsage::Counted(Usage::counted(TOKENS_PER_CALL_MAX, 0, 0)));
        for count in [
            "-3",
            "-0.5",
            "2.5",
            "100000001",
            "1000000000000000000",
            "99999999999999999999999",
            "1e18",
            "1e999",
            "\"many\"",
            "\"12\"",
            "true",
            "[1]",
            "{}",
        ] {
            for json in [
                format!(r#"{{"prompt_tokens":{count},"completion_tokens":1}}"#),
                format!(r#"{{"prompt_tokens":1,"completion_tokens":{count}}}"#),
                format!(
                    r#"{{"prompt_tokens":1,"completion_tokens_details":{{"reasoning_tokens":{count}}}}}"#
                ),
            ] {
                assert_eq!(parse_usage(&json), ReportedUsage::Impossible, "{json}");
            }
        }
    }
}
