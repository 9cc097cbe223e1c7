//! The `usage` object of the API.

use std::collections::HashMap;

use bench_domain::{TOKENS_PER_CALL_MAX, Usage};
use serde_json::value::RawValue;

/// What a `usage` object says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedUsage {
    /// It counts neither prompt nor answer.
    Nothing,
    /// Counts that can be right.
    Counted(Usage),
    /// A count that no call can have: negative, a fraction, not a number, or beyond [`TOKENS_PER_CALL_MAX`]. The other
    /// counts of such an object are not trusted either.
    Impossible,
}

impl ReportedUsage {
    /// The counts, where they can be right.
    pub const fn counted(self) -> Option<Usage> {
        match self {
            Self::Counted(usage) => Some(usage),
            Self::Nothing | Self::Impossible => None,
        }
    }
}

/// One count of the object.
enum Count {
    Missing,
    Tokens(u64),
    Impossible,
}

type Fields<'a> = HashMap<&'a str, &'a RawValue>;

/// Reads a `usage` object.
pub fn parse_usage(json: &str) -> ReportedUsage {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(json) else { return ReportedUsage::Nothing };
    let details = fields.get("completion_tokens_details").map_or("null", |details| details.get());
    let details: Fields<'_> = serde_json::from_str(details).unwrap_or_default();
    // Some gateways write both names into one object: the first that is there counts.
    let first = |places: [(&Fields<'_>, &str); 2]| {
        let mut counts = places.into_iter().map(|(fields, name)| count(fields.get(name)));
        counts.find(|count| !matches!(count, Count::Missing)).unwrap_or(Count::Missing)
    };
    let input = first([(&fields, "prompt_tokens"), (&fields, "input_tokens")]);
    let output = first([(&fields, "completion_tokens"), (&fields, "output_tokens")]);
    let reasoning = first([(&details, "reasoning_tokens"), (&fields, "reasoning_tokens")]);
    let tokens = |count| match count {
        Count::Missing => Some(0),
        Count::Tokens(tokens) => Some(tokens),
        Count::Impossible => None,
    };
    if let (Count::Missing, Count::Missing) = (&input, &output) {
        return ReportedUsage::Nothing;
    }
    match (tokens(input), tokens(output), tokens(reasoning)) {
        (Some(input), Some(output), Some(reasoning)) => {
            ReportedUsage::Counted(Usage::counted(input, output, reasoning))
        }
        _ => ReportedUsage::Impossible,
    }
}

/// A whole number, also one that is written as a float.
fn count(value: Option<&&RawValue>) -> Count {
    let Some(text) = value.map(|value| value.get()).filter(|text| *text != "null") else {
        return Count::Missing;
    };
    let tokens = text.parse::<u64>().ok().or_else(|| {
        let number = text.parse::<f64>().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit()))?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        // saturates, and the sign is checked
        (number >= 0.0 && number.fract() == 0.0).then_some(number as u64)
    });
    match tokens {
        Some(tokens) if tokens <= TOKENS_PER_CALL_MAX => Count::Tokens(tokens),
        _ => Count::Impossible,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
