//! The `usage` object of the API.

use bench_domain::Usage;
use serde::{Deserialize, Deserializer};

#[derive(Deserialize, Default)]
#[serde(default)]
struct UsageObject {
    #[serde(deserialize_with = "count")]
    prompt_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    completion_tokens: Option<u64>,
    // Some gateways write both names into one object, so these are no aliases.
    #[serde(deserialize_with = "count")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "details")]
    completion_tokens_details: Details,
    #[serde(deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    #[serde(deserialize_with = "count")]
    reasoning_tokens: Option<u64>,
}

/// Reads a `usage` object; `None` when it counts neither prompt nor answer.
pub(crate) fn parse_usage(json: &str) -> Option<Usage> {
    let object: UsageObject = serde_json::from_str(json).ok()?;
    let input = object.prompt_tokens.or(object.input_tokens);
    let output = object.completion_tokens.or(object.output_tokens);
    if input.is_none() && output.is_none() {
        return None;
    }
    let reasoning = object.completion_tokens_details.reasoning_tokens.or(object.reasoning_tokens);
    Some(Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        reasoning_tokens: reasoning.unwrap_or(0),
    })
}

/// A count, also one written as a float; anything else is unknown.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<serde_json::Number>::deserialize(deserializer)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, and the sign is checked
    let whole = |number: f64| (number >= 0.0).then_some(number as u64);
    Ok(number.and_then(|number| number.as_u64().or_else(|| number.as_f64().and_then(whole))))
}

fn details<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Details, D::Error> {
    Ok(Option::<Details>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_in_their_usual_forms() {
        let usage = |input, output, reasoning| {
            Some(Usage { input_tokens: input, output_tokens: output, reasoning_tokens: reasoning })
        };
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
        assert_eq!(parse_usage("{}"), None);
        assert_eq!(parse_usage(r#"{"prompt_tokens":"many"}"#), None);
        assert_eq!(parse_usage(r#"{"prompt_tokens":-3}"#), None);
    }
}
